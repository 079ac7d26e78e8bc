"""Views for the Activations tab."""

from __future__ import annotations

from typing import Any

import torch

from components.figures import bars
from components.figures.lines import lines
from components.i18n import Language, t
from components.labels import ACTIVATIONS, decimal, percent, power, quoted, token_text
from components.panels.activation_curves import POINTS, SPAN, curves_chart
from components.panels.panel import best_of_both
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.activations.state import ActivationsState, Histogram, Swap
from components.widgets.chart import chart_data
from gpt.experiments.activations import gelu_difference

BARS = 8


def exact_chart(x: float, language: Language) -> dict[str, Any]:
    """Plot the difference between GPT-2's GELU and the exact GELU, and mark its value at x."""
    grid = torch.linspace(-SPAN, SPAN, POINTS)
    difference = gelu_difference(grid)
    figure = lines(
        grid.numpy(),
        {t("activations.exact", language): difference.numpy()},
        x_title="x",
        y_title=t("activations.exact", language),
        mark=(decimal(x, 2), x),
        height=280,
    )
    here = gelu_difference(torch.tensor(float(x))).item()
    most = difference.abs().max().item()
    text = t("activations.exact.says", language, x=decimal(x, 2), here=power(here), most=power(most))
    return chart_data(figure, text)


def histogram_chart(found: Histogram, language: Language) -> dict[str, Any]:
    """Plot the pre-activations of one layer as a histogram."""
    figure = bars.histogram(
        found.shares,
        found.edges,
        x_title=t("activations.pre", language),
        y_title=t("activations.count", language),
    )
    text = t(
        "activations.histogram.says",
        language,
        layer=found.layer,
        n=f"{found.n:,}",
        tokens=found.text.n_read,
        negative=percent(found.negative),
        mean=decimal(found.mean, 2),
        std=f"{found.std:.2f}",
        outside=percent(found.outside),
    )
    return chart_data(figure, text)


def swap_chart(s: Snapshot, found: Swap) -> dict[str, Any]:
    """Compare the next-token predictions with the model's own activation function and with the replacement."""
    tokenizer, trained, language = found.text.tokenizer, found.text.config.activation, s.language
    ids = found.text.ids[: found.position + 1]
    before, after = (s.stages(logits, ids).final for logits in (found.before, found.after))
    moved = (after - before).abs().sum().item() / 2  # total variation distance
    shown = best_of_both(before, after, BARS)
    figure = bars.next_token_bars(
        [token_text(tokenizer, token_id) for token_id in shown],
        before[shown].numpy(),
        after[shown].numpy(),
        before_name=t("activations.swap.before", language, name=ACTIVATIONS[trained]),
        after_name=t("activations.swap.after", language, name=ACTIVATIONS[found.activation]),
    )
    best = shown[0]
    values = {"token": quoted(tokenizer, found.text.ids[found.position]), "best": quoted(tokenizer, best)}
    values |= {"before": percent(before[best].item()), "name": ACTIVATIONS[found.activation]}
    if found.activation == trained:
        return chart_data(figure, t("activations.swap.same", language, **values))
    values |= {"after": percent(after[best].item()), "new_best": quoted(tokenizer, int(after.argmax().item()))}
    return chart_data(figure, t("activations.swap.says", language, moved=percent(round(moved, 6)), **values))


def curves(s: Snapshot) -> dict[str, Any]:
    return curves_chart(s.state(ActivationsState).x, s.language)


def exact(s: Snapshot) -> dict[str, Any]:
    return exact_chart(s.state(ActivationsState).x, s.language)


def histogram(s: Snapshot) -> dict[str, Any]:
    """Show the histogram for the current text.

    The previous layer's histogram stays visible until the chosen layer's is ready.
    """
    found = s.state(ActivationsState).histogram
    return chart_data(None, "") if found is None or found.text != s.text else histogram_chart(found, s.language)


def swap(s: Snapshot) -> dict[str, Any]:
    """Show the predictions at the selected position.

    The previous result stays visible until the one for the chosen activation function is ready.
    """
    found = s.state(ActivationsState).swap
    if found is None or (found.text, found.position) != (s.text, s.position):
        return chart_data(None, "")
    return swap_chart(s, found)


def swap_inputs(s: Snapshot) -> tuple[Any, ...]:
    return s.state(ActivationsState).swap, s.text, s.position, s.settings.sampling(), s.language


def curve_inputs(s: Snapshot) -> tuple[Any, ...]:
    return s.state(ActivationsState).x, s.language


VIEWS = (
    View("curves", curve_inputs, curves),
    View("exact-gelu", curve_inputs, exact),
    View("pre-activations", lambda s: (s.state(ActivationsState).histogram, s.text, s.language), histogram),
    View("activation-swapped", swap_inputs, swap),
)
