"""The prefill panel: what each pass during generation computes, and what it takes from the key-value cache."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from components.figures.bars import stacked_bars
from components.i18n import t
from components.kit import Panel, caption, column, columns, no_text, picture, question
from components.labels import quoted
from components.parts import Part
from components.state.text import Text
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt.experiments.speed import GenerationPass, generation_passes
from gpt.models.memory import format_bytes

panel = Panel("prefill")


class Passes(NamedTuple):
    """The passes that generate the visitor's text from its prompt, with and without a cache."""

    cached: list[GenerationPass]
    plain: list[GenerationPass]


def n_prompt(text: Text) -> int:
    return min(text.document.n_prompt, text.n_read)


def passes(s: Any) -> Passes:
    """Return the passes for the visitor's text."""
    size = s.text_read().loaded.model.dtype.itemsize
    return Passes(
        *(
            generation_passes(s.text.config, n_prompt(s.text), s.text.n_read, cached=cached, number_bytes=size)
            for cached in (True, False)
        )
    )


def answer(s: Any) -> str:
    found = s.cached(passes)
    text = t("prefill.says", n=n_prompt(s.text))
    if len(found.cached) == 1:
        return text + t("prefill.no_decode")
    cached, plain = (sum(each.n_computed for each in side) for side in found)
    last = found.cached[-1]
    totals = {"cached": f"{cached:,}", "plain": f"{plain:,}", "ratio": f"{plain / cached:,.1f}"}
    return text + t("prefill.decode", position=last.n_cached - 1, bytes=format_bytes(last.cache_bytes), **totals)


def bars(kind: str, s: Any) -> Drawing:
    found = s.cached(passes)
    side = getattr(found, kind)
    figure = stacked_bars(
        [str(number) for number in range(len(side))],
        {
            t("prefill.computed"): np.array([each.n_computed for each in side]),
            t("prefill.from_cache"): np.array([each.n_cached for each in side]),
        },
        highest=1.05 * s.text.n_read,
        x_title=t("prefill.number"),
        y_title=t("prefill.tokens"),
    )
    return figure, t(f"prefill.{kind}.says")


def rows(s: Any) -> dict[str, Any]:
    """Return table rows for prefill, for the first, last and selected decode steps, and for the totals."""
    found = s.cached(passes)
    n, last = n_prompt(s.text), len(found.cached) - 1
    columns = ("step", "computed", "from_cache", "bytes", "without")
    shown = [[t(f"prefill.{column}") for column in columns]]
    for number in sorted({0, min(1, last), max(0, s.position - n + 1), last}):
        position = n + number - 1
        token = quoted(s.text.tokenizer, s.text.ids[position])
        key = "prefill.decode.step" if number else "prefill.prefill"
        cached, plain = found.cached[number], found.plain[number]
        counts = f"{cached.n_computed:,}", f"{cached.n_cached:,}", format_bytes(cached.cache_bytes)
        shown.append([t(key, n=n, token=token, position=position), *counts, f"{plain.n_computed:,}"])
    cached_sum, plain_sum = (sum(each.n_computed for each in side) for side in found)
    return {"rows": [*shown, [t("prefill.sum"), f"{cached_sum:,}", "", "", f"{plain_sum:,}"]]}


def side(kind: str) -> Part:
    return column(question(f"prefill.{kind}"), picture(f"prefill-{kind}", partial(bars, kind)))


SECTION = panel.section(
    answer,
    columns(*map(side, Passes._fields)),
    table("prefill-passes", draw=rows),
    caption("prefill.note"),
    notice=no_text,
)
