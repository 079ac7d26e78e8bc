"""The Concepts tab in Why?, which measures feature activity while it is open and nothing is being generated."""

from __future__ import annotations

from components.cards.card import Card, add_cards
from components.concepts import MAX_QUERY_CHARS, concepts_of, turn
from components.events import Events
from components.parts import choice, column, columns, question, section, text_box, title_row
from components.state.snapshot import Snapshot
from components.tabs.concepts import handlers
from components.tabs.concepts.state import choices
from components.tabs.concepts.views import VIEWS, layer_of
from components.widgets.features import features
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.snippets import snippets
from components.widgets.steer import steer

NAME = "concepts"


def build_concepts(events: Events) -> None:
    """Build and wire the tab."""
    text = Card(
        "concepts-text",
        title_row(
            question("concepts.tab.question"),
            choice(
                "concepts-layer",
                _layers,
                label="concepts.layer",
                labelled=True,
                value=lambda s: s.cached(layer_of),
                on=handlers.choose_layer,
                show=lambda s: _has_concepts(s) and not s.cached(choices).query,  # a search covers all layers
            ),
            text_box(
                "concepts-search",
                max_length=MAX_QUERY_CHARS,
                label="concepts.search",
                placeholder="concepts.search.placeholder",
                value=lambda s: s.cached(choices).query,
                on=handlers.search,
                show=_has_concepts,
            ),
        ),
        sentence("concepts-lead", kind="lead"),
        features("concepts-features", on=handlers.pick),
    )
    chosen = Card(
        "concepts-chosen",
        section(
            sentence("concepts-title", kind="question"),
            sentence("concepts-about", kind="caption"),
            columns(
                column(snippets("concepts-evidence"), grow=3, min_width=320),
                column(steer("concepts-slider", on=turn), predictions("concepts-bars", selectable=False), grow=2),
            ),
            name="concepts-detail",
            show=lambda s: s.cached(choices).chosen is not None,
        ),
        classes="",
    )
    add_cards(events, NAME, [text, chosen], VIEWS, handlers.ANALYSIS)


def _has_concepts(s: Snapshot) -> bool:
    return concepts_of(s) is not None


def _layers(s: Snapshot) -> list[tuple[str, int]]:
    concepts = concepts_of(s)
    return [] if concepts is None else [(str(layer), layer) for layer in sorted(concepts.dictionaries)]
