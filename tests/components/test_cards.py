"""Cards and events: actions are handled once and in order, and errors are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from components.cards.card import Card, act, act_and_show
from components.events import Events
from components.i18n import t
from components.parts import Action, Part, button, case, check_box, lead, section, slider
from components.render import Renderer, View
from components.state.session import Session
from components.state.store import SessionStore
from components.widgets.widget import widget


@pytest.fixture(autouse=True, scope="module")
def blocks() -> Iterator[None]:
    with gr.Blocks():
        yield


def number(name: str, done: list[Any]) -> Part:
    def take(session: Session, value: object) -> None:
        done.append((name, value))

    return slider(name, low=0, high=9, step=1, label=lambda s: name, value=lambda s: 5, on=take)


def test_actions_are_handled_once_in_order_and_unknown_ones_not_at_all() -> None:
    done: list[Any] = []
    cards = [Card("one", number("a", done), number("b", done)), Card("two", number("c", done))]
    session = Session(None)
    first = [{"interactive": [[1, "a:act", 3], [2, "b:act", 4], [3, "z:act", 0]]}, {"interactive": "text"}]
    later = [{"interactive": [[2, "b:act", 4], [4, "a:act", 1]]}, {"interactive": [[1, "c:act", 2], [True], None]}]
    for sent in (first, later):
        act(cards, "interactive", session, *sent)
    assert done == [("a", 3), ("b", 4), ("a", 1), ("c", 2)]
    ended = {("one", "a:act"): 4, ("one", "b:act"): 2, ("two", "c:act"): 1}
    assert session.snapshot().handled == {("one", "interactive"): 4, ("two", "interactive"): 1} | ended


def test_earlier_choices_are_handled_first_and_actions_only_in_their_own_queue() -> None:
    done: list[Any] = []
    press = button("b", "stop", lambda session: done.append("b"), queue="model")
    card, session = Card("one", number("a", done), press), Session(None)
    sent = {"interactive": [[1, "a:act", 3]], "model": [[2, "a:act", 4], [3, "b:act", None]]}
    steps = act_and_show([card], "model", session, sent)
    next(steps)
    assert session.handled == {("one", "interactive"): 1}  # has begun: the control still shows the choice
    list(steps)
    act([card], "interactive", session, sent)
    assert done == [("a", 3), "b"]


def test_a_text_in_a_box_is_taken_before_actions_that_run_the_model_even_if_its_own_event_has_begun() -> None:
    done: list[Any] = []

    def predict(session: Session, text: str) -> Iterator[None]:
        done.append(("predicted", text))
        yield

    typing = Action(predict, "typing", latest=True, early=lambda session, text: done.append(("taken", text)))
    box = widget("composer", "box", template="<div></div>", actions={"input": typing})
    go_on = button("b", "stop", lambda session: done.append("b"), queue="model")
    cards, session = [Card("one", box), Card("two", go_on)], Session(None)
    typed = {"typing": [[1, "box:input", "x"]]}
    list(act_and_show(cards[:1], "typing", session, typed))
    list(act_and_show(cards, "model", session, typed, {"model": [[1, "b:act", None]]}))
    list(act_and_show(cards[:1], "typing", session, typed))
    assert done == [("predicted", "x"), ("taken", "x"), "b"]


def test_an_error_does_not_keep_later_actions_from_being_handled() -> None:
    def fail(session: Session, value: object) -> None:
        raise ValueError(f"refused {value}")

    done: list[Any] = []
    failing = check_box("f", label="stop", value=lambda s: False, on=fail)
    card, session = Card("one", failing, number("a", done)), Session(None)
    with pytest.raises(ValueError, match="refused 1"):
        act([card], "interactive", session, {"interactive": [[1, "f:act", 1], [2, "f:act", 2], [3, "a:act", 3]]})
    assert done == [("a", 3)]
    assert session.handled == {("one", "interactive"): 3, ("one", "f:act"): 2, ("one", "a:act"): 3}


def test_a_part_fails_alone() -> None:
    def fail(s: Session) -> bool:
        raise KeyError("no such layer")

    boxes = [check_box(name, label="stop", value=lambda s: True, on=lambda *_: None) for name in ("a", "b", "c")]
    card = Card(
        "one",
        check_box("f", label="stop", value=fail, on=lambda *_: None),
        section(boxes[0], show=fail, name="section"),
        case("open", fail, {True: boxes[1]}),
        boxes[2],
    )
    snapshot = Session(None).snapshot()
    drawn = card.view.draw(snapshot)
    assert {name: live for name, live in drawn.items() if name.startswith("live.")} == {
        **{f"live.{name}": {"failed": t("view.failed")} for name in ("f", "section", "open")},
        "live.c": {"value": True},
    }


def test_a_handler_that_yields_belongs_to_a_queue_that_streams() -> None:
    def write(session: Session) -> Iterator[None]:
        yield

    with pytest.raises(TypeError, match="may not yield"):
        Card("one", button("start", "stop", write, enabled=lambda s: True))
    streaming = Card("one", button("start", "stop", write, queue="model", enabled=lambda s: True))
    assert list(streaming.queues) == ["model"]


def test_only_parts_on_the_page_are_computed_and_words_follow_the_language() -> None:
    asked: list[str] = []

    def value(name: str) -> Any:
        return lambda s: asked.append(name)

    def box(name: str) -> Part:
        return check_box(name, label="stop", value=value(name), on=lambda session, value: None)

    card = Card(
        "one",
        lead("stop"),
        section(box("hidden"), show=lambda s: False, name="section"),
        case("open", lambda s: s.language, {"en": box("english"), "zh": box("chinese")}),
    )
    session = Session(None)
    drawn = card.view.draw(session.snapshot())
    assert set(asked) == {"english"}
    assert drawn["live.section"] == {"hidden": True}
    assert drawn["live.open"]["opened"]["node"]["name"] == "english"
    assert drawn["words"] == {"stop": "Stop"}
    session.language = "zh"
    assert card.view.draw(session.snapshot())["live.open"]["opened"]["key"] == "zh"


ID = "0" * 32


@pytest.fixture
def events() -> Iterator[Events]:
    store = SessionStore()
    store.put(ID, Session(None))
    with gr.Blocks():
        yield Events(store, Renderer(), gr.HTML(), gr.HTML())


@pytest.mark.parametrize(
    ("value", "received"),
    [({"input": {"n": 1}, "select": {"n": 2}}, {"n": 2}), ({"select": [3]}, {}), ({}, {}), ("text", {}), (None, {})],
)
def test_a_handler_receives_the_payload_of_its_event_or_an_empty_one(
    events: Events, value: Any, received: dict[str, int]
) -> None:
    handled: list[dict[str, Any]] = []
    widget = gr.HTML()
    wired = events.on(widget.select, lambda session, sent: handled.append(sent), [widget])
    wired.fn(gr.EventData(None, None), ID, value)
    assert handled == [received]


@pytest.mark.parametrize(("problem", "sentence"), [(ValueError("refused"), "refused"), (KeyError("k"), "did not work")])
def test_an_error_is_shown_together_with_what_the_handler_changed_before_it(
    events: Events, monkeypatch: pytest.MonkeyPatch, problem: Exception, sentence: str
) -> None:
    def fail(session: Session) -> None:
        session.prompt = "changed"
        raise problem

    messages: list[tuple[Any, ...]] = []
    monkeypatch.setattr("components.events.log_message", lambda *message: messages.append(message))
    events.renderer.add("", [View("box", lambda s: {"text": s.prompt})])
    frame = json.loads(events.on(gr.Button().click, fail).fn(gr.EventData(None, None), ID))
    assert frame["views"] == {"box": {"text": "changed"}}
    ((text, title, level, *_),) = messages
    assert sentence in text
    assert (title, level) == ("Something went wrong", "error")
