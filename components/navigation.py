"""Navigation between tabs. Where tabs are nested, the session's `tab` is the id of the open inner tab."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events
from components.i18n import t
from components.state.session import Session
from components.state.snapshot import Snapshot

INNER = {  # ids of the inner tabs, by the id of the enclosing tab
    "look": ("inside", "why", "concepts", "change", "activations", "embeddings"),
    "learn": ("lessons", "challenges", "learned", "build", "glossary"),
    "lab": ("compare", "train", "shapes", "loss"),
}


def wire_tabs(events: Events, rows: Sequence[gr.Tabs], placeholder: gr.Textbox) -> None:
    """Wire the rows of tabs. placeholder: any input; the time of the click is sent in its place."""
    clicked = "() => [glassbox.clickOn?.() ?? '0']"  # '0' before the scripts have loaded
    for row in rows:
        ids = [str(tab.id) for tab in tabs_of(row)]
        events.show(row, partial(_selection, ids))
        for tab in tabs_of(row):
            events.show(tab, partial(_label, f"tab.{tab.id}"))
        events.on(row.select, partial(select, ids), [placeholder], payload=True, js=clicked)


def tabs_of(row: gr.Tabs) -> list[gr.Tab]:
    return [tab for tab in row.children if isinstance(tab, gr.Tab)]


def selected_in(ids: Sequence[str], s: Snapshot) -> str | None:
    """Return the tab in a row that is open or contains the open tab, or None if there is none."""
    return next((id for id in ids if id == s.tab or s.tab in INNER.get(id, ())), None)


def select(ids: Sequence[str], session: Session, clicked: str, sent: dict[str, Any]) -> None:
    """Open the clicked tab in a row. sent: the tab's "index", unchecked."""
    index = sent.get("index")
    if type(index) is int and 0 <= index < len(ids):
        open_tab(ids[index], session, clicked)


def open_tab(tab: str, session: Session, clicked: str) -> None:
    """Open a tab unless a later click was handled first.

    A tab with inner tabs shows the one that was open last. Opening another tab closes the film. clicked: time of the
    click in ms on the browser's clock; 0 if there was no click.
    """
    try:
        at = float(clicked)
    except (TypeError, ValueError):
        return
    if at > session.navigated:
        session.inner_tabs |= {outer: session.tab for outer, ids in INNER.items() if session.tab in ids}
        inner = INNER.get(tab, (tab,))
        opened = next((each for each in (session.tab, session.inner_tabs.get(tab)) if each in inner), inner[0])
        if opened != session.tab:
            session.film = None
        session.tab, session.navigated = opened, at


def _selection(ids: Sequence[str], s: Snapshot) -> dict[str, Any]:
    selected = selected_in(ids, s)
    return {} if selected is None else {"selected": selected, "at": s.navigated}


def _label(key: str, s: Any) -> dict[str, Any]:
    return {"label": t(key)}
