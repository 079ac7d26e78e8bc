"""The panel that counts the work and memory that the KV cache and fused attention save."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from components.figures.lines import lines
from components.i18n import t
from components.kit import Panel, caption, no_text, picture, question
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt import GPTConfig
from gpt.experiments.shapes import cache_numbers
from gpt.experiments.speed import Cost, next_token_cost
from gpt.models.memory import format_bytes

MIN_TOKENS = 16  # shortest length; each further length is twice the previous one

panel = Panel("kernels")


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


def answer(s: Any) -> str:
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


def counted_lines(s: Any) -> Drawing:
    counted = s.cached(costs)
    figure = lines(
        np.array([cost.length for cost in counted.cached]),
        {
            t(f"kernels.{kind}"): np.array([cost.multiplications for cost in side])
            for kind, side in counted._asdict().items()
        },
        x_title=t("kernels.length"),
        y_title=t("kernels.multiplications"),
        log_x=True,
        log_y=True,
    )
    return figure, t("kernels.counted")


def bytes_table(s: Any) -> dict[str, Any]:
    counted = s.cached(costs)
    head = [t(f"kernels.bytes.{key}") for key in ("tokens", "cache", "eager")]
    pairs = zip(counted.cached, counted.plain, strict=True)
    rows = [[f"{a.length:,}", format_bytes(a.cache_bytes), format_bytes(b.weight_bytes)] for a, b in pairs]
    return {"rows": [head, *rows]}


SECTION = panel.section(
    answer,
    picture("kernels-counted", counted_lines),
    question("kernels.bytes.question"),
    table("kernels-bytes", draw=bytes_table),
    caption("kernels.bytes.note"),
    notice=no_text,
)
