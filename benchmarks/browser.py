"""Measure how far the page lags behind the model while updating its text, bars, arcs and heatmap.

    python -m benchmarks.browser [--pace "full speed"] [--tokens 150] [--rounds 5] [--opened] [--language zh]

Starts the app in this process, and a headless Chromium. The server records when each token was generated; the page
records when the token and its bars appeared on the screen.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time

from playwright.sync_api import CDPSession, Page, sync_playwright

from components.page import build_app, launch_options
from components.state.text import TokenStatisticsCache

SETTLES = 4_000  # ms
WATCH = """() => {
  window.words = []; window.bars = 0;
  const box = document.querySelector("#prompt .gb-copy");
  new MutationObserver(() => { window.words.push([Date.now(), box.querySelectorAll(".gb-written").length]); })
    .observe(box, { childList: true, subtree: true });
  new MutationObserver(() => { window.bars = Date.now(); })
    .observe(document.querySelector("#bars .gb-says"), { childList: true, characterData: true, subtree: true });
}"""


def busy_ms(browser: CDPSession) -> float:
    """Return the total time for which the page's main thread has been busy, in ms."""
    metrics = browser.send("Performance.getMetrics")["metrics"]
    return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def measure(page: Page, browser: CDPSession, made: list[float]) -> tuple[float, float, float, float]:
    """Generate a text and measure how well the page keeps up.

    Returns the tokens per second on the screen, from the first new token to the last, and three durations in ms: lag of
    the last token, the lag of its bars, and the main thread's busy time per token.
    """
    made.clear()
    before = busy_ms(browser)
    page.evaluate(WATCH)
    page.locator("#generate").click()
    page.wait_for_function("document.querySelector('#stop').disabled === false")
    page.wait_for_function("document.querySelector('#stop').disabled === true", timeout=120_000)
    shown, bars = page.evaluate("[window.words, window.bars]")
    total = shown[-1][1]
    first, there = next((when, count) for when, count in shown if total - len(made) < count)
    last = next(when for when, count in shown if count == total)
    work = (busy_ms(browser) - before) / len(made)
    return (total - there) / ((last - first) / 1000), last - 1000 * made[-1], bars - 1000 * made[-1], work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pace", choices=["4", "8", "16", "full speed"], default="full speed")
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--opened", action="store_true", help="visit every tab first")
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    args = parser.parse_args()
    made: list[float] = []
    plain = TokenStatisticsCache.add

    def noted(*arguments: object) -> None:
        made.append(time.time())
        plain(*arguments)

    TokenStatisticsCache.add = noted
    _, url, _ = build_app().launch(prevent_thread_lock=True, quiet=True, **launch_options())
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        page.add_init_script("localStorage.setItem('glassbox-seen', '1')")  # the workbench, not the first screen
        page.goto(f"{url}?lang={args.language}")
        page.locator("#bars [role=option]").first.wait_for()
        page.wait_for_timeout(SETTLES)  # let the page finish loading
        if args.opened:
            for tab in [*page.locator("#tabs > .tab-wrapper [role=tab]").all()[1:], page.get_by_role("tab").first]:
                tab.click()
                page.wait_for_timeout(SETTLES)
        page.locator("#pace select").select_option(label=args.pace)
        for name, value in (("length", args.tokens), ("temperature", 1)):
            page.locator(f"#{name} input[type=range]").fill(str(value))
        client = page.context.new_cdp_session(page)
        client.send("Performance.enable")
        rows = [measure(page, client, made) for _ in range(args.rounds + 1)][1:]
        browser.close()
    rate, chip, bars, work = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"system load: {os.getloadavg()[0]:.1f}")
    print(f"{rate:.1f} tokens/s on the screen; the last token lags {chip:.0f} ms, its bars {bars:.0f} ms")
    print(f"the page uses {work:.0f} ms per token")


if __name__ == "__main__":
    main()
