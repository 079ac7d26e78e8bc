"""The page, built from frame, tabs and API, and its launch options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from components import limits
from components.api.registration import register_endpoints
from components.assets import HEAD, ON_OPEN, ROUTES
from components.causes import reason
from components.classroom import wire_class
from components.events import Events
from components.first_screen import SCREEN, FirstScreen, first_screen
from components.frame import build_frame, measured
from components.gradio_workarounds import Answers, look_less_often
from components.i18n import LANGUAGES, t
from components.monitoring import SESSION_BYTES, SESSIONS
from components.render import Renderer, compute
from components.request_limits import RequestLimits
from components.session_events import wire_session
from components.share.address import LinkedPage, Opening, Places
from components.state.example import example, opening
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.store import SessionStore
from components.tabs import activations, concepts, glossary, loss
from components.tabs import course as build_tab
from components.tabs.challenges.goals import CHALLENGES
from components.tabs.challenges.tab import challenge_key, open_challenge
from components.tabs.challenges.tab import tab as challenges
from components.tabs.change.tab import tab as change
from components.tabs.compare.tab import build_compare
from components.tabs.inside import stream
from components.tabs.inside.film import build_film, look_inside, open_film
from components.tabs.inside.machine import ExamplePass
from components.tabs.inside.scene import Chosen as InsideChosen
from components.tabs.inside.scene import tab as inside
from components.tabs.inside.tab import open_step
from components.tabs.lessons.tab import OtherTabs, lesson_key, lessons, open_lesson
from components.tabs.playground.editing import select_token
from components.tabs.playground.generation import pick_model, stop, write_prompt
from components.tabs.playground.prediction import hide_main
from components.tabs.playground.tab import build_playground
from components.tabs.shapes.building import build_shapes
from components.tabs.shapes.size import set_shape
from components.tabs.train.film import build_learned
from components.tabs.train.tab import build_train
from components.tabs.why.tab import tab as why
from components.theme import THEME
from gpt import DEFAULT_MODEL, add_model, get_model
from gpt.models.sources import POEMS_MODEL

STYLES = ("page.css", "tabs/tabs.css", "tabs/lessons/lessons.css")
CSS = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in STYLES)
CHECK_SECONDS = 600  # interval for deleting old uploads


def build_app(
    model: str = DEFAULT_MODEL,
    *,
    uploads: bool = False,
    course: Path | None = None,
    classes: bool = False,
    visitor_memory: int = limits.MAX_VISITOR_BYTES,
    **hints: Any,
) -> gr.Blocks:
    """Build the page; the model generates the first screen's example.

    model: a listed name, a path, or a hub repository; hints: passed on to `gpt.add_model`.
    uploads: whether visitors may upload checkpoints; only for a single-user app.
    course: folder with the `gpt.course` program that the page runs; only for a single-user app.
    classes: whether visitors may let others follow their page.
    visitor_memory: memory limit in bytes for one visitor's recorded forward pass.

    Raises ValueError if the model does not exist or cannot be loaded.
    """
    name = add_model(model, name=None if uploads else public_name(model), **hints)
    renderer, store = Renderer(), SessionStore()
    SESSIONS.set_function(lambda: len(store))
    SESSION_BYTES.set_function(lambda: store.n_bytes)
    text = example(get_model(name))
    loaded = text.loaded
    first = opening(text)
    openings = dict.fromkeys(LANGUAGES, first)
    if name == DEFAULT_MODEL:
        openings["zh"] = opening(example(get_model(POEMS_MODEL)))
    for session in {*openings.values()}:
        session.change(InsideChosen, max_bytes=visitor_memory)
        for computed in (reason, measured):  # every visitor starts with these results
            for _ in compute(session, computed):
                pass

    def tab(name: str) -> gr.Tab:
        return gr.Tab(t(f"tab.{name}"), id=name, elem_classes="" if name in INNER else "gb-tab")

    pages = {
        "step": LinkedPage("inside", open_step, lambda s: s.state(InsideChosen).step),
        "lesson": LinkedPage("lessons", partial(open_lesson, loaded), lesson_key),
        "challenge": LinkedPage("challenges", open_challenge, challenge_key),
    }
    others = OtherTabs(set_shape, loss.measure_text, open_film)
    builders: dict[str, Callable[[Events, gr.Tab], None]] = {
        "inside": lambda events, _: inside.build(events),
        "why": lambda events, _: why.build(events),
        "concepts": lambda events, _: concepts.tab.build(events),
        "change": lambda events, _: change.build(events),
        "activations": lambda events, _: activations.tab.build(events, stream.STREAM),
        "embeddings": lambda events, _: stream.tab.build(events),
        "lessons": lambda events, _: lessons(loaded, others).build(events),
        "challenges": lambda events, _: challenges.build(events),
        "learned": lambda events, _: build_learned(events, ExamplePass),
        "build": lambda events, _: build_tab.tab.build(events, *build_tab.cards(course)),
        "glossary": lambda events, _: glossary.tab.build(events),
        "compare": build_compare,
        "train": lambda events, _: build_train(events, ExamplePass, write_prompt),
        "shapes": lambda events, inner: build_shapes(events, inner, text),
        "loss": lambda events, _: loss.tab.build(events),
    }

    with gr.Blocks(
        title="Glassbox GPT", analytics_enabled=False, delete_cache=(CHECK_SECONDS, limits.UPLOAD_SECONDS)
    ) as app:
        # This must come first, because it resets the queue.
        app.queue(max_size=limits.MAX_WAITING_EVENTS, default_concurrency_limit=limits.MAX_CONCURRENT_EVENTS)
        look_less_often(app._queue)
        frame = build_frame(pick_model, select_token, stop, pages)
        with gr.Tabs(elem_id="tabs") as tabs:
            events = Events(store, renderer, frame.client, frame.updates)
            with tab("playground"):
                build_playground(events, frame, open_film, uploads=uploads)
            rows = [tabs]
            for outer, ids in INNER.items():
                with tab(outer), gr.Tabs(elem_id=outer) as row:
                    rows.append(row)
                    for each in ids:
                        with tab(each) as inner:
                            builders[each](events, inner)
        build_film(events, {"hide": _hide_a_word, "layer": look_inside, "challenge": _take_challenge})
        wire_tabs(events, rows)
        names = [str(each.id) for row in rows for each in tabs_of(row) if each.id not in INNER]
        initial = {language: Opening.of(session) for language, session in openings.items()}
        places = Places(names, pages, initial, name)
        wire_session(app, events, openings, places)
        wire_class(events, places, is_open=classes)
        register_endpoints(app, name)
        events.wire_properties()
        frame.updates.value = renderer.build(first)
        vars(app)[SCREEN] = first_screen(openings, [str(each.id) for each in tabs_of(tabs)])
    return app


def _hide_a_word(session: Session) -> None:
    session.tab = "playground"
    if not session.snapshot().hidden:
        hide_main(session)


def _take_challenge(session: Session) -> None:
    session.tab = "challenges"
    open_challenge(session, CHALLENGES[0].key)


def public_name(model: str) -> str:
    """Return a model's public name: for a local path, its last two parts."""
    path = Path(model)
    return Path(*path.parts[-2:]).as_posix() if path.is_absolute() or ".." in path.parts else model


