"""A frame contains what changed since the last one, and the browser's store reassembles it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.i18n import t
from components.monitoring import ERRORS
from components.page import select
from components.parts import Lines
from components.render import Renderer, View
from components.session_events import VIEWS, miss_frame, saved_session
from components.state.hidden import hide, show_all
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Selection
from gpt import Generation, get_model


@pytest.fixture
def session() -> Session:
    return Session(None)


def frame(renderer: Renderer, session: Session) -> dict[str, Any] | None:
    text = renderer.frame(session)
    return None if text is None else json.loads(text)


def test_a_view_is_drawn_again_only_when_its_inputs_change(session: Session) -> None:
    drawn: list[str] = []
    renderer = Renderer()
    renderer.add("", [View("a", lambda s: drawn.append("a") or {"text": s.language})])
    renderer.add("playground", [View("b", lambda s: drawn.append("b") or {"text": s.query})])
    renderer.add("why", [View("c", lambda s: drawn.append("c") or {"text": s.query})])
    assert frame(renderer, session)["views"] == {"a": {"text": "en"}, "b": {"text": ""}}
    assert frame(renderer, session) is None
    session.query = "x"
    assert frame(renderer, session)["views"] == {"b": {"text": "x"}}
    session.tab = "why"
    assert frame(renderer, session)["views"] == {"c": {"text": "x"}}
    session.tab, session.language = "playground", "zh"
    assert frame(renderer, session)["views"] == {"a": {"text": "zh"}}
    assert drawn == ["a", "b", "b", "c", "a", "b"]


def test_only_the_fields_that_changed_are_sent_and_lines_only_from_where_they_differ(session: Session) -> None:
    renderer = Renderer()
    renderer.add("", [View("a", lambda s: {"lines": Lines(s.query), "labels": {"x": 1}})])
    session.query = "abc"
    assert frame(renderer, session)["views"] == {"a": {"lines": ["a", "b", "c"], "labels": {"x": 1}}}
    for query, change in (
        ("abcd", {"$lines": 3, "add": ["d"]}),
        ("abx", {"$lines": 2, "add": ["x"]}),
        ("a", {"$lines": 1, "add": []}),
    ):
        session.query = query
        assert frame(renderer, session)["views"] == {"a": {"lines": change}}


@pytest.mark.parametrize("broken", ["draw", "json", "property"])
def test_each_picture_and_property_fails_alone_and_is_counted(session: Session, broken: str) -> None:
    def of(name: str) -> Any:
        def value(s: Any) -> Any:
            if name == broken and s.query == "bad":
                raise KeyError("no such layer")
            return s.query

        return value

    renderer = Renderer()
    labels = of("property"), of("fine")
    renderer.properties += [lambda s: {"label": labels[0](s)}, lambda s: {"label": labels[1](s)}]

    def of_text(s: Snapshot) -> dict[str, Any]:
        return {"text": s.query}

    data: list[dict[str, Any]] = [{}]
    renderer.add("", [View("a", lambda s: {"text": of("draw")(s), **data[0]})])
    renderer.add("playground", [View("b", of_text)])
    session.query = "good"
    frame(renderer, session)
    before = ERRORS.labels("drawing")._value.get()
    session.query = "bad"
    data[0] = {"object": object()} if broken == "json" else {}
    shown = frame(renderer, session)
    assert ERRORS.labels("drawing")._value.get() == before + 1
    assert frame(renderer, session) is None
    is_failing = broken in ("draw", "json")
    failed = {"failed": t("view.failed")}
    properties = {"1": {"label": "bad"}} | ({} if broken == "property" else {"0": {"label": "bad"}})
    first = failed if is_failing else {"text": "bad"}
    assert shown["views"] == {"properties": properties, "a": first, "b": {"text": "bad"}}
    session.query, data[0] = "good", {}
    assert frame(renderer, session)["views"]["a"] == ({"failed": ""} if is_failing else {"text": "good"})


def test_each_frame_names_the_one_that_it_builds_on_and_after_a_missed_one_all_is_sent(session: Session) -> None:
    renderer = Renderer()
    renderer.add("", [View("a", lambda s: {"text": s.query, "fixed": 1})])
    first = frame(renderer, session)
    session.query = "x"
    second = frame(renderer, session)
    assert (first["base"], first["n"], second["base"]) == (0, 1, 1)
    session.seen_frame = 0
    whole = frame(renderer, session)
    assert whole["base"] is None
    assert whole["views"] == {"a": {"text": "x", "fixed": 1}}


def test_a_reloaded_page_gets_the_differences_from_its_initial_state(session: Session) -> None:
    renderer = Renderer()
    renderer.add("", [View("a", lambda s: {"text": s.query, "fixed": 1})])
    built = json.loads(renderer.build(session))
    assert built["views"] == {"a": {"text": "", "fixed": 1}}
    session.query = "x"
    renderer.frame(session)
    renderer.start(session)
    again = frame(renderer, session)
    assert (again["base"], again["views"]) == (built["n"], {"a": {"text": "x"}})


def test_what_is_saved_is_sent_whole_once_the_session_is_there_then_only_what_changed() -> None:
    renderer, session = Renderer(), Session(Generation(get_model(), "The dog"), "The dog", Selection(1))
    renderer.add("", VIEWS)
    session.document.read()
    assert not renderer.build(session)
    session.id = "1"
    session.set_typed("The dog ran", is_current=False)
    renderer.start(session)
    saved = frame(renderer, session)["views"]["saved"]
    assert saved == json.loads(json.dumps(saved_session(session.snapshot())))
    session.settings = session.settings.with_value("temperature", 0.3)
    assert frame(renderer, session)["views"]["saved"].keys() == {"settings"}
    hide(session, [0])
    assert frame(renderer, session)["views"]["saved"] == {"hidden": [0]}
    turn = session.lock.begin()
    session.document.append(5)
    assert "saved" not in (frame(renderer, session) or {"views": {}})["views"]
    session.lock.end(turn)
    show_all(session)
    assert frame(renderer, session)["views"]["saved"].keys() == {"document", "unwritten", "hidden"}
    miss_frame(session, {"seen": 1})
    assert frame(renderer, session)["views"]["saved"].keys() == saved.keys()


def test_a_page_that_loads_sets_no_property_that_its_components_were_built_with(session: Session) -> None:
    renderer = Renderer()
    renderer.properties += [lambda s: {"value": s.tab}, lambda s: {"label": s.language}]
    renderer.build(session)
    renderer.start(session)
    assert renderer.frame(session) is None
    session.tab = "why"
    renderer.start(session)
    assert frame(renderer, session)["views"]["properties"] == {"0": {"value": "why"}}


def open_tab(tab: str, session: Session, clicked: str) -> None:
    select([tab], session, clicked, {"index": 0})


def test_the_tab_that_was_clicked_last_is_open_in_whatever_order_the_clicks_arrive(session: Session) -> None:
    open_tab("inside", session, "20.5")
    open_tab("why", session, "10.5")
    open_tab("change", session, "soon")
    open_tab("playground", session, "20.5")  # Gradio also selects a tab by itself, without a click
    assert session.tab == "inside"
    open_tab("why", session, "30")
    assert session.tab == "why"


def test_a_tab_with_inner_tabs_opens_the_one_that_was_open_last(session: Session) -> None:
    opened = []
    session.tab = "loss"  # through a link
    for clicked, tab in enumerate(("lab", "inside", "lab", "shapes", "learn", "lab", "challenges", "learn"), start=1):
        open_tab(tab, session, str(clicked))
        opened.append(session.tab)
    assert opened == ["loss", "inside", "loss", "shapes", "lessons", "shapes", "challenges", "challenges"]


def test_no_text_can_close_the_script_that_it_travels_in(session: Session) -> None:
    renderer = Renderer()
    renderer.add("", [View("a", lambda s: {"text": "</script><img src=x>"})])
    text = renderer.frame(session)
    assert "<" not in text
    assert json.loads(text)["views"]["a"]["text"] == "</script><img src=x>"
