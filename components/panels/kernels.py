"""The speed panel: work saved by the KV cache and fused attention, counted right away and timed on request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from components.errors import PageError
from components.figures.lines import lines
from components.i18n import t
from components.panels.experiment import Experiment, experiment_buttons
from components.panels.panel import Panel, no_text, panel_section, problem_sentence
from components.parts import caption, column, columns, question
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.chart import chart, chart_data
from components.widgets.table import table
from gpt import GPTConfig, LoadedModel
from gpt.experiments.shapes import cache_numbers
from gpt.experiments.speed import Cost, SpeedRow, measure_speed, next_token_cost
from gpt.models.memory import format_bytes

MIN_TOKENS = 16  # shortest length; each further length is twice the previous one
MAX_SECONDS = 15.0
GROWTH = 12  # estimated time for the next length, as a multiple of the slowest variant's time per token
KINDS = (("cached", "sdpa"), ("cached", "eager"), ("plain", "sdpa"), ("plain", "eager"))


class Measured(NamedTuple):
    """A speed measurement of a model.

    is_short: whether the measurement ended early, because the next length would have exceeded the time limit.
    """

    loaded: LoadedModel
    rows: tuple[SpeedRow, ...]
    is_short: bool = False


@dataclass(frozen=True)
class KernelsState:
    """The panel's state. run: the measurement."""

    run: Experiment[Measured] = field(default_factory=Experiment)

    @property
    def busy(self) -> bool:
        return self.run.running


class Costs(NamedTuple):
    """Costs of the next token at each length. cached: with KV cache and SDPA; plain: with neither."""

    cached: list[Cost]
    plain: list[Cost]


def lengths_of(config: GPTConfig) -> list[int]:
    """Return the text lengths to compare: 16, 32, ... and the block size."""
    doubles = [MIN_TOKENS << i for i in range(16) if MIN_TOKENS << i < config.block_size]
    return [*doubles, config.block_size]


def costs(s: Snapshot) -> Costs | None:
    """Return the costs for the configuration of the visitor's model, or None if there is no text."""
    if s.text is None or no_text(s):
        return None
    config, size = s.text.config, s.text.loaded.model.dtype.itemsize
    lengths = lengths_of(config)
    return Costs(
        [next_token_cost(config, n, cached=True, kernel="sdpa", number_bytes=size) for n in lengths],
        [next_token_cost(config, n, cached=False, kernel="eager", number_bytes=size) for n in lengths],
    )


def answer(s: Snapshot) -> dict[str, Any]:
    counted = s.cached(costs)
    if counted is None or s.text is None:
        return {"text": ""}
    cached, plain = counted.cached[-1], counted.plain[-1]
    caption = t(
        "kernels.says",
        s.language,
        length=cached.length,
        cached=short(cached.multiplications),
        plain=short(plain.multiplications),
        ratio=f"{plain.multiplications / cached.multiplications:,.0f}",
        bytes=format_bytes(cache_numbers(s.text.config) * s.text.loaded.model.dtype.itemsize),
    )
    return {"text": caption}


def short(n: int) -> str:
    """Format a large number in millions or billions."""
    return f"{n / 1e9:,.2f} × 10⁹" if n >= 1e9 else f"{n / 1e6:,.2f} × 10⁶"


def notice(s: Snapshot) -> dict[str, Any]:
    run, measured = s.state(KernelsState).run, s.cached(measured_of)
    if measured is not None and measured.is_short:
        last = measured.rows[-1].cost.length
        return {"text": t("kernels.short", s.language, length=last, seconds=f"{MAX_SECONDS:g}")}
    problem = problem_sentence(s, no_text(s), run.problem)
    if not problem["text"] and s.text is not None and s.text.config.attn_softcap is not None:
        return {"text": t("kernels.capped", s.language)}
    return problem


def counted_lines(s: Snapshot) -> dict[str, Any]:
    """Draw the number of multiplications for the next token against the text length."""
    counted = s.cached(costs)
    if counted is None:
        return chart_data(None, "")
    figure = lines(
        np.array([cost.length for cost in counted.cached]),
        {
            t(f"kernels.{kind}", s.language): np.array([cost.multiplications for cost in side])
            for kind, side in counted._asdict().items()
        },
        x_title=t("kernels.length", s.language),
        y_title=t("kernels.multiplications", s.language),
        log_x=True,
        log_y=True,
    )
    return chart_data(figure, t("kernels.counted", s.language))


