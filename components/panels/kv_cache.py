"""What the key-value cache saves: passes over the visitor's text, and work and memory by the length of a text."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from components.figures.bars import grouped_bars
from components.i18n import t
from components.kit import Panel, caption, column, columns, no_text, picture, question
from components.labels import quoted
from components.parts import Part
from components.state.text import Text
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt import GPTConfig
from gpt.experiments.shapes import cache_numbers, next_token_multiplications
from gpt.models.memory import format_bytes

prefill, kernels = Panel("prefill"), Panel("kernels")
MIN_TOKENS = 16  # shortest length; each further length is twice the previous one


def passes(text: Text, *, cached: bool) -> np.ndarray:
    """Return the tokens computed, and those taken from the cache, in each pass that generates the text, (2, passes)."""
    n = min(text.document.n_prompt, text.n_read)
    lengths = np.arange(n, text.n_read + 1)
    kept = np.where(lengths > n, lengths - 1, 0) if cached else np.zeros_like(lengths)
    return np.stack([lengths - kept, kept])


def cache_size(text: Text, n_tokens: int) -> str:
    return format_bytes(cache_numbers(text.config) * text.loaded.model.dtype.itemsize * int(n_tokens))


def answer(s: Any) -> str:
    text = s.text_read()
    (computed, from_cache), (plain, _) = passes(text, cached=True), passes(text, cached=False)
    says = t("prefill.says", n=computed[0])
    if len(plain) == 1:
        return says + t("prefill.no_decode")
    cached, without, n_cached = computed.sum(), plain.sum(), from_cache[-1]
    totals = {"cached": f"{cached:,}", "plain": f"{without:,}", "ratio": f"{without / cached:,.1f}"}
    return says + t("prefill.decode", position=n_cached - 1, bytes=cache_size(text, n_cached), **totals)


def bars(kind: str, s: Any) -> Drawing:
    computed, from_cache = passes(s.text_read(), cached=kind == "cached")
    figure = grouped_bars(
        [str(number) for number in range(len(computed))],
        {t("prefill.computed"): computed, t("prefill.from_cache"): from_cache},
        barmode="stack",
        colours=("after", "before"),
        y={"range": [0, 1.05 * s.text.n_read]},
        tip=",",
        most=12,
        x_title=t("prefill.number"),
        y_title=t("prefill.tokens"),
    )
    return figure, t(f"prefill.{kind}.says")


def rows(s: Any) -> dict[str, Any]:
    text = s.text_read()
    (computed, from_cache), (plain, _) = passes(text, cached=True), passes(text, cached=False)
    n, last = plain[0], len(plain) - 1
    shown = [[t(f"prefill.{column}") for column in ("step", "computed", "from_cache", "bytes", "without")]]
    for number in sorted({0, min(1, last), max(0, s.position - n + 1), last}):
        position = n + number - 1
        token = quoted(text.tokenizer, text.ids[position])
        step = t("prefill.decode.step" if number else "prefill.prefill", n=n, token=token, position=position)
        counts = f"{computed[number]:,}", f"{from_cache[number]:,}", cache_size(text, from_cache[number])
        shown.append([step, *counts, f"{plain[number]:,}"])
    return {"rows": [*shown, [t("prefill.sum"), f"{computed.sum():,}", "", "", f"{plain.sum():,}"]]}


def side(kind: str) -> Part:
    return column(question(f"prefill.{kind}"), picture(f"prefill-{kind}", partial(bars, kind)))


# The work and memory of the next token, with cache and fused attention and with neither


def lengths_of(config: GPTConfig) -> list[int]:
    """Return the text lengths to compare: 16, 32, ... and the block size."""
    doubles = [MIN_TOKENS << i for i in range(16) if MIN_TOKENS << i < config.block_size]
    return [*doubles, config.block_size]


def saved(s: Any) -> str:
    text = s.text_read()
    config, length = text.config, text.config.block_size
    cached, plain = (next_token_multiplications(config, length, cached=cached) for cached in (True, False))
    work = {"cached": short(cached), "plain": short(plain), "ratio": f"{plain / cached:,.0f}"}
    return t("kernels.says", length=length, bytes=cache_size(text, 1), **work)


def short(n: int) -> str:
    return f"{n / 1e9:,.2f} × 10⁹" if n >= 1e9 else f"{n / 1e6:,.2f} × 10⁶"


def bytes_table(s: Any) -> dict[str, Any]:
    """Return the sizes of the cache and, without a cache and fused attention, of one layer's attention weights."""
    text = s.text_read()
    of_pair = text.config.n_head * text.loaded.model.dtype.itemsize
    head = [t(f"kernels.bytes.{key}") for key in ("tokens", "cache", "eager")]
    rows = [[f"{n:,}", cache_size(text, n), format_bytes(of_pair * n * n)] for n in lengths_of(text.config)]
    return {"rows": [head, *rows]}


PREFILL = prefill.section(
    answer,
    columns(side("cached"), side("plain")),
    table("prefill-passes", draw=rows),
    caption("prefill.note"),
    notice=no_text,
    reads_text=True,
)
KERNELS = kernels.section(
    saved,
    question("kernels.bytes.question"),
    table("kernels-bytes", draw=bytes_table),
    caption("kernels.bytes.note"),
    notice=no_text,
    reads_text=True,
)
