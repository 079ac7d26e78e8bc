"""Measure how long the page takes to show a head, layer or token after it is clicked.

    python -m benchmarks.selection [--rounds 9] [--model NAME]

Starts the app in this process, and a headless Chromium. The page measures the time from the click to the second frame
after the picture's caption has changed. Also prints the server's drawing time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

from components.page import build_app, launch_options
from components.render import Renderer
from components.state.session import Session

CLICK = """([clicked, watched]) => new Promise((resolve, reject) => {
  const says = document.querySelector(watched);
  const before = says.textContent;
  const began = performance.now();
  const seen = () => requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
  new MutationObserver((_, observer) => {
    if (says.textContent === before) return;
    observer.disconnect();
    seen();
  }).observe(says, { childList: true, characterData: true, subtree: true });
  document.querySelector(clicked).click();
  setTimeout(() => reject(new Error(`nothing changed after a click on ${clicked}`)), 60000);
})"""
FLOW, STAGES, NEURONS = (f"{name} figcaption .gb-says" for name in ("#flow", "#stages", "#neurons"))


def clicks() -> Iterator[tuple[str, str, list[str], str]]:
    """Yield (name, label, two selectors to click in turn, selector of the caption that changes)."""

    def head(widget: str, number: int) -> str:
        return f"{widget} .gb-picks-heads button:nth-of-type({number})"

    def layer(widget: str, end: str) -> str:
        return f"{widget} .gb-picks-layer button:{end}-of-type"

    yield "Machine", "another head", [head("#flow", 2), head("#flow", 4)], FLOW
    yield "Machine", "another layer", [layer("#flow", "last"), layer("#flow", "first")], FLOW
    yield "One head", "another head", [head("#stages", 3), head("#stages", 5)], STAGES
    yield "One head", "another layer", [layer("#stages", "last"), layer("#stages", "first")], STAGES
    chips = [f"#stream-tokens [role=option]:nth-of-type({number})" for number in (5, 9)]
    yield "Activations", "another token", chips, NEURONS
    yield "Activations", "another layer", [layer("#stream-layer", end) for end in ("last", "first")], NEURONS


def measure(page: Page, selectors: list[str], watched: str, rounds: int) -> list[float]:
    """Return the milliseconds from each click until its picture appears, excluding the first two clicks."""
    found = []
    for number in range(rounds + 2):
        found.append(page.evaluate(CLICK, [selectors[number % 2], watched]))
        page.wait_for_timeout(300)  # let the other views finish drawing
    return found[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--model")
    args = parser.parse_args()
    computing: list[float] = []
    plain = Renderer.frame

    def timed(renderer: Renderer, session: Session, *edited: object) -> str | None:
        began = time.perf_counter()
        frame = plain(renderer, session, *edited)
        computing.append(1000 * (time.perf_counter() - began))
        return frame

    Renderer.frame = timed
    app = build_app(**({"model": args.model} if args.model else {}))
    _, url, _ = app.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        page.goto(f"{url}?lang=en&tab=inside&step=heads")
        page.locator("#flow .gb-picks-heads button").first.wait_for(timeout=120_000)
        for part, what, selectors, watched in clicks():
            if part == "Activations":
                page.get_by_role("tab", name=part, exact=True).click()
            page.locator(selectors[0]).wait_for(timeout=120_000)
            page.wait_for_timeout(1500)
            computing.clear()
            took = measure(page, selectors, watched, args.rounds)
            server = statistics.median(computing)
            print(f"{part}, {what}: {statistics.median(took):.0f} ms, including {server:.0f} ms of drawing", flush=True)
        browser.close()
    print(f"system load: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
