"""Saving part of a session in the browser, which restores it after a restart or expiry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from components.errors import PageError
from components.state.hidden import hidden_values, hide_again
from components.state.selection import NEWEST, Selection, shading_named
from components.state.session import Session
from components.state.settings import Settings
from components.state.snapshot import Message, Snapshot
from gpt import Generation, LoadedModel, get_model, list_models

MAX_SAVED_CHARS = 2_000_000


def saved_session(s: Snapshot) -> dict[str, Any]:
    """Return the part of a session that is saved, as JSON-compatible values, always with the same fields.

    It consists of the document with its branches, the text in the box if it differs from the document, the settings,
    the selection and the hidden parts.
    """
    try:
        document = None if s.written is None else s.written.document.to_json()
    except ValueError:  # edits that have no text form
        document = None
    return {
        "document": document,
        "prompt": s.prompt,
        "unwritten": s.unwritten,
        "model": s.model,
        "tab": s.tab,
        "settings": vars(s.settings),
        "selection": vars(s.selection),
        "special": s.special,
        "hidden": None,
        "attention": None,
        **hidden_values(s),
    }


def restore_session(session: Session, saved: str, tabs: Sequence[str]) -> bool:
    """Restore saved JSON into a new session; return False if the JSON is invalid.

    saved: from a browser, unchecked. tabs: ids of the tabs, which may have changed since. On failure the session is
    unchanged.
    """
    try:
        kept = json.loads(saved[:MAX_SAVED_CHARS])
        document = Generation.from_json(kept["document"]) if kept["document"] else None
        prompt, model, tab = (str(kept[name]) for name in ("prompt", "model", "tab"))
        settings = Settings()
        for name, value in kept["settings"].items():
            settings = settings.with_value(name, value)
        loaded = session.loaded
        if document is not None:
            document.read()
            loaded = document.loaded
        elif model in list_models():
            with suppress(ValueError):
                loaded = get_model(model)
        selection = _selection(kept["selection"], loaded)
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return False
    session.document, session.prompt = document, prompt
    if isinstance(kept.get("unwritten"), str):
        session.set_typed(kept["unwritten"], is_current=False)
    session.settings, session.selection, session.special = settings, selection, kept.get("special") is True
    session.last_action = Message("status.restored")
    if loaded is not None:
        session.model, session.loaded = loaded.name, loaded
    hide_again(session, kept)
    session.tab = tab if tab in tabs else session.tab
    return True


def _selection(kept: dict[str, Any], loaded: LoadedModel | None) -> Selection:
    """Return a saved selection, limited to the model's layers and heads. Raises ValueError if it is invalid."""
    selection = Selection(**kept)
    numbers = selection.position, selection.layer, selection.head or 0
    if not all(type(each) is int and each >= low for each, low in zip(numbers, (NEWEST, 0, 0), strict=True)):
        raise PageError("error.link_value", value=str(numbers))
    selection = replace(selection, shading=shading_named(selection.shading) or Selection.shading)
    return selection if loaded is None else selection.clamped_to(loaded.model.config, position=selection.position)
