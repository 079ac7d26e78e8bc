"""The Challenges tab: one challenge at a time, with the tools that it needs."""

from __future__ import annotations

from functools import partial
from typing import Any

from components.cards.card import Card, add_cards
from components.events import Events
from components.parts import Part, caption, column, columns
from components.tabs.challenges import handlers
from components.tabs.challenges.views import VIEWS, Piece, shows
from components.widgets.arcs import arcs
from components.widgets.challenge import challenge_foot, challenge_head
from components.widgets.composer import composer
from components.widgets.features import features
from components.widgets.heads import heads
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.steer import steer
from components.widgets.toggle_grid import toggle_grid

NAME = "challenges"


def build_challenges(events: Events) -> None:
    """Build and wire the tab."""
    title = Card(
        "challenge-title",
        challenge_head("challenge-head", on=handlers.choose),
        sentence("challenge-note", kind="caption"),
        caption("challenges.temperature"),
    )
    box = composer("challenge-box", on_input=handlers.type_text)
    pictures = heads("challenge-heads", on=handlers.pick_head)
    switches = (
        sentence("challenge-tool", kind="caption"),
        toggle_grid("challenge-toggles", on=handlers.toggle),
    )
    bars = predictions("challenge-bars", on=handlers.append_token)
    foot = challenge_foot("challenge-foot", on=handlers.choose)
    work = Card(
        "challenge",
        arcs("challenge-text", on=handlers.pick_token),
        _where("typing", box, grow=0),
        columns(
            _where("pictures", pictures, grow=9, min_width=300),
            _where("switches", *switches, grow=2),
            _where("turning", steer("challenge-concepts", on=handlers.turn_concept), grow=3, min_width=300),
            _where("features", features("challenge-features", on=handlers.pick_feature), grow=9, min_width=300),
            _where("bars", bars, grow=3, min_width=300),
            column(foot, grow=3, min_width=300, classes="gb-challenge-side"),
        ),
    )
    add_cards(events, NAME, [title, work], VIEWS, handlers.ANALYSIS)


def _where(piece: Piece, *parts: Part, **layout: Any) -> Part:
    """Return a column that is visible only if the goal needs it."""
    return column(*parts, name=f"challenge-{piece}", show=partial(shows, piece), **layout)
