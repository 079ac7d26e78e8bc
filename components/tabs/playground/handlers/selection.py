"""Handlers for the selection, the settings, the prompt and the pipeline card. They never run the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from components.errors import PageError
from components.labels import token_text, visible
from components.state.selection import shading_named
from components.state.session import Session
from components.state.settings import LIMITS, Settings
from components.tabs.playground.state import PRESETS, PlaygroundState, Unit
from components.text_views import AVERAGE, heatmap_window
from gpt.analysis.vocabulary_search import search_vocabulary

MAX_SEARCH_CHARS = 80
MAX_CHOICES = 12  # maximum number of search results


def set_values(names: Sequence[str], session: Session, *values: object) -> None:
    """Set the sliders, the seed and the pace."""
    for name, value in zip(names, values, strict=True):
        session.settings = session.settings.with_value(name, value)


def choose_preset(session: Session, name: object) -> None:
    """Apply a preset of sampling settings."""
    if name in PRESETS:
        session.settings = replace(session.settings, **PRESETS[name])


def select_token(session: Session, sent: dict[str, Any]) -> None:
    """Select the token clicked in a strip."""
    session.select(position=sent.get("index"))


def select_in_box(session: Session, sent: dict[str, Any]) -> None:
    """Select the token clicked in the box, which also shows hidden words."""
    position, document = sent.get("index"), session.document
    if document is not None and type(position) is int and 0 <= position < len(document.ids):
        session.selection = replace(session.selection, position=position)


def select_row(session: Session, sent: dict[str, Any]) -> None:
    """Select the token whose row was clicked in the heatmap."""
    row = sent.get("y")
    with session.lock.reading():
        text = session.snapshot().text
    if text is not None and type(row) is int:
        session.select(position=heatmap_window(text, text.at(session.selection))[0] + row)


def choose_layer(session: Session, layer: object) -> None:
    """Select a layer."""
    session.select(layer=_whole_number(layer))


def choose_head(session: Session, head: object) -> None:
    """Select a head, or the average of all."""
    number = _whole_number(head)
    if number == AVERAGE:
        session.selection = replace(session.selection, head=None)
    else:
        session.select(head=number)


def choose_shading(session: Session, shading: object) -> None:
    """Choose the quantity that shades the strip."""
    if chosen := shading_named(shading):
        session.selection = replace(session.selection, shading=chosen)


def unfold_pipeline(session: Session, is_open: object) -> None:
    """Open or close the pipeline card, which is computed only while open."""
    session.change(PlaygroundState, pipeline_open=is_open is True)


def choose_unit(session: Session, unit: object) -> None:
    """Choose the unit of the pipeline chart."""
    if unit in get_args(Unit):
        session.change(PlaygroundState, unit=unit)


def follow_token(session: Session, wanted: object) -> None:
    """Follow the chosen token, or the first search result, through the stages of the pipeline."""
    with session.lock.reading():
        text = session.snapshot().text
    if text is None or text.n_read == 0:
        return
    found: tuple[int, ...] = ()
    if isinstance(wanted, str):
        query = wanted[:MAX_SEARCH_CHARS]
        logits = text.document.logits(text.at(session.selection))
        hits = search_vocabulary(text.tokenizer, logits, query, limit=MAX_CHOICES)
        found = tuple(hit.token_id for hit in hits)
        if not found:
            raise PageError("pipeline.unknown", query=visible(query))
        wanted = found[0]
    if type(wanted) is int and 0 <= wanted < text.config.vocab_size:
        followed, *others = ((i, token_text(text.tokenizer, i)) for i in (wanted, *found))
        session.change(PlaygroundState, followed=followed, found=tuple(others))


def follow_picked(session: Session, picked: object) -> None:
    """Follow the token picked from a list or typed. `picked` is a list with one id or string."""
    if isinstance(picked, list) and picked:
        follow_token(session, picked[0])


def follow_line(session: Session, sent: dict[str, Any]) -> None:
    """Follow the token whose line was clicked."""
    if type(sent.get("customdata")) is int:
        follow_token(session, sent["customdata"])


def preset_of(settings: Settings) -> str | None:
    """Return the name of the preset with these settings, or None if no preset matches."""
    now = {name: getattr(settings, name) for name in LIMITS}
    return next((name for name, values in PRESETS.items() if values == now), None)


def _whole_number(choice: object) -> int | None:
    """Parse a chosen or typed number, or return None if it is invalid."""
    if isinstance(choice, str) and choice.isascii() and choice.isdecimal():
        return int(choice[:9])
    return choice if type(choice) is int else None
