"""What the browser tests share: one Chromium, pages that fail on errors and on requests that leave the machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import gradio as gr
import pytest
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

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
expect.set_options(timeout=20_000)  # a busy machine is slow, and not wrong
LEFT = ("AbortError: signal is aborted", "Unexpected error Connection errored out")
HERE = ("127.0.0.1", "localhost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser on a busy machine may miss a moment: what fails is tried once more, and the report says so."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.flaky(reruns=1))


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


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page of 1280 x 900. The test fails if it logs an error, opens a dialog or asks another machine."""
    with _watched(browser) as fresh:
        yield fresh


@pytest.fixture(scope="module")
def module_page(browser: Browser, serve: Callable[..., str]) -> Iterator[Page]:
    """The same, for all tests of a module; the last one fails if anything went wrong in any of them.

    It names the server so that the page is closed before it.
    """
    with _watched(browser) as shared:
        yield shared


@contextmanager
def _watched(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    context.set_default_timeout(20_000)
    page = context.new_page()
    problems: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("request", lambda request: problems.extend(_elsewhere(request.url)))
    page.on("websocket", lambda socket: problems.extend(_elsewhere(socket.url)))
    page.on("console", lambda said: problems.append(f"{said.text} {said.location}") if said.type == "error" else None)
    yield page
    context.close()
    if any(said.startswith(LEFT[0]) for said in problems):  # the page was left while an answer was on its way
        problems = [said for said in problems if not said.startswith(LEFT)]
    assert problems == []


def _elsewhere(url: str) -> list[str]:
    place = urlparse(url)
    inside = place.scheme in ("data", "blob", "about") or place.hostname in HERE
    return [] if inside else [f"left the machine: {url}"]


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
