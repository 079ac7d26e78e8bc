"""The layer normalisation panel: rows before and after, with every mean and variance."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch

from components import kit
from components.figures.bars import row_bars
from components.i18n import t
from components.labels import decimal, quoted
from components.parts import Part
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt.experiments import layers

EPS = {1e-8: "0.00000001", 1e-5: "0.00001", 1e-3: "0.001", 0.1: "0.1", 1.0: "1"}

panel = kit.Panel("norm")


def norms(s: Any) -> tuple[layers.NormName, ...]:
    return layers.NORM_NAMES if s.text is None else layers.norms_of(s.text.config)


@panel.state
class Chosen:
    """scale: factor on the learned scale. shift: offset on the learned shift."""

    source: str = kit.setting("example", lambda s: {each: t(f"norm.source.{each}") for each in ("example", "model")})
    which: layers.NormName = kit.setting("ln_1", lambda s: {each: t(f"norm.which.{each}") for each in norms(s)})
    scale: float = kit.setting(1.0, low=-1, high=3, step=0.05)
    shift: float = kit.setting(0.0, low=-2, high=2, step=0.05)
    eps: float = kit.setting(1e-5, EPS)


class Rows(NamedTuple):
    numbers: dict[str, torch.Tensor]
    names: list[str]


def which(s: Any) -> layers.NormName:
    """Return the chosen normalisation or, if the model lacks it, the model's first one."""
    chosen: layers.NormName = s[Chosen].which
    return chosen if chosen in norms(s) else norms(s)[0]


@panel.computed
def of_model(s: Any) -> tuple[torch.Tensor, ...]:
    """Return the selected token's row and its predecessor as inputs of a normalisation, (2, C) or (1, C), and the
    normalisation's scale and shift, (C,)."""
    text, position, norm = s.text_read(), s.position, which(s)
    layer = 0 if norm == "ln_f" else s.selection.layer
    rows, *learned = layers.norm_input(text.loaded.model, text.ids[: position + 1], norm, layer)
    return rows[max(0, position - 1) :].float().clone(), *(each.float() for each in learned)


def rows(s: Any) -> Rows:
    scale, shift, eps = s[Chosen].scale, s[Chosen].shift, s[Chosen].eps
    if not reads_model(s):
        numbers = layers.normalise(layers.linear_relu_rows(), scale=scale, shift=shift, eps=eps)
        return Rows(numbers, [t("norm.row", n=n + 1) for n in range(len(numbers["before"]))])
    inputs, learned_scale, learned_shift = s[of_model]
    factors = {"scale": scale * learned_scale, "shift": shift + learned_shift}
    tokens = range(max(0, s.position - 1), s.position + 1)
    names = [f"{quoted(s.text.tokenizer, s.text.ids[place])} · {place}" for place in tokens]
    return Rows(layers.normalise(inputs, **factors, eps=eps, kind=s.text.config.norm), names)


def statistics(part: torch.Tensor) -> list[list[str]]:
    """Return each row's mean, biased variance (divided by n) and unbiased variance (divided by n - 1)."""
    found = torch.stack([part.mean(dim=1), part.var(dim=1, unbiased=False), part.var(dim=1)], dim=1)
    return [[decimal(x, 4) for x in row] for row in found.tolist()]


def answer(s: Any) -> str:
    shown, values = s.cached(rows), {}
    for prefix, part in zip(("", "new_", "last_"), shown.numbers.values(), strict=True):
        values[f"{prefix}mean"], values[f"{prefix}variance"], _ = statistics(part)[-1]
    return t("norm.says", row=shown.names[-1], **values)


def table_rows(s: Any) -> dict[str, Any]:
    shown = s.cached(rows)
    head = [t(f"norm.table.{column}") for column in ("stage", "mean", "variance", "unbiased")]
    found = {t(f"norm.stage.{stage}"): statistics(part) for stage, part in shown.numbers.items()}
    lines = [[f"{name}, {stage}", *of[n]] for n, name in enumerate(shown.names) for stage, of in found.items()]
    return {"rows": [head, *lines]}


def note(s: Any) -> str:
    return t(f"norm.note.{s.text.config.norm if reads_model(s) and not kit.no_text(s) else 'layer'}")


def bars(side: str, s: Any) -> Drawing:
    shown = s.cached(rows)
    part = shown.numbers[side].cpu()
    means, stds = part.mean(dim=1).numpy(), part.std(dim=1, unbiased=False).numpy()
    figure = row_bars(part.numpy(), shown.names, means, stds)
    return figure, t("norm.picture", when=t(f"norm.{side}"), n=f"{part.shape[1]:,}")


def reads_model(s: Any) -> bool:
    return bool(s[Chosen].source == "model")


def of_side(side: str) -> Part:
    return kit.column(kit.question(f"norm.{side}"), kit.picture(f"norm-{side}", partial(bars, side)))


SECTION = panel.section(
    answer,
    kit.row(
        kit.choice(Chosen.source, "norm.source", labelled=True),
        kit.select(Chosen.which, "norm.which", value=which, show=reads_model),
        kit.layer_select("norm-layer", show=lambda s: reads_model(s) and which(s) != "ln_f"),
        kit.position_slider("norm-position", "norm.position", show=reads_model),
    ),
    kit.row(
        kit.slider(Chosen.scale, "norm.scale", info="norm.scale.info"),
        kit.slider(Chosen.shift, "norm.shift", info="norm.shift.info"),
        kit.select(Chosen.eps, "norm.eps", info="norm.eps.info"),
    ),
    kit.columns(of_side("before"), of_side("after")),
    table("norm-numbers", draw=table_rows),
    kit.says("norm-note", note, kind="caption"),
    notice=lambda s: kit.no_text(s) if reads_model(s) else None,
    reads_text=True,
)
