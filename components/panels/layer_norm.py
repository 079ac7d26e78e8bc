"""The layer normalisation panel: rows before and after, with every mean and variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import torch

from components.figures.bars import row_bars
from components.i18n import t
from components.kit import layer_select
from components.labels import decimal, quoted
from components.panels.panel import (
    Panel,
    Result,
    Settings,
    computed,
    no_text,
    one_of,
    panel_section,
    position_slider,
    problem_sentence,
    setter,
    text_of,
    value_of,
    waiting_sentence,
    within,
)
from components.parts import column, columns, question, row, select
from components.render import View
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.chart import chart, chart_data
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt.experiments.normalisation import (
    NORM_NAMES,
    Normalised,
    NormInput,
    NormName,
    linear_relu_rows,
    norm_input,
    normalise,
    norms_of,
)

Source = Literal["example", "model"]
EPS = {"0.00000001": 1e-8, "0.00001": 1e-5, "0.001": 1e-3, "0.1": 0.1, "1": 1.0}


@dataclass(frozen=True)
class LayerNormState:
    """The panel's settings.

    source: where the rows come from. scale: factor on the learned scale. shift: offset on the learned shift. eps: a key
    in EPS. result: rows from the visitor's model.
    """

    source: Source = "example"
    norm: NormName = "ln_1"
    scale: float = 1.0
    shift: float = 0.0
    eps: str = "0.00001"
    result: Result[NormInput] | None = None


class LayerNormInputs(NamedTuple):
    """The token at a position and its predecessor, as inputs to one of a layer's normalisations."""

    text: Text
    norm: NormName
    layer: int
    position: int


class Rows(NamedTuple):
    """The normalised rows and their names."""

    numbers: Normalised
    names: list[str]


def request_of(s: Snapshot) -> LayerNormInputs | None:
    """Return the rows to compute, or None for the example rows or while the text is being generated."""
    state, text = s.state(LayerNormState), text_of(s)
    if state.source != "model" or text is None:
        return None
    norm = norm_of(s)
    layer = 0 if norm == "ln_f" else s.selection.layer
    return LayerNormInputs(text, norm, layer, text.at(s.selection))


def norms(s: Snapshot) -> tuple[NormName, ...]:
    """Return the normalisations to choose from."""
    return NORM_NAMES if s.text is None else norms_of(s.text.config)


def norm_of(s: Snapshot) -> NormName:
    """Return the chosen normalisation or, if the model lacks it, the model's first one."""
    chosen = s.state(LayerNormState).norm
    return chosen if chosen in norms(s) else norms(s)[0]


def compute(request: LayerNormInputs) -> NormInput:
    """Return the model's rows, (2, C), or (1, C) for the first token."""
    ids = request.text.ids[: request.position + 1]
    found = norm_input(request.text.loaded.model, ids, request.norm, request.layer)
    return replace(found, rows=found.rows[max(0, request.position - 1) :].float().clone())


def rows(s: Snapshot) -> Rows | None:
    """Return the normalised rows, or None while the model's rows are being computed."""
    state = s.state(LayerNormState)
    if state.source == "example":
        numbers = normalise(linear_relu_rows(), scale=state.scale, shift=state.shift, eps=EPS[state.eps])
        return Rows(numbers, [t("norm.row", n=n + 1) for n in range(len(numbers.before))])
    found = value_of(s, state.result)
    if found is None or state.result is None:
        return None
    request: Any = state.result.request
    numbers = normalise(
        found.rows,
        scale=state.scale * found.scale.float(),
        shift=state.shift + found.shift.float(),
        eps=EPS[state.eps],
        kind=found.kind,
    )
    tokenizer, first = request.text.tokenizer, max(0, request.position - 1)
    return Rows(
        numbers, [f"{quoted(tokenizer, request.text.ids[p])} · {p}" for p in range(first, request.position + 1)]
    )


def answer(s: Snapshot) -> dict[str, Any]:
    """Return the last row's mean and variance at each stage."""
    shown = s.cached(rows)
    if shown is None:
        return {"text": "" if no_text(s) else waiting_sentence(s)}
    stages = zip(("", "new_", "last_"), _stages(shown.numbers).values(), strict=True)
    values: dict[str, str] = {}
    for prefix, part in stages:
        mean, variance, _ = statistics(part)
        values |= {f"{prefix}mean": _number(mean[-1]), f"{prefix}variance": _number(variance[-1])}
    return {"text": t("norm.says", row=shown.names[-1], **values)}


