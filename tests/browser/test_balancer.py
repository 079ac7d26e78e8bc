"""Two app processes behind a balancer: visitors are spread over both, and one process is killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from playwright.sync_api import Browser, Page, expect

from tests.browser.playground_page import CHIPS, generate, open_playground, open_strip, text
from tests.deploy.balancers import balancer, free_ports

pytestmark = pytest.mark.balancer
ROOT = Path(__file__).parents[2]
MAX_VISITORS = 16  # with this many, the chance that one process gets all of them is 1 in 30,000


class AppProcess:
    """A running `python app.py --public` that is ready for visitors."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, "app.py", "--public", "--port", str(port)],
            cwd=ROOT,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def wait(self) -> None:
        assert self.process.stdout.readline().startswith("Glassbox GPT is ready")

    def gauge(self, name: str) -> float:
        """Return a value of /metrics."""
        metrics = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=60).text
        return float(re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.MULTILINE).group(1))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def processes() -> Iterator[list[AppProcess]]:
    running = [AppProcess(port) for port in free_ports(2)]
    try:
        for process in running:
            process.wait()
        yield running
    finally:
        for process in running:
            process.kill()


def visitors(browser: Browser, url: str, processes: list[AppProcess], stack: ExitStack) -> dict[AppProcess, Page]:
    """Open pages until each process has a visitor."""
    found: dict[AppProcess, Page] = {}
    for _ in range(MAX_VISITORS):
        before = {process: process.gauge("glassbox_sessions") for process in processes}
        context = browser.new_context(locale="en-US")
        stack.callback(context.close)
        page = context.new_page()
        open_playground(page, f"{url}/?tab=playground")  # a new visitor would see the first screen
        page.evaluate("() => glassbox.session()")
        [process] = [each for each in processes if each.gauge("glassbox_sessions") > before[each]]
        found.setdefault(process, page)
        if len(found) == len(processes):
            break
    return found


def test_a_killed_process_s_visitors_go_on_with_their_text_in_the_other_one(
    browser: Browser, processes: list[AppProcess], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(balancer("nginx", [process.port for process in processes], tmp_path))

        client = Client(url, verbose=False)  # an API client: each call is two requests
        for seed in range(4):
            assert client.predict("Once upon a time", 3, 0.8, 0, 1, 0, 1, seed, api_name="/generate")

        pages = visitors(browser, url, processes, stack)
        killed, stays = processes
        assert {*pages} == {killed, stays}
        texts = {}
        for seed, (process, page) in enumerate(pages.items()):
            generate(page, "Once upon a time", 8, seed=str(seed))
            texts[process] = text(page)
        assert texts[killed] != texts[stays]

        loads: list[str] = []
        pages[stays].on("load", lambda page: loads.append(page.url))
        killed.kill()
        pages[killed].locator(CHIPS).nth(3).click()
        expect(pages[killed].locator("#status")).to_contain_text("Text restored", timeout=60_000)
        open_strip(pages[killed])  # the page was loaded again
        assert text(pages[killed]) == texts[killed]
        assert stays.gauge("glassbox_sessions") >= 2

        for page in pages.values():  # both continue
            n_tokens = page.locator(CHIPS).count()
            page.locator("#step").click()
            expect(page.locator(CHIPS)).to_have_count(n_tokens + 1)
        assert all(text(pages[process]).startswith(texts[process]) for process in processes)
        assert loads == []
