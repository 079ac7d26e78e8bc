"""The feed-forward panel: one token's hidden values before and after the activation function."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from components.figures.bars import size_bars
from components.figures.maps import grid
from components.figures.style import Figure
from components.i18n import t
from components.kit import Panel, column, columns, layer_select, no_text, picture, position_slider, row, says
from components.labels import ACTIVATIONS, decimal, percent, quoted
from components.parts import Part
from components.widgets.chart import Drawing
from gpt import trace_text

NEAR_ZERO = 0.05
When = Literal["before", "after"]

panel = Panel("ff")


@panel.computed
def hidden(s: Any) -> dict[str, np.ndarray]:
    """Return the selected token's hidden values in a layer, (n_ff,) each."""
    text, layer, position = s.text_read(), s.selection.layer, s.position
    here = trace_text(text.loaded.model, text.ids[: position + 1]).layers[layer]
    both = {"before": here.mlp_pre, "after": here.mlp_post}
    return {when: values[0, -1].float().cpu().numpy() for when, values in both.items()}


def of_model(s: Any, name: str, **values: object) -> str:
    """Return a sentence that may name the activation. Gated feed-forward networks have their own."""
    key = f"ff.{name}.gated" if s.text.config.gated else f"ff.{name}"
    return t(key, activation=ACTIVATIONS[s.text.config.activation], **values)


def answer(s: Any) -> str:
    after = s[hidden]["after"]
    strongest = int(after.argmax())
    return of_model(
        s,
        "says",
        layer=s.selection.layer,
        token=quoted(s.text.tokenizer, s.text.ids[s.position]),
        width=f"{s.text.config.n_embd:,}",
        hidden=f"{len(after):,}",
        active=percent((after > 0).mean()),
        neuron=strongest,
        value=decimal(after[strongest]),
    )


def widths(s: Any) -> Drawing:
    """Draw the vector length at each stage as a bar, labelled with the shape across all tokens."""
    width, n_ff = s.text_read().config.n_embd, len(s[hidden]["after"])
    gate = {t("ff.gate"): n_ff} if s.text.config.gated else {}
    sizes = {t("ff.in"): width, **gate, t("ff.pre"): n_ff, of_model(s, "post"): n_ff, t("ff.out"): width}
    shapes = [f"[{s.position + 1}, {size}]" for size in sizes.values()]
    return size_bars([*sizes], np.array([*sizes.values()]), shapes), of_model(s, "shapes")


def values(side: When, s: Any) -> Drawing:
    found = s[hidden][side]
    shares = {"negative": percent((found < 0).mean()), "quiet": percent((np.abs(found) < NEAR_ZERO).mean())}
    ends = {"low": decimal(found.min()), "high": decimal(found.max())}
    return cells(found), t(f"ff.{side}.says", hidden=f"{len(found):,}", **shares, **ends)


def cells(values: np.ndarray) -> Figure:
    """Return the values as a grid about twice as wide as it is high, filled row by row and padded with NaN."""
    columns = max(1, round((2 * len(values)) ** 0.5))
    rows = -(-len(values) // columns)
    filled = np.full(rows * columns, np.nan, dtype=np.float32)
    filled[: len(values)] = values
    return grid(filled.reshape(rows, columns), value_title=t("ff.neuron"))


def of_side(side: When) -> Part:
    def title(s: Any) -> str:
        s.text_read()
        return of_model(s, side)

    return column(says(f"ff-name-{side}", title, kind="question"), picture(f"ff-{side}", partial(values, side)))


SECTION = panel.section(
    answer,
    row(layer_select("ff-layer"), position_slider("ff-position", "ff.position")),
    picture("ff-widths", widths),
    columns(of_side("before"), of_side("after")),
    notice=no_text,
    reads_text=True,
)