def notice(s: Snapshot) -> dict[str, Any]:
    state = s.state(LayerNormState)
    if state.source == "example":
        return {"text": ""}
    return problem_sentence(s, no_text(s), state.result)


def numbers(s: Snapshot) -> dict[str, Any]:
    """Return a table with each row's mean and variances at each stage."""
    shown = s.cached(rows)
    if shown is None:
        return {"rows": []}
    columns = ("stage", "mean", "variance", "unbiased")
    lines = [[t(f"norm.table.{column}") for column in columns]]
    found = {stage: statistics(part) for stage, part in _stages(shown.numbers).items()}
    for index, name in enumerate(shown.names):
        for stage, values in found.items():
            title = f"{name}, {t(f'norm.stage.{stage}')}"
            lines.append([title, *(_number(column[index]) for column in values)])
    return {"rows": lines}


def note(s: Snapshot) -> dict[str, Any]:
    """Return the formula for the displayed norm."""
    state, text = s.state(LayerNormState), text_of(s)
    kind = "layer" if state.source == "example" or text is None else text.config.norm
    return {"text": t(f"norm.note.{kind}")}


def picture(when: Literal["before", "after"], s: Snapshot) -> dict[str, Any]:
    """Draw the rows as bars."""
    shown = s.cached(rows)
    if shown is None:
        return chart_data(None, "")
    part = _stages(shown.numbers)[when]
    means, stds = part.mean(dim=1).numpy(), part.std(dim=1, unbiased=False).numpy()
    figure = row_bars(part.numpy(), shown.names, means, stds, place_title=t("norm.place"))
    caption = t("norm.picture", when=t(f"norm.{when}"), n=f"{part.shape[1]:,}")
    return chart_data(figure, caption)


def _stages(found: Normalised) -> dict[str, torch.Tensor]:
    return {name: getattr(found, name).cpu() for name in ("before", "standard", "after")}


def statistics(part: torch.Tensor) -> list[list[float]]:
    """Return each row's mean, biased variance (divided by n) and unbiased variance (divided by n - 1)."""
    variances = (part.var(dim=1, unbiased=unbiased) for unbiased in (False, True))
    return [part.mean(dim=1).tolist(), *(variance.tolist() for variance in variances)]


def _number(value: float) -> str:
    """Format a number with four decimals; zero has no sign."""
    return decimal(value, 4)


VIEWS = (
    View("norm-answer", answer),
    View("norm-notice", notice),
    View("norm-before", partial(picture, "before")),
    View("norm-after", partial(picture, "after")),
    View("norm-numbers", numbers),
    View("norm-note", note),
)
ANALYSIS = computed(LayerNormState, request_of, compute)
CHECKS = {
    "source": one_of(*get_args(Source)),
    "norm": one_of(*NORM_NAMES),
    "scale": within(-1.0, 3.0),
    "shift": within(-2.0, 2.0),
    "eps": one_of(*EPS),
}
SETTINGS = Settings(LayerNormState, CHECKS)


def build_layer_norm() -> Panel:
    """Build the panel for two example rows, or for the visitor's model at the selected token and layer."""

    def of_model(s: Snapshot) -> bool:
        return s.state(LayerNormState).source == "model"

    source = SETTINGS.choice("norm.source", lambda s: [(t(f"norm.source.{each}"), each) for each in get_args(Source)])
    norm = select(
        "norm-which",
        lambda s: [(t(f"norm.which.{each}"), each) for each in norms(s)],
        label="norm.which",
        value=norm_of,
        on=setter(LayerNormState, "norm", CHECKS["norm"]),
        show=of_model,
    )
    numbers = (
        SETTINGS.slider(f"norm.{name}", low, high, 0.05, info=f"norm.{name}.info")
        for name, low, high in (("scale", -1, 3), ("shift", -2, 2))
    )
    sides = (column(question(f"norm.{side}"), chart(f"norm-{side}")) for side in ("before", "after"))
    part = panel_section(
        "norm",
        row(
            source,
            norm,
            layer_select("norm-layer", show=lambda s: of_model(s) and norm_of(s) != "ln_f"),
            position_slider("norm-position", "norm.position", show=of_model),
            classes="gb-panel-controls",
        ),
        row(
            *numbers,
            SETTINGS.select("norm.eps", [(each, each) for each in EPS], info="norm.eps.info"),
            classes="gb-panel-controls",
        ),
        columns(*sides),
        table("norm-numbers"),
        sentence("norm-note", kind="caption"),
    )
    return Panel(part, VIEWS, ANALYSIS)
