"""The answer stream in front of a fake Gradio that ends it after each event, and what Gradio keeps of clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from starlette.middleware import Middleware
from starlette.types import Message, Receive, Scope, Send

import components.gradio_workarounds as workarounds
from components.gradio_workarounds import LingeringStream, NoSessions, look_less_often
from tests.asynchronous import run

SCOPE = {"type": "http", "query_string": b"session_hash=abc", "headers": []}


def event(kind: str, event_id: str | None = None) -> bytes:
    return f"data: {json.dumps({'msg': kind, 'event_id': event_id}, separators=(',', ':'))}\n\n".encode()


class Gradio:
    """Answers the queued events, then ends the stream."""

    def __init__(self) -> None:
        self.joined: asyncio.Queue[str] = asyncio.Queue()
        self.n_streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"].endswith("/join"):
            event_id = json.loads((await receive())["body"])["id"]
            self.joined.put_nowait(event_id)
            await send({"type": "http.response.body", "body": json.dumps({"event_id": event_id}).encode()})
            return
        self.n_streams += 1
        while not self.joined.empty() or self.n_streams == 1:
            await send(
                {
                    "type": "http.response.body",
                    "body": event("process_completed", await self.joined.get()),
                    "more_body": True,
                }
            )
            if self.joined.empty():
                break
        await send({"type": "http.response.body", "body": event("close_stream"), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Page:
    """A browser that listens to one stream."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self.headers = headers
        self.gradio = Gradio()
        self.app = LingeringStream(self.gradio)
        self.heard: list[Message] = []
        self.coming: list[str] = []  # events to join when the next answer arrives
        self.left = asyncio.Event()
        self.server = SimpleNamespace(stop_event=asyncio.Event())

    async def join(self, event_id: str) -> None:
        body = json.dumps({"id": event_id, "session_hash": "abc"}).encode()

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            pass

        await self.app(SCOPE | {"path": "/gradio_api/queue/join"}, receive, send)

    async def listen(self) -> None:
        async def receive() -> Message:
            await self.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.heard.append(message)
            if message.get("body") and self.coming:
                await self.join(self.coming.pop())

        await self.app(
            SCOPE | {"path": "/gradio_api/queue/data", "app": self.server, "headers": self.headers}, receive, send
        )

    @property
    def answers(self) -> list[bytes]:
        return [message["body"] for message in self.heard if message.get("body")]


@asynccontextmanager
async def listening(*headers: tuple[bytes, bytes]) -> AsyncIterator[tuple[Page, asyncio.Task[None]]]:
    page = Page(list(headers))
    await page.join("1")
    task = asyncio.ensure_future(page.listen())
    await until(lambda: page.answers)
    yield page, task
    page.left.set()
    await task


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0)


def run_check(check: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(asyncio.wait_for(check(), timeout=60))


def test_events_are_answered_on_one_stream() -> None:
    async def check() -> None:
        async with listening() as (page, task):
            await page.join("2")
            await until(lambda: len(page.answers) == 2)
            await page.join("3")
            await until(lambda: len(page.answers) == 3)
            assert page.answers == [event("process_completed", n) for n in ("1", "2", "3")]
            assert [message["type"] for message in page.heard].count("http.response.start") == 1
            assert not task.done()

    run_check(check)


def test_a_stream_ends_as_gradio_s_where_no_event_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workarounds, "LINGER_SECONDS", 0.01)

    async def check() -> None:
        async with listening() as (page, task):
            await task
            assert page.answers[-1] == event("close_stream")
            assert not page.heard[-1].get("more_body")

    run_check(check)


def test_nothing_is_kept_of_a_page_that_is_left() -> None:
    async def check() -> None:
        async with listening() as (page, _):
            pass
        assert page.app._streams == {}
        await page.join("2")  # answered on the next stream
        assert page.app._streams == {}

    run_check(check)


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


def test_only_the_newest_answers_wait_for_their_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workarounds, "MAX_UNREAD_ANSWERS", 2)
    with called([Middleware(NoSessions)]) as (page, http):
        events = []
        for _ in range(4):
            events.append(ask(http))
            while page._queue.event_ids_to_events:
                http.get("")
        ask_until(http, lambda: len(page._queue.pending_messages_per_session) == 2)
        assert [*page._queue.pending_messages_per_session] == events[2:]
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
    assert changed == {"sleep_when_free": 0.01, "progress_update_sleep_when_free": 0.1}
    assert changed.keys() <= before.keys()
