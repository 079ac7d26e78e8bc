"""The feed-forward panel: one token's hidden values before and after the activation function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from components.figures.bars import size_bars
from components.figures.maps import grid
from components.i18n import t
from components.kit import layer_select
from components.labels import ACTIVATIONS, decimal, percent, quoted
from components.panels.panel import (
    Panel,
    Result,
    computed,
    no_text,
    panel_section,
    position_slider,
    problem_sentence,
    text_of,
    value_of,
    waiting_sentence,
)
from components.parts import column, columns, row
from components.render import View
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.chart import chart, chart_data
from components.widgets.sentence import sentence
from gpt import GPT, Trace

NEAR_ZERO = 0.05


class FeedForwardInputs(NamedTuple):
    """The selected token and layer."""

    text: Text
    layer: int
    position: int


class Hidden(NamedTuple):
    """The hidden values before and after the activation function, (n_ff,) each."""

    request: FeedForwardInputs
    before: np.ndarray
    after: np.ndarray

    @property
    def activation(self) -> str:
        return ACTIVATIONS[self.request.text.config.activation]

    def key(self, name: str) -> str:
        """Return a sentence's catalogue key; gated feed-forward networks have separate sentences."""
        return f"ff.{name}.gated" if self.request.text.config.gated else f"ff.{name}"


@dataclass(frozen=True)
class FeedForwardState:
    """The selected token's hidden values in the selected layer."""

    result: Result[Hidden] | None = None


def request_of(s: Snapshot) -> FeedForwardInputs | None:
    text = text_of(s)
    return None if text is None else FeedForwardInputs(text, s.selection.layer, text.at(s.selection))


def compute(request: FeedForwardInputs) -> Hidden:
    return Hidden(request, *hidden(request.text.loaded.model, request.text.ids[: request.position + 1], request.layer))


@torch.inference_mode()
def hidden(model: GPT, ids: Sequence[int], layer: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the last token's hidden values before and after the activation function, (n_ff,) each."""
    trace = Trace()
    model.hidden_states(torch.tensor([ids], device=model.device), trace=trace)
    here = trace.layers[layer]
    return here.mlp_pre[0, -1].float().cpu().numpy(), here.mlp_post[0, -1].float().cpu().numpy()


def result_of(s: Snapshot) -> Hidden | None:
    return value_of(s, s.state(FeedForwardState).result)


def answer(s: Snapshot) -> dict[str, Any]:
    shown = result_of(s)
    if shown is None:
        return {"text": "" if no_text(s) else waiting_sentence(s)}
    text, layer, position = shown.request
    strongest = int(shown.after.argmax())
    caption = t(
        shown.key("says"),
        layer=layer,
        token=quoted(text.tokenizer, text.ids[position]),
        width=f"{text.config.n_embd:,}",
        hidden=f"{len(shown.after):,}",
        activation=shown.activation,
        active=percent((shown.after > 0).mean()),
        neuron=strongest,
        value=decimal(shown.after[strongest]),
    )
    return {"text": caption}


def widths(s: Snapshot) -> dict[str, Any]:
    """Draw the vector length at each stage as a bar, labelled with the shape across all tokens."""
    shown = result_of(s)
    if shown is None:
        return chart_data(None, "")
    width, n_ff = shown.request.text.config.n_embd, len(shown.after)
    sizes = {"ff.in": width, "ff.pre": n_ff, shown.key("post"): n_ff, "ff.out": width}
    if shown.request.text.config.gated:
        sizes = {"ff.in": width, "ff.gate": n_ff, "ff.pre": n_ff, shown.key("post"): n_ff, "ff.out": width}
    names = [t(key, activation=shown.activation) for key in sizes]
    shapes = [f"[{shown.request.position + 1}, {size}]" for size in sizes.values()]
    return chart_data(size_bars(names, np.array(list(sizes.values())), shapes), t(shown.key("shapes")))


def name(side: Literal["before", "after"], s: Snapshot) -> dict[str, Any]:
    shown = result_of(s)
    return {"text": "" if shown is None else t(shown.key(side), activation=shown.activation)}


def before(s: Snapshot) -> dict[str, Any]:
    """Draw the values before the activation function as a grid."""
    shown = result_of(s)
    if shown is None:
        return chart_data(None, "")
    values = shown.before
    low, high = decimal(values.min()), decimal(values.max())
    caption = {"hidden": f"{len(values):,}", "low": low, "high": high, "negative": percent((values < 0).mean())}
    return chart_data(cells(values, s), t("ff.before.says", **caption))


def after(s: Snapshot) -> dict[str, Any]:
    """Draw the values after the activation function as a grid."""
    shown = result_of(s)
    if shown is None:
        return chart_data(None, "")
    values = shown.after
    quiet = percent((np.abs(values) < NEAR_ZERO).mean())
    caption = {"low": decimal(values.min()), "high": decimal(values.max()), "quiet": quiet}
    return chart_data(cells(values, s), t("ff.after.says", **caption))


def cells(values: np.ndarray, s: Snapshot) -> Any:
    """Return the values as a grid about twice as wide as it is high, filled row by row and padded with NaN."""
    columns = max(1, round((2 * len(values)) ** 0.5))
    rows = -(-len(values) // columns)
    filled = np.full(rows * columns, np.nan, dtype=np.float32)
    filled[: len(values)] = values
    return grid(filled.reshape(rows, columns), value_title=t("ff.neuron"))


VIEWS = (
    View("ff-answer", answer),
    View("ff-notice", lambda s: problem_sentence(s, no_text(s), s.state(FeedForwardState).result)),
    View("ff-widths", widths),
    View("ff-name-before", partial(name, "before")),
    View("ff-name-after", partial(name, "after")),
    View("ff-before", before),
    View("ff-after", after),
)
ANALYSIS = computed(FeedForwardState, request_of, compute)


def build_feed_forward() -> Panel:
    """Build the panel for the selected token in the selected layer of the visitor's model."""
    sides = (
        column(
            sentence(f"ff-name-{side}", kind="question"),
            chart(f"ff-{side}"),
        )
        for side in ("before", "after")
    )
    part = panel_section(
        "ff",
        row(layer_select("ff-layer"), position_slider("ff-position", "ff.position"), classes="gb-panel-controls"),
        chart("ff-widths"),
        columns(*sides),
    )
    return Panel(part, VIEWS, ANALYSIS)