def bytes_table(s: Snapshot) -> dict[str, Any]:
    """Return a table of the bytes used by the KV cache and by eager attention weights."""
    counted = s.cached(costs)
    if counted is None:
        return {"rows": []}
    head = [t(f"kernels.bytes.{key}", s.language) for key in ("tokens", "cache", "eager")]
    pairs = zip(counted.cached, counted.plain, strict=True)
    rows = [[f"{a.length:,}", format_bytes(a.cache_bytes), format_bytes(b.weight_bytes)] for a, b in pairs]
    return {"rows": [head, *rows]}


def measure(s: Snapshot) -> Iterator[Measured]:
    """Measure one length after another until the next one would exceed MAX_SECONDS."""
    if s.text is None or no_text(s):
        raise PageError("error.no_text")
    model, ids = s.text.loaded.model, s.text.ids[: s.text.n_read]
    rows: tuple[SpeedRow, ...] = ()
    began = time.monotonic()
    list(measure_speed(model, ids, [1], repeats=1))  # warm-up
    for length in lengths_of(model.config):
        if rows and GROWTH * slowest(rows) > MAX_SECONDS - (time.monotonic() - began):
            yield Measured(s.text.loaded, rows, is_short=True)
            return
        rows = (*rows, *measure_speed(model, ids, [length]))
        yield Measured(s.text.loaded, rows)


def measured_of(s: Snapshot) -> Measured | None:
    """Return the newest measurement if it is of the model in use."""
    found = s.state(KernelsState).run.latest
    return found if found is not None and found.loaded is s.loaded else None


def slowest(rows: tuple[SpeedRow, ...]) -> float:
    """Return the time per token of the slowest variant at the last length, in seconds."""
    return max(row.seconds for row in rows[-len(KINDS) :])


def measured_lines(s: Snapshot) -> dict[str, Any]:
    """Draw the tokens per second for the four variants against the text length."""
    measured = s.cached(measured_of)
    if measured is None:
        return chart_data(None, "")
    rates: dict[tuple[str, str], dict[int, float]] = {kind: {} for kind in KINDS}
    for row in measured.rows:
        kind = ("cached" if row.cost.cached else "plain", row.cost.kernel)
        rates[kind][row.cost.length] = row.tokens_per_second
    lengths = list(rates[KINDS[0]])
    figure = lines(
        np.array(lengths),
        {t(f"kernels.{a}.{b}", s.language): np.array(list(rates[a, b].values())) for a, b in KINDS},
        x_title=t("kernels.length", s.language),
        y_title=t("kernels.rate", s.language),
        log_x=True,
    )
    last = {kind: f"{rate[lengths[-1]]:,.0f}" for kind, rate in rates.items()}
    caption = t(
        "kernels.measured",
        s.language,
        length=lengths[-1],
        cached=last["cached", "sdpa"],
        plain=last["plain", "sdpa"],
        sdpa=last["cached", "sdpa"],
        eager=last["cached", "eager"],
    )
    return chart_data(figure, caption)


VIEWS = (
    View("kernels-answer", answer),
    View("kernels-notice", notice),
    View("kernels-counted", counted_lines),
    View("kernels-measured", measured_lines),
    View("kernels-bytes", bytes_table),
)


def build_kernels() -> Panel:
    """Build the panel that counts costs right away and measures speed on request."""
    measured = column(
        caption("kernels.measure.says", seconds=f"{MAX_SECONDS:g}"),
        experiment_buttons("kernels", "kernels.measure", KernelsState, measure, small=False),
        chart("kernels-measured"),
    )
    part = panel_section(
        "kernels",
        columns(column(chart("kernels-counted")), measured),
        question("kernels.bytes.question"),
        table("kernels-bytes"),
        caption("kernels.bytes.note"),
    )
    return Panel(part, VIEWS)
