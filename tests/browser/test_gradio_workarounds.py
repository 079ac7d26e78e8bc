"""What components/gradio_workarounds.js fixes: the defect on a page without it, and the behaviour with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import gradio as gr
import pytest
from playwright.sync_api import Page, expect
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.gradio_workarounds import LingeringStream
from components.page import launch_options
from tests.canary import lacking

pytestmark = pytest.mark.thorough

AT_ONCE = 5_000  # milliseconds, for conditions that already hold
OVERTAKEN_SECONDS = 0.3  # delay of the stream's end after the answer to a request


class LateClose:
    """ASGI middleware that delays the end of an answer stream until another event has joined the queue.

    With `is_left`, the stream does not end until the browser leaves it.
    """

    def __init__(self, app: ASGIApp, is_left: bool = False) -> None:
        self.app, self.is_left, self.joined = app, is_left, asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def late(message: Message) -> None:
            if b"close_stream" in message.get("body", b""):
                self.joined.clear()
                await self.joined.wait()
                await asyncio.sleep(OVERTAKEN_SECONDS)
            await send(message)
            if self.is_left and b"close_stream" in message.get("body", b""):
                await receive()

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


def demo() -> gr.Blocks:
    with gr.Blocks() as page:
        count = gr.Number(0, elem_id="count")
        gr.Button("add").click(lambda n: n + 1, count, count)
        gr.Dropdown(choices=["one", "two"], interactive=True, elem_id="list")
        with gr.Tabs():
            for name in ("left", "right"):
                gr.Tab(name)
    return page


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(demo())


def _time_for_an_event(page: Page) -> None:
    page.locator("#list input").click()
    expect(page.get_by_role("listbox")).to_be_visible()


def test_gradio_s_tabs_are_a_stop_each_and_know_no_arrows(page: Page, url: str) -> None:
    page.goto(url)
    left, right = (page.get_by_role("tab", name=name) for name in ("left", "right"))
    left.focus()
    page.keyboard.press("ArrowRight")
    with lacking(
        "arrows do not move among tabs, and each is a stop of the Tab key", "the keys of tabs in gradio_workarounds.js"
    ):
        expect(left).to_be_focused(timeout=AT_ONCE)
        page.keyboard.press("Tab")
        expect(right).to_be_focused(timeout=AT_ONCE)


def test_gradio_does_not_answer_an_event_that_is_sent_while_a_stream_ends(
    page: Page, serve: Callable[..., str]
) -> None:
    page.goto(serve(demo(), app_kwargs={"middleware": [Middleware(LateClose, is_left=True)]}))
    count, add = page.locator("#count input"), page.get_by_role("button", name="add")
    add.click()
    expect(count).to_have_value("1")
    with lacking("an event that is sent while a stream ends gets no answer", "LingeringStream"):
        with page.expect_event(
            "requestfailed", lambda request: "/queue/data" in request.url
        ):  # the page ends the stream
            add.click()
        _time_for_an_event(page)
        assert count.input_value() == "1"


def test_the_page_answers_an_event_that_is_sent_while_a_stream_ends(page: Page, serve: Callable[..., str]) -> None:
    options = launch_options()
    options["app_kwargs"]["middleware"].append(Middleware(LateClose))
    page.goto(serve(demo(), **options))
    count, add = page.locator("#count input"), page.get_by_role("button", name="add")
    for n in (1, 2):
        add.click()
        expect(count).to_have_value(str(n))


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[Middleware]:
    """Middleware under which the first stream breaks off after a second of silence."""
    monkeypatch.setattr("components.gradio_workarounds.LINGER_SECONDS", 1.0)
    return [Middleware(Cut), Middleware(LingeringStream)]


def test_gradio_does_not_answer_an_event_after_a_stream_broke_off(
    page: Page, serve: Callable[..., str], cut: list[Middleware]
) -> None:
    page.goto(serve(demo(), app_kwargs={"middleware": cut}))
    count, add = page.locator("#count input"), page.get_by_role("button", name="add")
    with page.expect_event("requestfailed", lambda request: "/queue/data" in request.url):
        add.click()
    expect(count).to_have_value("1")
    with page.expect_response(lambda response: "/queue/join" in response.url):
        add.click()
    _time_for_an_event(page)
    with lacking("after a stream broke off no event is answered", "the `fetch` in gradio_workarounds.js"):
        assert count.input_value() == "1"


def test_the_page_answers_an_event_after_a_stream_broke_off(
    page: Page, serve: Callable[..., str], cut: list[Middleware]
) -> None:
    options = launch_options()
    options["app_kwargs"]["middleware"].insert(0, cut[0])
    page.goto(serve(demo(), **options))
    count, add = page.locator("#count input"), page.get_by_role("button", name="add")
    with page.expect_event("requestfailed", lambda request: "/queue/data" in request.url):
        add.click()
    expect(count).to_have_value("1")
    add.click()
    expect(count).to_have_value("2")
