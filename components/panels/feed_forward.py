"""The feed-forward panel: one token's hidden values before and after the activation function."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from components.figures.bars import size_bars
from components.figures.maps import grid
from components.figures.style import Figure
from components.i18n import t
from components.kit import Panel, column, columns, layer_select, no_text, picture, position_slider, row, says
from components.labels import ACTIVATIONS, decimal, percent, quoted
from components.parts import Part
from components.state.text import Text
from components.widgets.chart import Drawing
from gpt import trace_text

NEAR_ZERO = 0.05
When = Literal["before", "after"]

panel = Panel("ff")


class Hidden(NamedTuple):
    """A token's hidden values in a layer, before and after the activation function, (n_ff,) each."""

    text: Text
    layer: int
    position: int
    before: np.ndarray
    after: np.ndarray

    @property
    def activation(self) -> str:
        return ACTIVATIONS[self.text.config.activation]

    def key(self, name: str) -> str:
        """Return a sentence's catalogue key; gated feed-forward networks have separate sentences."""
        return f"ff.{name}.gated" if self.text.config.gated else f"ff.{name}"


@panel.computed
def hidden(s: Any) -> Hidden:
    text, layer, position = s.text_read(), s.selection.layer, s.position
    here = trace_text(text.loaded.model, text.ids[: position + 1]).layers[layer]
    before, after = (values[0, -1].float().cpu().numpy() for values in (here.mlp_pre, here.mlp_post))
    return Hidden(text, layer, position, before, after)


def answer(s: Any) -> str:
    shown = s[hidden]
    strongest = int(shown.after.argmax())
    return t(
        shown.key("says"),
        layer=shown.layer,
        token=quoted(shown.text.tokenizer, shown.text.ids[shown.position]),
        width=f"{shown.text.config.n_embd:,}",
        hidden=f"{len(shown.after):,}",
        activation=shown.activation,
        active=percent((shown.after > 0).mean()),
        neuron=strongest,
        value=decimal(shown.after[strongest]),
    )


def widths(s: Any) -> Drawing:
    """Draw the vector length at each stage as a bar, labelled with the shape across all tokens."""
    shown = s[hidden]
    width, n_ff = shown.text.config.n_embd, len(shown.after)
    gate = {"ff.gate": n_ff} if shown.text.config.gated else {}
    sizes = {"ff.in": width, **gate, "ff.pre": n_ff, shown.key("post"): n_ff, "ff.out": width}
    names = [t(key, activation=shown.activation) for key in sizes]
    shapes = [f"[{shown.position + 1}, {size}]" for size in sizes.values()]
    return size_bars(names, np.array(list(sizes.values())), shapes), t(shown.key("shapes"))


def values(side: When, s: Any) -> Drawing:
    shown = s[hidden]
    found = getattr(shown, side)
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
        return t(s[hidden].key(side), activation=s[hidden].activation)

    return column(says(f"ff-name-{side}", title, kind="question"), picture(f"ff-{side}", partial(values, side)))


SECTION = panel.section(
    answer,
    row(layer_select("ff-layer"), position_slider("ff-position", "ff.position")),
    picture("ff-widths", widths),
    columns(of_side("before"), of_side("after")),
    notice=no_text,
    reads_text=True,
)
