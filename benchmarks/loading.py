"""Measure the cost of loading the page until it responds: size, requests, time and layout shift.

    python -m benchmarks.loading [--rounds 5]

Starts the app in this process, and a headless Chromium with an empty cache. A letter is typed as soon as the text box
appears; the page has responded when the prediction changes. For comparison, also measures the minimum that Gradio
needs: an empty page with one component of each kind used by the app.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
from collections import Counter

import gradio as gr
from gradio.blocks import Block
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.decode import cpu_name
from components.page import build_app, launch_options

WIDTHS = (390, 1280, 1920)
SETTLES = 3_000  # ms to wait after the response, because some parts load later
ANSWER = """() => {
  localStorage.setItem("glassbox-seen", "1"); // at the first visit, the text writes itself at reading pace
  window.shift = 0;
  new PerformanceObserver((list) => { for (const each of list.getEntries()) window.shift += each.value; })
    .observe({ type: "layout-shift", buffered: true });
  const type = () => {
    const box = document.querySelector("#prompt textarea");
    const bars = document.querySelector("#bars .gb-says");
    if (!box?.value || !bars || document.querySelector("#first-screen")) return requestAnimationFrame(type);
    const before = bars.textContent;
    new MutationObserver(() => { if (bars.textContent !== before) window.answered ??= performance.now(); })
      .observe(bars, { childList: true, characterData: true, subtree: true });
    box.focus();
    document.execCommand("insertText", false, "!");
  };
  type();
}"""
COMPONENT = """() => {
  const look = () => {
    if (document.querySelector(".gradio-container button")) window.answered = performance.now();
    else requestAnimationFrame(look);
  };
  look();
}"""


class Visit:
    """One visit with an empty cache: the time until the page responds, and the requests and kilobytes by then.

    For the empty page, counts all requests.
    """

    def __init__(self, browser: Browser, url: str, script: str, width: int) -> None:
        page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        received: list[tuple[float, int]] = []
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", lambda e: received.append((e["timestamp"], e["encodedDataLength"])))
        page.add_init_script(f"({script})()")
        page.goto(url)
        page.wait_for_function("window.answered", timeout=60_000)
        began = self._began(page)
        self.seconds = page.evaluate("window.answered") / 1000
        page.wait_for_timeout(SETTLES)
        until = began + self.seconds if script is ANSWER else math.inf
        by_then = [size for at, size in received if at <= until]
        self.requests, self.kilobytes = len(by_then), sum(by_then) / 1000
        self.shift = page.evaluate("window.shift ?? 0")
        page.context.close()

    @staticmethod
    def _began(page: Page) -> float:
        """Return the visit's start time in seconds, on the same clock as network events."""
        metrics = page.context.new_cdp_session(page)
        metrics.send("Performance.enable")
        found = {each["name"]: each["value"] for each in metrics.send("Performance.getMetrics")["metrics"]}
        return found["NavigationStart"]


def empty_page(app: gr.Blocks) -> gr.Blocks:
    """Return a page with one component of each kind used by the app."""
    kinds = {type(block) for block in app.blocks.values() if isinstance(block, Block)}
    with gr.Blocks(analytics_enabled=False) as page:
        gr.Button("ready")
        for kind in sorted(kinds, key=lambda kind: kind.__name__):
            if kind.__module__.startswith("gradio.components") and kind.__name__ not in ("Api", "State"):
                kind()
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    app = build_app()
    config = app.config
    kinds = Counter(each["type"] for each in config["components"])
    print(cpu_name())
    n_components, n_events = sum(kinds.values()) - kinds["api"], len(config["dependencies"])
    print(f"{n_components} components, {kinds['api']} endpoint parameters, {n_events} events")
    _, url, _ = app.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    _, empty, _ = empty_page(app).launch(prevent_thread_lock=True, quiet=True, ssr_mode=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        html = browser.new_page()
        print(f"{len(html.request.get(url).body()) / 1000:.0f} KB of HTML before compression")
        html.close()
        seen: dict[str, list[Visit]] = {"page": [], "empty": []}
        for _ in range(rounds):
            seen["page"].append(Visit(browser, url, ANSWER, 1280))
            seen["empty"].append(Visit(browser, empty, COMPONENT, 1280))
        for name, visits in seen.items():
            middle = {
                key: statistics.median(getattr(v, key) for v in visits) for key in ("seconds", "requests", "kilobytes")
            }
            print(f"{name}: {middle['seconds']:.2f} s, {middle['requests']:.0f} requests, {middle['kilobytes']:.0f} KB")
        for width in WIDTHS:
            print(f"layout shift at {width} px: {Visit(browser, url, ANSWER, width).shift:.3f}")


if __name__ == "__main__":
    main()
