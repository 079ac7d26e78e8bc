"""The events of a session as a whole: a page that opens, another language, another tab, a frame that was missed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import gradio as gr

from components.events import QUEUES, QUIET, Events, error
from components.frame import Frame
from components.i18n import LANGUAGES, t
from components.render import Control, Renderer, View, components_of
from components.share.opening import open_link
from components.state.saved import restore_session, saved_session
from components.state.session import Session, Snapshot
from components.state.store import is_session_id


def saved_inputs(s: Snapshot) -> Any:
    """What the page keeps changes with these; not while a text is written."""
    return "generating" if s.generating else (s.text, s.typed, s.settings, s.selection, s.tab)


SIGNALS = (
    View("saved", saved_inputs, lambda s: None if s.generating else saved_session(s)),
    View("session", lambda s: s.id, lambda s: s.id),
    View("language", lambda s: s.language, lambda s: s.language),
)


def wire_session(
    app: gr.Blocks,
    events: Events,
    frame: Frame,
    tabs: gr.Tabs,
    controls: dict[str, Sequence[Control]],
    words: Sequence[Control],
    open_session: Callable[..., Session],
    also: Sequence[Any] = (),
) -> Any:
    """Wire them; returns the event after which the page shows what its link asks for.

    controls: by the tab that they belong to; words: everything that the language changes. open_session: makes the
    session that every visitor starts with, of the values of `also`.
    """
    events.renderer.signals.extend(SIGNALS)
    first = [events.open_tab, frame.switching, *controls["playground"]]
    outputs = [events.frame, *components_of([*first, *words])]

    def arrive(session_id: str, kept: str, language: str, *values: Any) -> list[Any]:
        """The page has loaded: its session; a new one, with the text that the page kept, where there is none."""
        if not is_session_id(session_id):
            raise error(t("error.not_ready", "en"))
        session = events.store.get(session_id)
        if session is None:
            session = open_session(*values)
            if kept:
                restore_session(session, kept)
            events.store.put(session_id, session)
        choose_language(session, language)
        events.renderer.start(session)
        updates = events.renderer.updates(session, [*first, *words])
        return [events.renderer.frame(session) or gr.skip(), *updates]

    arrived = app.load(
        arrive,
        [events.client, frame.saved, frame.switch, *also],
        outputs,
        js="(...values) => glassbox.arrive(values)",
        **QUIET,
        **QUEUES["look"],
    )

    def follow_link(session: Session, query: str) -> Iterator[None]:
        yield from open_link(session, query, list(controls))

    opened = events.on(arrived.success, follow_link, [frame.saved], controls=first, queue="model", js=_QUERY)
    events.on(frame.switch.input, choose_language, [frame.switch], controls=[*first, *words])
    events.on(events.frame.retry, miss_frame)
    everything = [control for own in controls.values() for control in own]
    events.on(events.frame.tick, partial(analyse, events.renderer), controls=everything, queue="model")
    for tab in tabs.children:
        if isinstance(tab, gr.Tab):
            own = [events.open_tab, *controls.get(tab.id, ())]
            events.on(
                tab.select,
                partial(open_tab, tab.id),
                [frame.saved],
                controls=own,
                edited=[tabs],
                trigger_mode="always_last",
                js=_NOW,
            )
    return opened


_QUERY = "() => [glassbox.query()]"  # of the page's address, once: not when it is loaded anew


_NOW = "() => [String(performance.timeOrigin + performance.now())]"


def choose_language(session: Session, language: object) -> None:
    """Speak another language; what the browser sends may be anything."""
    if isinstance(language, str) and language in LANGUAGES:
        session.language = language


def open_tab(tab: str, session: Session, clicked: str) -> None:
    """Show another tab, unless a later click was handled before. clicked: when, in ms of the browser's clock."""
    try:
        at = float(clicked)
    except ValueError:
        return
    if at >= session.tab_clicked:
        session.tab, session.tab_clicked = tab, at


def analyse(renderer: Renderer, session: Session) -> Iterator[None]:
    """Compute what the open tab lacks, until it lacks nothing more. One event of a session does it at a time."""
    done: tuple[str, tuple[Hashable, ...]] | None = None
    while session.analysing.acquire(blocking=False):
        try:
            while (missing := _missing(renderer, session)) not in (None, done):
                done = missing
                for analysis, lacks in zip(renderer.analyses[missing[0]], missing[1], strict=True):
                    if lacks is not None:
                        yield from analysis.run(session)
                        yield
        finally:
            session.analysing.release()
        if _missing(renderer, session) in (None, done):  # else another event was turned away in between
            return


def _missing(renderer: Renderer, session: Session) -> tuple[str, tuple[Hashable, ...]] | None:
    """The open tab and what each of its analyses lacks; None for nothing."""
    with session.lock.reading():
        tab, wanted = renderer.wanted(session.snapshot())
    return None if wanted is None else (tab, wanted)


def miss_frame(session: Session) -> None:
    """The browser missed a frame: the next one is whole."""
    session.missed_frame = True
