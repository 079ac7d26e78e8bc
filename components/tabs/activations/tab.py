"""The Activations tab: activation functions with their slopes, a histogram of pre-activations, and a function swap."""

from __future__ import annotations

from components.cards.card import Card, add_cards
from components.events import Events
from components.labels import ACTIVATIONS
from components.panels.activation_curves import SPAN
from components.parts import choice, column, columns, lead, question, select, slider, title_row
from components.state.snapshot import Snapshot
from components.tabs.activations import handlers
from components.tabs.activations.state import ActivationsState
from components.tabs.activations.views import VIEWS
from components.widgets.chart import chart

NAME = "activations"


def build_activations(events: Events) -> None:
    """Build and wire the tab."""
    functions = Card(
        "functions",
        question("activations.question"),
        lead("activations.says"),
        slider("activation-x", -SPAN, SPAN, 0.05, label=lambda s: "x", value=_x, on=handlers.set_x),
        columns(
            column(chart("curves"), grow=3, min_width=300),
            column(
                question("activations.exact.question"),
                chart("exact-gelu"),
                grow=2,
            ),
        ),
    )
    histogram = Card(
        "histogram",
        title_row(
            question("activations.histogram"),
            select(
                "activation-layer",
                lambda s: [(str(layer), layer) for layer in range(1 if s.text is None else s.text.config.n_layer)],
                label="attention.layer",
                value=lambda s: s.selection.layer,
                on=handlers.choose_layer,
                beside=True,
            ),
        ),
        chart("pre-activations"),
    )
    swap = Card(
        "swap",
        question("activations.swap.question"),
        choice(
            "activation-swap",
            [(title, name) for name, title in ACTIVATIONS.items()],
            label="activations.swap",
            value=lambda s: s.state(ActivationsState).activation,
            on=handlers.choose_activation,
        ),
        chart("activation-swapped"),
    )
    add_cards(events, NAME, [functions, histogram, swap], VIEWS, handlers.ANALYSIS)


def _x(s: Snapshot) -> float:
    return s.state(ActivationsState).x
