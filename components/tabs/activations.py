"""The Activations tab: activation functions with their slopes, this model's pre-activations, and a function swap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components import kit
from components.figures.bars import histogram as histogram_figure
from components.figures.lines import lines
from components.i18n import t
from components.labels import ACTIVATIONS, decimal, percent, power, quoted
from components.next_tokens import best_of_both, no_bars, token_bars
from components.panels.activation_curves import POINTS, SPAN, curves_chart
from components.widgets.chart import Drawing
from components.widgets.simple import predictions
from gpt import Edits, trace_text
from gpt.experiments.layers import gelu_difference

BINS = 60
BARS = 8

tab = kit.Tab("activations")


@tab.state
class Chosen:
    """x: the point at which the functions are evaluated. swap: the function that replaces the model's own."""

    x: float = kit.setting(1.0, low=-SPAN, high=SPAN, step=0.05)
    swap: str = kit.setting("relu", ACTIVATIONS)


@tab.computed
def histogram(s: Any) -> tuple[np.ndarray, dict[str, float]]:
    """Count one layer's pre-activations at all positions that the model has read.

    Returns the fraction of the values in each bin, (BINS,), and the number of values, the fractions of those below zero
    and outside the bins, and their mean and standard deviation.
    """
    text = s.text_read()
    trace = trace_text(text.loaded.model, text.ids[: text.n_read], text.document.edits)
    values = trace.layers[s.selection.layer].mlp_pre.float().cpu().numpy().ravel()
    shares, n = np.histogram(values, bins=BINS, range=(-SPAN, SPAN))[0] / len(values), len(values)
    parts = {"negative": (values < 0).mean(), "outside": 1 - shares.sum()}
    return shares, parts | {"n": n, "mean": values.mean(), "std": values.std()}


@tab.computed
@torch.inference_mode()
def swapped(s: Any) -> tuple[Tensor, Tensor]:
    """Return the next token's logits with the model's own function and with the replacement, (vocab_size,) each."""
    text, position, swap = s.text_read(), s.position, s[Chosen].swap
    model = text.loaded.model
    idx = torch.tensor([text.ids[: position + 1]], device=model.device)
    own = text.document.edits or Edits()
    both = (model(idx, edits=edits)[0, -1] for edits in (own, replace(own, activation=swap)))
    before, after = (text.document.possible(position, logits) for logits in both)
    return before, after


def exact(s: Any) -> Drawing:
    """Plot the difference between GPT-2's GELU and the exact GELU, and mark its value at x."""
    x = s[Chosen].x
    grid = torch.linspace(-SPAN, SPAN, POINTS)
    difference = gelu_difference(grid)
    figure = lines(
        grid.numpy(),
        {t("activations.exact"): difference.numpy()},
        x_title="x",
        y_title=t("activations.exact"),
        mark=(decimal(x, 2), x),
    )
    here, most = gelu_difference(torch.tensor(float(x))).item(), difference.abs().max().item()
    return figure, t("activations.exact.says", x=decimal(x, 2), here=power(here), most=power(most))


def before(s: Any) -> Drawing:
    (shares, of), edges = s[histogram], np.linspace(-SPAN, SPAN, BINS + 1)
    figure = histogram_figure(shares, edges, x_title=t("activations.pre"), y_title=t("activations.count"))
    of_text = {"layer": s.selection.layer, "n": f"{of['n']:,}", "tokens": s.text.n_read}
    parts = {name: percent(of[name]) for name in ("negative", "outside")}
    moments = {"mean": decimal(of["mean"]), "std": f"{of['std']:.2f}"}
    return figure, t("activations.histogram.says", **of_text, **parts, **moments)


def predictions_swapped(s: Any) -> tuple[Tensor, Tensor]:
    """Return the next token's probabilities with the model's own function and with the other one, (vocab_size,)."""
    before, after = (s.stages(logits, s.text.ids[: s.position + 1]).final for logits in s[swapped])
    return before, after


def bars(s: Any) -> dict[str, Any]:
    before, after = predictions_swapped(s)
    ids = best_of_both(before, after, BARS)
    return token_bars(t("bars.question"), s.text.tokenizer, ids, before.numpy(), after.numpy(), "activations.bar")


def swap(s: Any) -> str:
    s.text_read()
    before, after = predictions_swapped(s)
    moved = (after - before).abs().sum().item() / 2  # total variation distance
    tokenizer, own, other = s.text.tokenizer, s.text.config.activation, s[Chosen].swap
    best = int(before.argmax())
    values = {"token": quoted(tokenizer, s.text.ids[s.position]), "best": quoted(tokenizer, best)}
    values |= {"before": percent(before[best].item()), "name": ACTIVATIONS[other]}
    if other == own:
        return t("activations.swap.same", **values)
    values |= {"after": percent(after[best].item()), "moved": percent(round(moved, 6))}
    says = t("activations.swap.says" if values["before"] != values["after"] else "activations.swap.still", **values)
    if (now := int(after.argmax())) != best:
        says += t("hidden.best", best=quoted(tokenizer, now), p=percent(after[now].item()))
    return says + t("activations.thick", name=ACTIVATIONS[own])


curves = kit.picture("curves", lambda s: curves_chart(s[Chosen].x))
tab.cards(
    kit.card(
        "functions",
        kit.question("activations.question"),
        kit.lead("activations.says"),
        kit.columns(
            kit.column(kit.slider(Chosen.x, "activations.x"), curves, grow=3, min_width=300),
            kit.column(kit.question("activations.exact.question"), kit.picture("exact-gelu", exact), grow=2),
        ),
    ),
    kit.card(
        "histogram",
        kit.title_row(kit.question("activations.histogram"), kit.layer_select("activations-layer", beside=True)),
        kit.picture("pre-activations", before),
    ),
    kit.card(
        "swap",
        kit.question("activations.swap.question"),
        kit.choice(Chosen.swap, "activations.swap"),
        predictions("activation-bars", selectable=False, draw=bars, empty=no_bars()),
        kit.says("activation-swapped", swap),
    ),
)
