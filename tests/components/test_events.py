"""Event wiring: payloads of widgets, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from components.events import Events
from components.render import Renderer, View
from components.state.session import Session
from components.state.store import SessionStore

ID = "0" * 32


@pytest.fixture
def events() -> Iterator[Events]:
    store = SessionStore()
    store.put(ID, Session(None))
    with gr.Blocks():
        yield Events(store, Renderer(), gr.Textbox(), gr.HTML())


def test_a_payload_whose_event_may_be_repeated_for_a_later_one_is_refused(events: Events) -> None:
    with pytest.raises(TypeError, match="always_last"):
        events.on(gr.HTML().select, lambda session, sent: None, payload=True, trigger_mode="always_last")


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
