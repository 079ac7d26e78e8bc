"""Measure the server load while a class follows a teacher through a lesson.

    python -m benchmarks.follow [--pages 30] [--browsers 2] [--languages en zh]

The app runs in a separate process, and the teacher in a headless Chromium. Of the followers, `--browsers` are Chromium
tabs; the others send the same requests as a page but draw nothing. The teacher steps through the first lesson's eight
stops and back, then generates a text.

Measures with and without followers, and prints:

- the server's CPU time per stop, and its share of a core while the text is generated;
- the delay between the teacher's click and the arrival of the stop (median and slowest), and the stop's size in bytes;
- the server's CPU time for opening a page.

The CPU time hardly depends on other users of the machine; the delays do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.trials.app_process import AppProcess, running_app

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SETTLE_SECONDS = 4.0  # enough time to draw and send a stop
TOKENS = 60


class Followers:
    """Followers that request frames in a separate thread.

    arrivals: For each page, the time, frame number and bytes of each response.
    """

    def __init__(self, url: str, code: str, n: int, languages: Sequence[str]) -> None:
        self.url, self.code, self.n, self.languages = url, code, n, languages
        self.arrivals: list[list[tuple[float, str, int]]] = [[] for _ in range(n)]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()

    async def _run(self) -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=60, limits=limits) as client:
            await asyncio.gather(*(self._follow(client, number) for number in range(self.n)))

    async def _follow(self, client: httpx.AsyncClient, number: int) -> None:
        seen = ""
        while not self._stopped.is_set():
            query = {"page": f"{number:04x}", "seen": seen, "language": self.languages[number % len(self.languages)]}
            async with client.stream("GET", f"{self.url}glassbox/class/{self.code}", params=query) as answer:
                body = b"".join([part async for part in answer.aiter_raw()])
            if answer.status_code == 200:
                found = httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=body).json()
                seen = f"{found['epoch']}.{found['n']}"
                self.arrivals[number].append((time.perf_counter(), seen, len(body)))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def since(self, began: float) -> tuple[list[float], list[int]]:
        """Return each page's delay from `began` to its next response, in seconds, and the bytes received since."""
        answers = [[each for each in page if each[0] > began] for page in self.arrivals]
        return [page[0][0] - began for page in answers if page], [sum(each[2] for each in page) for page in answers]


def processor_seconds(app: AppProcess) -> float:
    """Return the server's CPU time since it started, in seconds."""
    fields = Path(f"/proc/{app.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def teach(app: AppProcess, page: Page, followers: Followers | None) -> str:
    """Step through the lesson, generate a text, and return a table row."""
    work, first, slowest, sent = [], [], [], []
    step = page.locator("#class-bar").get_by_role("button", name="Next stop")
    back = page.locator("#class-bar").get_by_role("button", name="Previous stop")
    for button in [step] * 7 + [back] * 7:
        before, began = processor_seconds(app), time.perf_counter()
        button.click()
        time.sleep(SETTLE_SECONDS)
        work.append(processor_seconds(app) - before)
        if followers is not None:
            delays, n_bytes = followers.since(began)
            first.append(statistics.median(delays))
            slowest.append(max(delays))
            sent.append(statistics.mean(n_bytes))
    before, began = processor_seconds(app), time.perf_counter()
    page.locator("#length input[type=number]").fill(str(TOKENS))
    page.locator("#length input[type=number]").press("Tab")
    page.locator("#generate").click()
    page.wait_for_function("document.querySelector('#stop').disabled === false")
    page.wait_for_function("document.querySelector('#stop').disabled === true", timeout=120_000)
    seconds = time.perf_counter() - began
    share = (processor_seconds(app) - before) / seconds
    line = f"{1000 * statistics.median(work):8.0f} ms  {100 * share:13.0f}%"
    if followers is None:
        return line
    delays = f"{statistics.median(first):8.2f} s {max(slowest):8.2f} s"
    return f"{line}  {delays}  {statistics.mean(sent) / 1000:12.0f} KB"


def open_page(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-US").new_page()
    page.set_default_timeout(180_000)
    page.goto(url)
    page.locator("#class-bar button").first.wait_for()
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=30)
    parser.add_argument("--browsers", type=int, default=2)
    parser.add_argument("--languages", nargs="+", default=["en"])
    args = parser.parse_args()
    with running_app("--public", "--class", "--no-mcp") as app, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(180_000)
        page.goto(f"{app.url}?class=first-lesson&lang=en")
        page.locator("#class-bar b").wait_for()
        page.locator("#more > summary").click()
        page.get_by_role("button", name="For a class").click()
        page.get_by_text("Follow me").click()
        page.get_by_role("button", name="Let others follow").click()
        link = page.locator("#class-dialog details[open] input")
        link.wait_for()
        code = link.input_value().rpartition("=")[2]
        page.locator("#class-dialog").get_by_role("button", name="Close").click()
        time.sleep(SETTLE_SECONDS)
        print(f"system load before: {os.getloadavg()[0]:.1f}")
        print("pages  CPU per stop  while generating  delay (median, slowest)  bytes per stop")
        print(f"    0  {teach(app, page, None)}", flush=True)
        before = processor_seconds(app)
        opened = [open_page(browser, f"{app.url}?follow={code}") for _ in range(args.browsers)]
        time.sleep(SETTLE_SECONDS)
        arrival = (processor_seconds(app) - before) / max(1, args.browsers)
        followers = Followers(app.url, code, args.pages - args.browsers, args.languages)
        time.sleep(SETTLE_SECONDS)
        print(f"{args.pages:5}  {teach(app, page, followers)}", flush=True)
        print(f"{1000 * arrival:.0f} ms of CPU time for each page that opens in a browser")
        print(f"server memory: {app.resident / 2**20:.0f} MiB; system load after: {os.getloadavg()[0]:.1f}")
        followers.stop()
        for each in opened:
            assert (
                "8 of 8" in each.locator("#class-bar").inner_text() or "of 8" in each.locator("#class-bar").inner_text()
            )
        browser.close()


if __name__ == "__main__":
    main()
