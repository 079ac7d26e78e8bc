"""Events are answered although their answer stream ends late or breaks off (components/gradio_workarounds.js)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import gradio as gr
import pytest
from playwright.sync_api import Page, expect
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.page import launch_options

pytestmark = pytest.mark.thorough

OVERTAKEN_SECONDS = 0.3  # delay of the stream's end after the answer to a request


class LateClose:
    """ASGI middleware that delays the end of an answer stream until another event has joined the queue."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.joined = app, asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def late(message: Message) -> None:
            if b"close_stream" in message.get("body", b""):
                self.joined.clear()
                await self.joined.wait()
                await asyncio.sleep(OVERTAKEN_SECONDS)
            await send(message)

        path = scope.get("path", "")
        await self.app(scope, receive, late if path.endswith("/queue/data") else send)
        if path.endswith("/queue/join"):
            self.joined.set()


class Cut:
    """ASGI middleware that breaks off the first answer stream instead of closing it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.is_cut = app, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def cut(message: Message) -> None:
            if b"close_stream" in message.get("body", b"") and not self.is_cut:
                self.is_cut = True
                raise ConnectionError
            await send(message)

        await self.app(scope, receive, cut if scope.get("path", "").endswith("/queue/data") else send)


@pytest.mark.parametrize("stream", [LateClose, Cut])
def test_the_page_answers_an_event_that_is_sent_while_a_stream_ends_or_after_it_broke_off(
    page: Page, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, stream: type[LateClose | Cut]
) -> None:
    with gr.Blocks() as demo:
        number = gr.Number(0, elem_id="count")
        gr.Button("add").click(lambda n: n + 1, number, number)
    options = launch_options()
    if stream is Cut:
        monkeypatch.setattr("components.gradio_workarounds.LINGER_SECONDS", 1.0)
        options["app_kwargs"]["middleware"].insert(0, Middleware(Cut))
    else:
        options["app_kwargs"]["middleware"].append(Middleware(LateClose))
    page.goto(serve(demo, **options))
    count, add = page.locator("#count input"), page.get_by_role("button", name="add")
    if stream is Cut:
        with page.expect_event("requestfailed", lambda request: "/queue/data" in request.url):
            add.click()
    else:
        add.click()
    expect(count).to_have_value("1")
    add.click()
    expect(count).to_have_value("2")
