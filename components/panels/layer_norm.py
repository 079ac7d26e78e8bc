"""The layer normalisation panel: rows before and after, with every mean and variance."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import torch

from components.errors import PageError
from components.figures.bars import row_bars
from components.i18n import t
from components.kit import (
    Panel,
    choice,
    column,
    columns,
    layer_select,
    no_text,
    picture,
    position_slider,
    question,
    row,
    says,
    select,
    setting,
    slider,
)
from components.labels import decimal, quoted
from components.parts import Part
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt.experiments.layers import (
    NORM_NAMES,
    Normalised,
    NormInput,
    NormName,
    linear_relu_rows,
    norm_input,
    normalise,
    norms_of,
)

EPS = {"0.00000001": 1e-8, "0.00001": 1e-5, "0.001": 1e-3, "0.1": 0.1, "1": 1.0}
When = Literal["before", "after"]

panel = Panel("norm")


def norms(s: Any) -> tuple[NormName, ...]:
    return NORM_NAMES if s.text is None else norms_of(s.text.config)


@panel.state
class Chosen:
    """source: where the rows come from. which: the normalisation. scale: factor on the learned scale.

    shift: offset on the learned shift. eps: a key in EPS.
    """

    source: str = setting("example", lambda s: {each: t(f"norm.source.{each}") for each in ("example", "model")})
    which: NormName = setting("ln_1", lambda s: {each: t(f"norm.which.{each}") for each in norms(s)})
    scale: float = setting(1.0, low=-1, high=3, step=0.05)
    shift: float = setting(0.0, low=-2, high=2, step=0.05)
    eps: str = setting("0.00001", tuple(EPS))


class Rows(NamedTuple):
    numbers: Normalised
    names: list[str]


def which(s: Any) -> NormName:
    """Return the chosen normalisation or, if the model lacks it, the model's first one."""
    chosen: NormName = s[Chosen].which
    return chosen if chosen in norms(s) else norms(s)[0]


@panel.computed
def of_model(s: Any) -> NormInput:
    """Return the selected token's row and its predecessor as inputs of a normalisation, (2, C) or (1, C)."""
    text, position, norm = s.text_read(), s.position, which(s)
    layer = 0 if norm == "ln_f" else s.selection.layer
    found = norm_input(text.loaded.model, text.ids[: position + 1], norm, layer)
    return replace(found, rows=found.rows[max(0, position - 1) :].float().clone())


def rows(s: Any) -> Rows:
    scale, shift, eps = s[Chosen].scale, s[Chosen].shift, EPS[s[Chosen].eps]
    if s[Chosen].source == "example":
        numbers = normalise(linear_relu_rows(), scale=scale, shift=shift, eps=eps)
        return Rows(numbers, [t("norm.row", n=n + 1) for n in range(len(numbers.before))])
    found = s[of_model]
    numbers = normalise(
        found.rows,
        scale=scale * found.scale.float(),
        shift=shift + found.shift.float(),
        eps=eps,
        kind=found.kind,
    )
    tokens = range(max(0, s.position - 1), s.position + 1)
    return Rows(numbers, [f"{quoted(s.text.tokenizer, s.text.ids[place])} · {place}" for place in tokens])


def answer(s: Any) -> str:
    shown = s.cached(rows)
    stages = zip(("", "new_", "last_"), _stages(shown.numbers).values(), strict=True)
    values: dict[str, str] = {}
    for prefix, part in stages:
        mean, variance, _ = statistics(part)
        values |= {f"{prefix}mean": _number(mean[-1]), f"{prefix}variance": _number(variance[-1])}
    return t("norm.says", row=shown.names[-1], **values)


def notice(s: Any) -> PageError | None:
    return no_text(s) if reads_model(s) else None


def numbers(s: Any) -> dict[str, Any]:
    shown = s.cached(rows)
    columns = ("stage", "mean", "variance", "unbiased")
    lines = [[t(f"norm.table.{column}") for column in columns]]
    found = {stage: statistics(part) for stage, part in _stages(shown.numbers).items()}
    for index, name in enumerate(shown.names):
        for stage, values in found.items():
            title = f"{name}, {t(f'norm.stage.{stage}')}"
            lines.append([title, *(_number(column[index]) for column in values)])
    return {"rows": lines}


def note(s: Any) -> str:
    return t(f"norm.note.{s.text.config.norm if reads_model(s) and not no_text(s) else 'layer'}")


def bars(side: When, s: Any) -> Drawing:
    shown = s.cached(rows)
    part = _stages(shown.numbers)[side]
    means, stds = part.mean(dim=1).numpy(), part.std(dim=1, unbiased=False).numpy()
    figure = row_bars(part.numpy(), shown.names, means, stds)
    return figure, t("norm.picture", when=t(f"norm.{side}"), n=f"{part.shape[1]:,}")


def _stages(found: Normalised) -> dict[str, torch.Tensor]:
    return {name: getattr(found, name).cpu() for name in ("before", "standard", "after")}


def statistics(part: torch.Tensor) -> list[list[float]]:
    """Return each row's mean, biased variance (divided by n) and unbiased variance (divided by n - 1)."""
    variances = (part.var(dim=1, unbiased=unbiased) for unbiased in (False, True))
    return [part.mean(dim=1).tolist(), *(variance.tolist() for variance in variances)]


def _number(value: float) -> str:
    """Format a number with four decimals; zero has no sign."""
    return decimal(value, 4)


def reads_model(s: Any) -> bool:
    return bool(s[Chosen].source == "model")


def of_side(side: When) -> Part:
    return column(question(f"norm.{side}"), picture(f"norm-{side}", partial(bars, side)))


SECTION = panel.section(
    answer,
    row(
        choice(Chosen.source, "norm.source", labelled=True),
        select(Chosen.which, "norm.which", value=which, show=reads_model),
        layer_select("norm-layer", show=lambda s: reads_model(s) and which(s) != "ln_f"),
        position_slider("norm-position", "norm.position", show=reads_model),
        classes="gb-panel-controls",
    ),
    row(
        slider(Chosen.scale, "norm.scale", info="norm.scale.info"),
        slider(Chosen.shift, "norm.shift", info="norm.shift.info"),
        select(Chosen.eps, "norm.eps", info="norm.eps.info"),
        classes="gb-panel-controls",
    ),
    columns(of_side("before"), of_side("after")),
    table("norm-numbers", draw=numbers),
    says("norm-note", note, kind="caption"),
    notice=notice,
    reads_text=True,
)
