"""Events for the session as a whole: loading the page, changing the language, missing a frame."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_network
from typing import Any

import gradio as gr

from components.downloads import VIEW as DOWNLOAD
from components.events import NO_PROGRESS, QUEUES, Events, error
from components.frame import choose_language, choose_numbers
from components.i18n import Language, t
from components.render import View, analyse, is_own
from components.share.address import Places, address_view, navigate
from components.share.opening import open_link
from components.share.sequence import open_sequence, sequence_values
from components.state.hidden import hidden_values, hide_again
from components.state.session import Session
from components.state.settings import Settings
from components.state.snapshot import Message, Snapshot
from components.state.store import is_session_id
from components.state.text import Selection, shading_named
from gpt import Generation, LoadedModel, get_model, list_models

VIEWS = (
    View("saved", lambda s: {} if s.generating else saved_session(s), is_own),
    View("session", lambda s: {"id": s.id}, is_own),
    DOWNLOAD,
    View("voice", lambda s: {"spoken": {"language": s.language, "exact": s.numbers}}, is_own),
)


def wire_session(
    app: gr.Blocks,
    events: Events,
    openings: Mapping[Language, Session],
    places: Places,
) -> Any:
    """Wire these events and return the one that fires once the page has opened its link."""
    events.renderer.add("", (*VIEWS, address_view(places)))

    def arrive(session_id: str, arrived: str, request: gr.Request) -> Any:
        """Find the loaded page's session, or create it from what the page saved.

        arrived: JSON with "kept" (the saved session), "language" and "numbers", unchecked.
        """
        if not is_session_id(session_id):
            raise error(t("error.not_ready"))
        known = _known(arrived)
        kept, language, numbers = (known.get(name) for name in ("kept", "language", "numbers"))
        session = events.store.get(session_id)
        if session is None:
            session = next((each for key, each in openings.items() if key == language), openings["en"]).copy()
            if isinstance(kept, str) and kept:
                restore_session(session, kept, places.tabs)
            events.store.put(session_id, session)
        choose_language(session, language)
        choose_numbers(session, numbers)
        session.address = network(request.client.host if request.client else "")
        session.link_opened = False
        events.renderer.start(session)
        return events.renderer.frame(session) or gr.skip()

    arrived = app.load(
        arrive,
        [events.client, events.client],
        events.frame,
        js="() => glassbox.arrive()",
        **NO_PROGRESS,
        **QUEUES["interactive"],
    )

    def follow_link(session: Session, query: str) -> Iterator[None]:
        try:
            yield from open_link(session, query, places)
        finally:
            session.link_opened = True

    opened = events.on(arrived.success, follow_link, [events.client], queue="model", js=_QUERY)
    events.on(events.frame.navigate, partial(navigate, places), payload=True)
    events.on(events.frame.retry, miss_frame, payload=True)
    events.on(events.frame.tick, partial(analyse, events.renderer), queue="analysis")
    return opened


_QUERY = "() => [glassbox.query()]"  # the query of the address; "" after a reload


def network(host: str) -> str:
    """Return a client's address; for IPv6, only the first 64 bits, because one person controls the rest."""
    try:
        return str(ip_network(f"{host}/64", strict=False)) if ":" in host else host
    except ValueError:
        return host


def _known(arrived: str) -> dict[str, Any]:
    with suppress(ValueError, TypeError):
        known = json.loads(arrived)
        return known if isinstance(known, dict) else {}
    return {}


def miss_frame(session: Session, sent: dict[str, Any]) -> None:
    """Make the next frame contain all views, because the browser missed one.

    sent: "seen", the number of the last frame that the browser received.
    """
    seen = sent.get("seen")
    session.seen_frame = seen if type(seen) is int and 0 <= seen <= session.frame_number else 0


MAX_SAVED_CHARS = 2_000_000


def saved_session(s: Snapshot) -> dict[str, Any]:
    """Return the part of a session that is saved, as JSON-compatible values, always with the same fields.

    It consists of the document with its branches, the text in the box if it differs from the document, the settings,
    the selection, the hidden parts and the stop of a class.
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
        **({"class": None, "stop": None} | sequence_values(s)),
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
    if isinstance(kept.get("class"), str) and type(kept.get("stop")) is int:
        with suppress(ValueError):
            open_sequence(session, kept["class"], max(0, kept["stop"] - 1))
    session.tab = tab if tab in tabs else session.tab
    return True


def _selection(kept: dict[str, Any], loaded: LoadedModel | None) -> Selection:
    """Return a saved selection, limited to the model's layers and heads. Raises ValueError if it is invalid."""
    selection = Selection(**kept)
    numbers = selection.position + 1, selection.layer, selection.head or 0
    if not all(type(each) is int and each >= 0 for each in numbers):
        raise ValueError
    selection = replace(selection, shading=shading_named(selection.shading) or Selection.shading)
    return selection if loaded is None else selection.clamped_to(loaded.model.config, position=selection.position)
