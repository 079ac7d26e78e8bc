"""The open tab. Shapes and Loss are inner tabs of one tab, Tools."""

from __future__ import annotations

from functools import partial

import gradio as gr

from components.events import Events
from components.render import Control
from components.state.session import Session
from components.state.snapshot import Snapshot

TOOLS = ("shapes", "loss")  # ids of the inner tabs of the tab "tools"


def wire_tabs(events: Events, tabs: gr.Tabs, tools: gr.Tabs, placeholder: gr.Textbox) -> None:
    """Wire the row of tabs and that of the tools. placeholder: any input, in whose place the time of the click is
    sent."""
    controls = [
        Control(tabs, _outer_tab, lambda s: {"selected": _outer_tab(s), "at": s.navigated}),
        Control(tools, _tool, lambda s: {} if _tool(s) is None else {"selected": _tool(s), "at": s.navigated}),
    ]
    events.renderer.add("", controls=controls)
    for row in (tabs, tools):
        for tab in tabs_of(row):
            select = partial(open_tab, tab.id)
            clicked = f"() => [glassbox.clickOn?.({tab.id!r}) ?? '0']"  # 0 before the scripts are there
            events.on(tab.select, select, [placeholder], edited=[row], trigger_mode="always_last", js=clicked)


def tabs_of(row: gr.Tabs) -> list[gr.Tab]:
    return [tab for tab in row.children if isinstance(tab, gr.Tab)]


def open_tab(tab: str, session: Session, clicked: str) -> None:
    """Open a tab, unless a later click was handled first; "tools" opens the last tool. Another tab closes the film.

    clicked: time of the click in ms of the browser's clock; 0 without a click.
    """
    try:
        at = float(clicked)
    except (TypeError, ValueError):
        return
    if at > session.navigated:
        if session.tab in TOOLS:
            session.tool = session.tab
        opened = session.tool if tab == "tools" else tab
        if opened != session.tab:
            session.film = None
        session.tab, session.navigated = opened, at


def _outer_tab(s: Snapshot) -> str:
    return "tools" if s.tab in TOOLS else s.tab


def _tool(s: Snapshot) -> str | None:
    return s.tab if s.tab in TOOLS else None
