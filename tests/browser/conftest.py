"""Fixtures of the browser tests: one Chromium, one app, and pages that fail on errors or requests to other hosts."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlparse

import gradio as gr
import pytest
from playwright.sync_api import Browser, Dialog, Error, Page, ViewportSize, expect, sync_playwright

from components.page import build_app, launch_options

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-smooth-scrolling",  # otherwise something may move between the press and the release of a button
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOW = 60_000  # milliseconds; a busy machine may be this slow
expect.set_options(timeout=SLOW)
# Gradio's message if a page is left while an answer is on its way.
LEFT = (
    "AbortError: ",
    "Unexpected error 404: Not Found",
    "Failed to load resource: net::ERR_INCOMPLETE_CHUNKED_ENCODING",
    "Unexpected error Connection errored out",
    "TypeError: network error",
)
HERE = ("127.0.0.1", "localhost")
NEW_VISITOR = "__new"  # in an address; any other visitor has been here before, so that no text writes itself
SEEN = f"""if (location.origin !== 'null' && !location.search.includes('{NEW_VISITOR}')) {{
  localStorage.setItem('glassbox-seen', '1'); // an empty page has no storage
}}"""
# What the page does last is to write down its session.
FORGET = "addEventListener('pagehide', () => [localStorage, sessionStorage].forEach((each) => each.clear()))"
SIZE: ViewportSize = {"width": 1280, "height": 900}
FAILED = pytest.StashKey[bool]()
TAB = pytest.StashKey["Tab"]()
DREW = "() => window.drew ??= (requestAnimationFrame(() => (window.drew = true)), null)"
SHOWN_AFTER_FAILURE = 60  # what the page did last


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Record failures so that fixtures can tell whether their test has failed, and report what the page did last."""
    report = yield
    item.stash[FAILED] = report.failed or (call.when != "setup" and item.stash.get(FAILED, False))
    if report.failed and TAB in item.stash:
        tab = item.stash[TAB]
        report.sections.append(("page", "\n".join([*tab.history, tab.drawing()])))
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Launch the system's Chromium or the one named by $CHROMIUM. In CI a missing browser is a failure."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("no Chromium was found; install it, or name its program in $CHROMIUM")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def tabs(browser: Browser) -> Iterator[dict[str, Tab]]:
    """Keep browser tabs open by purpose, across tests: a page loads twice as fast in a tab that has shown it before."""
    open_tabs: dict[str, Tab] = {}
    yield open_tabs
    for tab in open_tabs.values():
        tab.close()


@pytest.fixture
def page(tabs: dict[str, Tab], request: pytest.FixtureRequest) -> Iterator[Page]:
    """An empty 1280 x 900 page of a new visitor. Logged errors, dialogs and requests to other hosts fail the test."""
    with _watched(tabs, "page", request) as tab:
        yield tab.page
    _leave(tabs, "page")


@pytest.fixture
def stay(
    tabs: dict[str, Tab], left_with_the_module: None, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """`stay(begin)` returns a watched page that the tests of a module share.

    The first test, and any test after a failure, gets a new visitor on whose page `begin(page)` opens the address. With
    `stay(begin, anew=True)` every test does.
    """
    with _watched(tabs, "stay", request) as tab:

        def enter(begin: Callable[[Page], object], *, anew: bool = False) -> Page:
            if anew and tab.entered:
                tab.leave()
            if not tab.entered:
                begin(tab.page)
                tab.entered = True
            return tab.page

        yield enter


@pytest.fixture(scope="module")
def left_with_the_module(tabs: dict[str, Tab], serve: Callable[..., str]) -> Iterator[None]:
    """Leave the page after the module. Requests `serve` so that this happens before the server closes."""
    yield
    _leave(tabs, "stay")


@contextmanager
def _watched(tabs: dict[str, Tab], name: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    if name not in tabs:
        tabs[name] = Tab(request.getfixturevalue("browser"))
    request.node.stash[TAB] = tabs[name]
    yield tabs[name]
    problems = tabs[name].problems()
    if problems or request.node.stash.get(FAILED, False):
        tabs.pop(name).close()
    assert problems == []


def _leave(tabs: dict[str, Tab], name: str) -> None:
    """Prepare the tab for the next visitor, if it still exists. A tab that cannot be left is not reused."""
    if tab := tabs.pop(name, None):
        tab.leave()
        tabs[name] = tab


class Tab:
    """A page in its own browser context, with a record of its problems."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport=SIZE, locale="en-US")
        self.context.set_default_timeout(SLOW)
        self.context.add_init_script(SEEN)
        self.page = self.context.new_page()
        self.entered = False  # whether a module's tests are using it
        self.history: deque[str] = deque(maxlen=SHOWN_AFTER_FAILURE)
        self._problems: list[str] = []
        say = self._problems.append
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: say(f"error: {error}"))
        self.page.on("request", lambda request: self._elsewhere(request.url))
        self.page.on("request", lambda request: self._note("→", request.url, request.post_data or ""))
        self.page.on("requestfinished", lambda request: self._note("✓", request.url))
        self.page.on("requestfailed", lambda request: self._note("✗", request.url))
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("websocket", lambda socket: self._elsewhere(socket.url))
        self.page.on("console", lambda said: say(f"{said.text} {said.location}") if said.type == "error" else None)

    def problems(self) -> list[str]:
        """Return the problems since the last call."""
        found = self._problems[:]
        self._problems.clear()
        if any(said.startswith(LEFT[:3]) for said in found):
            found = [said for said in found if not said.startswith(LEFT)]
        return found

    def leave(self) -> None:
        """Prepare for a new visitor by closing and clearing everything."""
        self.entered = False
        self.page.unroute_all()
        if self.page.url.startswith("http"):
            self.page.evaluate(FORGET)
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.page.set_viewport_size(SIZE)
        self._problems.clear()

    def close(self) -> None:
        self.context.close()

    def drawing(self) -> str:
        """Return whether the browser still draws the page."""
        try:
            self.page.wait_for_function(DREW, polling=100, timeout=3000)
        except Error as error:
            return f"the browser draws nothing: {error}"
        return "the browser draws"

    def _note(self, kind: str, *texts: str) -> None:
        said = " ".join(text[-200:] for text in texts)
        self.history.append(f"{time.strftime('%X')} {kind} {said}")

    def _dismiss(self, dialog: Dialog) -> None:
        self._problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _elsewhere(self, url: str) -> None:
        place = urlparse(url)
        if place.scheme not in ("data", "blob", "about") and place.hostname not in HERE:
            self._problems.append(f"left the machine: {url}")


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """Launch the whole app with everything that it offers on one's own machine, and return its address."""
    app = build_app(uploads=True, classes=True)
    _, url, _ = app.launch(prevent_thread_lock=True, quiet=True, **launch_options(uploads=True))
    yield url
    app.close(verbose=False)
    for thread in threading.enumerate():  # torch aborts the process if Python ends while it computes
        if thread.name == "AnyIO worker thread":
            thread.join(timeout=20)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """`serve(blocks, **launch_options)` returns an address. All servers close after the module's tests."""
    running: list[gr.Blocks] = []

    def start(blocks: gr.Blocks, **options: Any) -> str:
        _, url, _ = blocks.launch(**{"prevent_thread_lock": True, "quiet": True, "ssr_mode": False, **options})
        running.append(blocks)
        return url

    yield start
    for blocks in running:
        blocks.close(verbose=False)
