"""The stream of answers, and what Gradio keeps of clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from starlette.middleware import Middleware

import components.gradio_workarounds as workarounds
from components.gradio_workarounds import Answers, look_less_often


def say() -> str:
    return "answer"


@contextmanager
def called(middleware: list[Middleware]) -> Iterator[tuple[gr.Blocks, httpx.Client]]:
    """Yield an app with one endpoint, called by gradio_client and over plain HTTP."""
    with gr.Blocks() as page:
        gr.Textbox()
        gr.api(say)
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False, app_kwargs={"middleware": middleware})
    with httpx.Client(base_url=f"{url}gradio_api/call/v2/say", timeout=60) as http:
        assert Client(url, verbose=False).predict(api_name="/say") == "answer"
        assert "answer" in http.get(f"/{ask(http)}").text
        yield page, http
    page.close()


def ask(http: httpx.Client) -> str:
    return str(http.post("", json={}).json()["event_id"])


def ask_until(http: httpx.Client, is_so: Callable[[], bool]) -> None:
    """Send requests until the middleware, which works after each response has arrived, has made something so."""
    for _ in range(100):
        if is_so():
            return
        http.get("")


def join(http: httpx.Client) -> str:
    """Send an event of the session "abc" and return its id."""
    event = {"data": [], "fn_index": 0, "session_hash": "abc"}
    return str(http.post("../../../queue/join", json=event).json()["event_id"])


def test_events_are_answered_on_one_stream_until_none_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    with called([Middleware(Answers)]) as (page, http):
        joined, answered = [join(http)], list[str]()
        with http.stream("GET", "../../../queue/data", params={"session_hash": "abc"}) as stream:
            for line in stream.iter_lines():
                message: dict[str, Any] = json.loads(line.removeprefix("data: ") or "{}")
                if message.get("msg") == "process_completed":
                    answered.append(message["event_id"])
                    monkeypatch.setattr(workarounds, "LINGER_SECONDS", 20.0 if len(joined) < 3 else 0.01)
                    if len(joined) < 3:
                        joined.append(join(http))
        assert (message, answered) == ({}, joined)
        ask_until(http, lambda: not page._queue.pending_event_ids_session)


def test_only_the_newest_answers_wait_for_their_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workarounds, "MAX_UNREAD_ANSWERS", 2)
    monkeypatch.setattr(workarounds, "LINGER_SECONDS", 0.01)
    with called([Middleware(Answers)]) as (page, http):
        events = []
        for _ in range(4):
            events.append(ask(http))
            while page._queue.event_ids_to_events:
                http.get("")
        ask_until(http, lambda: [*page._queue.pending_messages_per_session] == events[2:])
        assert all("answer" in http.get(f"/{event}").text for event in events[2:])
        monkeypatch.setattr(workarounds, "UNREAD_SECONDS", -1.0)
        ask(http)
        while page._queue.pending_messages_per_session:
            http.get("")


def test_a_queue_that_looks_less_often_has_the_settings_that_gradio_reads() -> None:
    queue = gr.Blocks()._queue
    before = dict(vars(queue))
    look_less_often(queue)
    changed = {name: value for name, value in vars(queue).items() if before.get(name) != value}
    assert changed == {"sleep_when_free": 0.02, "progress_update_sleep_when_free": 1.0}
    assert changed.keys() <= before.keys()
