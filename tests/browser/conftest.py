"""What the browser tests share: one Chromium, one app, pages that fail on errors and on requests to other machines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlparse

import gradio as gr
import pytest
from playwright.sync_api import Browser, Dialog, Page, ViewportSize, expect, sync_playwright

from components.page import build_app, launch_options

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOW = 60_000  # milliseconds; a busy machine is slow, and not wrong
expect.set_options(timeout=SLOW)
# What gradio says in a page that is being left while an answer is on its way.
LEFT = (
    "AbortError: ",
    "Unexpected error 404: Not Found",
    "Failed to load resource: net::ERR_INCOMPLETE_CHUNKED_ENCODING",
    "Unexpected error Connection errored out",
    "TypeError: network error",
)
HERE = ("127.0.0.1", "localhost")
# The text need not write itself; an empty page has no storage.
SEEN = "if (location.origin !== 'null') localStorage.setItem('glassbox-seen', '1')"
SIZE: ViewportSize = {"width": 1280, "height": 900}
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Fixtures may look up whether their test has failed."""
    report = yield
    item.stash[FAILED] = report.failed or (call.when != "setup" and item.stash.get(FAILED, False))
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium of the system, or the one that $CHROMIUM names: a failure in CI where there is none."""
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
    """The open tabs by what they are for. They outlive their tests: a page loads twice as fast where one was before."""
    open_tabs: dict[str, Tab] = {}
    yield open_tabs
    for tab in open_tabs.values():
        tab.close()


@pytest.fixture
def page(tabs: dict[str, Tab], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A new visitor's empty page of 1280 x 900. The test fails if it logs an error, opens a dialog or asks another
    machine."""
    with _watched(tabs, "page", request) as tab:
        yield tab.page
    _leave(tabs, "page")


@pytest.fixture
def stay(
    tabs: dict[str, Tab], left_with_the_module: None, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """`stay(begin)` is a page, watched in the same way, on which the tests of a module work one after another.

    For the first of them, and after one that failed, it is a new visitor's, and `begin(page)` opens the address; for
    `stay(begin, anew=True)` it always is.
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
    """It names the server so that the page is left before it is closed."""
    yield
    _leave(tabs, "stay")


@contextmanager
def _watched(tabs: dict[str, Tab], name: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    if name not in tabs:
        tabs[name] = Tab(request.getfixturevalue("browser"))
    yield tabs[name]
    problems = tabs[name].problems()
    if problems or request.node.stash.get(FAILED, False):
        tabs.pop(name).close()
    assert problems == []


def _leave(tabs: dict[str, Tab], name: str) -> None:
    """Make room for the next visitor, unless the tab is gone; one that cannot be left is not used again."""
    if tab := tabs.pop(name, None):
        tab.leave()
        tabs[name] = tab


class Tab:
    """A page in a context of its own, and what has gone wrong in it."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport=SIZE, locale="en-US")
        self.context.set_default_timeout(SLOW)
        self.context.add_init_script(SEEN)
        self.page = self.context.new_page()
        self.entered = False  # whether a module's tests are at work on it
        self._problems: list[str] = []
        say = self._problems.append
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: say(f"error: {error}"))
        self.page.on("request", lambda request: self._elsewhere(request.url))
        self.page.on("websocket", lambda socket: self._elsewhere(socket.url))
        self.page.on("console", lambda said: say(f"{said.text} {said.location}") if said.type == "error" else None)

    def problems(self) -> list[str]:
        """What went wrong since they were last asked for."""
        found = self._problems[:]
        self._problems.clear()
        if any(said.startswith(LEFT[:3]) for said in found):
            found = [said for said in found if not said.startswith(LEFT)]
        return found

    def leave(self) -> None:
        """Make room for a new visitor: nothing is open, stored or held any more."""
        self.entered = False
        self.page.unroute_all()
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.page.set_viewport_size(SIZE)
        self._problems.clear()

    def close(self) -> None:
        self.context.close()

    def _dismiss(self, dialog: Dialog) -> None:
        self._problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _elsewhere(self, url: str) -> None:
        place = urlparse(url)
        if place.scheme not in ("data", "blob", "about") and place.hostname not in HERE:
            self._problems.append(f"left the machine: {url}")


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the whole app, one for all modules that ask for nothing else."""
    app = build_app()
    _, url, _ = app.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield url
    app.close(verbose=False)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """`serve(blocks, **launch_options)` gives the address; everything is closed after the module's tests."""
    running: list[gr.Blocks] = []

    def start(blocks: gr.Blocks, **options: Any) -> str:
        _, url, _ = blocks.launch(**{"prevent_thread_lock": True, "quiet": True, "ssr_mode": False, **options})
        running.append(blocks)
        return url

    yield start
    for blocks in running:
        blocks.close(verbose=False)
