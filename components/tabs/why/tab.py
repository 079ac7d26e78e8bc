"""The Causes tab in Why?, which runs its analyses only while it is open and nothing is being generated."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

from components.cards.card import Card, add_cards
from components.events import Events
from components.i18n import t
from components.parts import (
    Live,
    Part,
    caption,
    choice,
    column,
    columns,
    fold,
    pick_list,
    question,
    row,
    section,
    select,
    title_row,
)
from components.state.snapshot import Snapshot
from components.tabs.why import analysis, handlers
from components.tabs.why.predictions import METHODS
from components.tabs.why.state import By, Order, Role, Sample, WhyState
from components.tabs.why.views import VIEWS
from components.tabs.why.views.tokens import short, token_choices
from components.widgets.chart import chart
from components.widgets.paths import paths
from components.widgets.ribbons import ribbons
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from gpt.analysis.lens import LENS_POINTS

NAME = "why"


def build_why(events: Events) -> None:
    """Build and wire the tab."""
    answer = Card(
        "why-answer",
        title_row(
            question("why.question"),
            _switch("by", get_args(By), show=_has_concepts),
            select("why-token", _tokens, label="why.token", value=_token, on=handlers.choose_token, beside=True),
        ),
        sentence("why-because", kind="lead"),
        ribbons("why-flow", on=handlers.switch, queue="model"),
        paths("why-paths", on=handlers.switch_part, queue="model"),
        sentence("why-no-paths", kind="notice"),
        sentence("why-lead", kind="caption"),
        sentence("why-status", kind="status"),
        classes="gb-card gb-why-lead",
    )
    evidence = Card("why-more", fold("why-evidence", "why.evidence", _text(), *_lens(), _parts(), _roles()), classes="")
    add_cards(events, NAME, [answer, evidence], VIEWS, analysis.ANALYSIS)


def _text() -> Part:
    """Build the text, shaded by how much the prediction depends on each token."""
    return section(
        title_row(question("why.text.question"), _switch("method", METHODS)),
        sentence("why-method-says", kind="caption"),
        sentence("why-trouble", kind="notice"),
        columns(
            column(tokens("why-strip", on=handlers.choose_position), grow=3, min_width=320),
            column(chart("why-influence"), grow=2),
        ),
    )


def _lens() -> tuple[Part, Part]:
    """Build the map and charts of the predictions that the model would make after each layer."""
    cells = section(
        title_row(question("why.lens.question"), _switch("stage", LENS_POINTS)),
        caption("why.lens.says"),
        chart("why-lens", clickable=True, on=handlers.choose_cell),
    )
    watched = pick_list(
        "why-watch",
        _to_watch,
        label="why.watch",
        info="why.watch.info",
        most=handlers.MAX_WATCHED,
        value=_watched,
        on=handlers.watch,
    )
    path = section(
        sentence("why-path-question", kind="question"),
        watched,
        chart("why-path"),
        grow=1,
    )
    cell = section(question("why.cell.question"), chart("why-cell"), grow=1)
    return cells, row(cell, path, classes="gb-cards gb-why-cards")


def _parts() -> Part:
    """Build the charts of each part's contribution to the logit."""
    against = select(
        "why-against", _others, label="why.against", value=_against, on=handlers.choose_against, beside=True
    )
    return section(
        title_row(question("why.parts.question"), against, _switch("order", get_args(Order))),
        caption("why.parts.says"),
        columns(
            column(chart("why-parts", clickable=True, on=handlers.choose_bar)),
            column(chart("why-heads", clickable=True, on=handlers.choose_head)),
        ),
    )


def _roles() -> Part:
    """Build the map of the heads' roles, and the selected head's attention."""
    roles = section(
        question("why.roles.question"),
        row(_switch("role", get_args(Role)), _switch("sample", get_args(Sample)), classes="gb-why-switches"),
        sentence("why-role-says", kind="caption"),
        chart("why-roles", clickable=True, on=handlers.choose_head),
        grow=1,
    )
    selected = section(question("why.head.question"), caption("why.head.says"), chart("why-head"), grow=1)
    return row(roles, selected, classes="gb-cards gb-why-cards")


def _switch(name: str, values: tuple[str, ...], show: Live | None = None) -> Part:
    """Build a choice between a few values for a field of `WhyState`."""
    return choice(
        f"why-{name}",
        lambda s: [(t(f"why.{name}.{each}"), each) for each in values],
        label=f"why.{name}",
        value=lambda s: getattr(s.state(WhyState), name),
        on=partial(handlers.choose, name, handlers.CHOICES[name]),
        show=show,
    )


def _has_concepts(s: Snapshot) -> bool:
    return s.text is not None and s.text.loaded.concepts is not None


def _tokens(s: Snapshot) -> list[tuple[str, int]]:
    """Return the tokens to choose from: the likeliest ones and the next one in the text."""
    shown = s.state(WhyState).shown
    return [] if shown is None else token_choices(shown.traced, shown.prediction, s.settings.sampling())


def _token(s: Snapshot) -> int | None:
    shown = s.state(WhyState).shown
    return None if shown is None else shown.prediction.token


def _others(s: Snapshot) -> list[tuple[str, int]]:
    """Return the tokens to compare with, and a choice for no token."""
    token = _token(s)
    if token is None:
        return []
    return [(t("why.against.none"), handlers.NOTHING), *(each for each in _tokens(s) if each[1] != token)]


def _against(s: Snapshot) -> int | None:
    shown = s.state(WhyState).shown
    return None if shown is None else handlers.NOTHING if shown.against is None else shown.against


def _watched(s: Snapshot) -> list[Any]:
    """Return the entries in the list of watched tokens."""
    state = s.state(WhyState)
    return [] if state.shown is None else list(state.watched.of(state.shown.traced.loaded.tokenizer).entries)


def _to_watch(s: Snapshot) -> list[tuple[str, int]]:
    """Return the likeliest tokens, followed by any other watched tokens."""
    shown, best = s.state(WhyState).shown, _tokens(s)
    if shown is None:
        return []
    known, tokenizer = {each for _, each in best}, shown.traced.loaded.tokenizer
    return [*best, *((short(tokenizer, i), i) for i in _watched(s) if isinstance(i, int) and i not in known)]