def launch_options(*, uploads: bool = False, api_key: str | None = None) -> dict[str, Any]:
    """Return the options that the page always needs for `launch`.

    uploads: as for `build_app`. api_key: key required from API clients and agents; None lets anyone call.
    """
    middleware = [
        Middleware(RequestLimits, uploads=uploads, api_key=api_key),
        Middleware(Answers),
        Middleware(FirstScreen, head=f"{HEAD}<style>{CSS}</style>"),
    ]
    return {
        "theme": THEME,
        "favicon_path": Path(__file__).with_name("favicon.svg"),  # the arch of the logo
        "js": ON_OPEN,
        "app_kwargs": {"routes": ROUTES, "middleware": middleware},
        "max_threads": limits.MAX_MODEL_EVENTS + 3 * limits.MAX_CONCURRENT_EVENTS + 64,
        "show_error": False,
        "enable_monitoring": False,
        "run_history": False,
        "footer_links": [],
        "ssr_mode": False,
    }


INNER = {  # ids of the inner tabs, by the id of the enclosing tab
    "look": ("inside", "why", "concepts", "change", "activations", "embeddings"),
    "learn": ("lessons", "challenges", "learned", "build", "glossary"),
    "lab": ("compare", "train", "shapes", "loss"),
}


def wire_tabs(events: Events, rows: Sequence[gr.Tabs]) -> None:
    """Wire the rows of tabs. A click on one sends its time."""
    clicked = "() => [glassbox.clickOn?.() ?? '0']"  # '0' before the scripts have loaded
    for row in rows:
        ids = [str(tab.id) for tab in tabs_of(row)]
        events.show(row, partial(_selection, ids))
        for tab in tabs_of(row):
            events.show(tab, partial(_label, f"tab.{tab.id}"))
        events.on(row.select, partial(select, ids), [events.client], payload=True, js=clicked)


def tabs_of(row: gr.Tabs) -> list[gr.Tab]:
    return [tab for tab in row.children if isinstance(tab, gr.Tab)]


def select(ids: Sequence[str], session: Session, clicked: str, sent: dict[str, Any]) -> None:
    """Open the clicked tab in a row unless a later click was handled first.

    A tab with inner tabs shows the one that was open last. Opening another tab closes the film. clicked: time of the
    click in ms on the browser's clock; 0 if there was no click. sent: the tab's "index", unchecked.
    """
    index = sent.get("index")
    try:
        at = float(clicked)
    except (TypeError, ValueError):
        return
    if type(index) is int and 0 <= index < len(ids) and at > session.navigated:
        session.inner_tabs |= {outer: session.tab for outer, inner in INNER.items() if session.tab in inner}
        inner = INNER.get(ids[index], (ids[index],))
        opened = next((each for each in (session.tab, session.inner_tabs.get(ids[index])) if each in inner), inner[0])
        if opened != session.tab:
            session.film = None
        session.tab, session.navigated = opened, at


def _selection(ids: Sequence[str], s: Snapshot) -> dict[str, Any]:
    """Select the tab in a row that is open or contains the open tab, if there is one."""
    selected = next((id for id in ids if id == s.tab or s.tab in INNER.get(id, ())), None)
    return {} if selected is None else {"selected": selected, "at": s.navigated}


def _label(key: str, s: Any) -> dict[str, Any]:
    return {"label": t(key)}
