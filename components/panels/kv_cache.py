"""What the key-value cache saves: passes over the visitor's text, and work and memory by the length of a text."""

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
from gpt import GPTConfig
from gpt.experiments.shapes import cache_numbers
from gpt.experiments.speed import Cost, GenerationPass, generation_passes, next_token_cost
from gpt.models.memory import format_bytes

prefill, kernels = Panel("prefill"), Panel("kernels")
MIN_TOKENS = 16  # shortest length; each further length is twice the previous one


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


# The work and memory of the next token, with cache and fused attention and with neither


class Costs(NamedTuple):
    """Costs of the next token at each length. cached: with KV cache and SDPA; plain: with neither."""

    cached: list[Cost]
    plain: list[Cost]


def lengths_of(config: GPTConfig) -> list[int]:
    """Return the text lengths to compare: 16, 32, ... and the block size."""
    doubles = [MIN_TOKENS << i for i in range(16) if MIN_TOKENS << i < config.block_size]
    return [*doubles, config.block_size]


def costs(s: Any) -> Costs:
    config, size = s.text_read().config, s.text.loaded.model.dtype.itemsize
    lengths = lengths_of(config)
    return Costs(
        [next_token_cost(config, n, cached=True, kernel="sdpa", number_bytes=size) for n in lengths],
        [next_token_cost(config, n, cached=False, kernel="eager", number_bytes=size) for n in lengths],
    )


def saved(s: Any) -> str:
    counted = s.cached(costs)
    cached, plain = counted.cached[-1], counted.plain[-1]
    return t(
        "kernels.says",
        length=cached.length,
        cached=short(cached.multiplications),
        plain=short(plain.multiplications),
        ratio=f"{plain.multiplications / cached.multiplications:,.0f}",
        bytes=format_bytes(cache_numbers(s.text.config) * s.text.loaded.model.dtype.itemsize),
    )


def short(n: int) -> str:
    return f"{n / 1e9:,.2f} × 10⁹" if n >= 1e9 else f"{n / 1e6:,.2f} × 10⁶"


def bytes_table(s: Any) -> dict[str, Any]:
    counted = s.cached(costs)
    head = [t(f"kernels.bytes.{key}") for key in ("tokens", "cache", "eager")]
    pairs = zip(counted.cached, counted.plain, strict=True)
    rows = [[f"{a.length:,}", format_bytes(a.cache_bytes), format_bytes(b.weight_bytes)] for a, b in pairs]
    return {"rows": [head, *rows]}


PREFILL = prefill.section(
    answer,
    columns(*map(side, Passes._fields)),
    table("prefill-passes", draw=rows),
    caption("prefill.note"),
    notice=no_text,
)
KERNELS = kernels.section(
    saved,
    question("kernels.bytes.question"),
    table("kernels-bytes", draw=bytes_table),
    caption("kernels.bytes.note"),
    notice=no_text,
)
