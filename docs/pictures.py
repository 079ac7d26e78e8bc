"""Take pictures of the running app for the README, and of the figures in the Python guide.

    python docs/pictures.py [--chromium PROGRAM] [--stills] [--figures]

Starts the app in this process, and a headless Chromium. Writes docs/glassbox.webp (a new visitor hides a word, then
looks at the training), docs/playground.png, docs/inside.png and docs/why.png. Draws each `figure` in
docs/python.md that a picture follows. Needs the packages in requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import plotly.graph_objects as go
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from components.page import build_app, launch_options

FOLDER = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
SIZE: ViewportSize = {"width": 1280, "height": 800}
FIGURE: ViewportSize = {"width": 860, "height": 600}
STORY = "prompt=Lily+had+a+cat.+One+day,+the+cat+ran+away.+Lily+looked+for+her&text="
STILLS = {  # address, and an element to wait for
    "playground": ("", "#hide-main:not([disabled])"),
    "inside": (f"?tab=inside&{STORY}", "#path .gb-path-end"),
    "why": (f"?tab=why&{STORY}", "#why-flow path"),
}
MAX_BYTES = 3_000_000
QUALITY = 70
WRITING_MS, MOVING_MS, MOMENT_MS, REST_MS = 250, 100, 450, 1500  # durations of frames
SETTLES_MS = 800  # waiting time after a click
FALLING = 6  # frames in which the arch falls apart

Frames = list[tuple[Image.Image, int]]  # images with their durations in ms


def shot(page: Page) -> Image.Image:
    """Take a screenshot of the window."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def prediction(page: Page, url: str) -> Frames:
    """Show a new visitor's page: the text writes itself, and the prediction changes when its main reason is hidden."""
    page.goto(url, wait_until="commit")
    frames = []
    while page.locator("#first-screen").count():
        page.wait_for_timeout(WRITING_MS)
        frames.append((shot(page), WRITING_MS))
    page.wait_for_timeout(SETTLES_MS)
    frames.append((shot(page), REST_MS))
    page.locator("#hide-main").click()
    for _ in range(FALLING):
        page.wait_for_timeout(MOVING_MS)
        frames.append((shot(page), 2 * MOVING_MS))
    page.wait_for_timeout(2 * SETTLES_MS)
    return [*frames, (shot(page), 2 * REST_MS)]


def training(page: Page, url: str) -> Frames:
    """Show what the model wrote at each moment of its training."""
    page.goto(url)
    page.locator("#first-screen").wait_for(state="detached")
    page.locator("#hero-growth").scroll_into_view_if_needed()
    scrubber = page.locator("#hero-growth input")
    frames = []
    for moment in range(int(scrubber.get_attribute("max") or 0) + 1):
        scrubber.fill(str(moment))
        page.wait_for_timeout(MOVING_MS)
        frames.append((shot(page), MOMENT_MS))
    return [*frames[:-1], (frames[-1][0], 2 * REST_MS)]


def stills(page: Page, url: str) -> None:
    """Write pictures of the Write, Inside and Why? tabs."""
    page.set_viewport_size(SIZE)
    for name, (address, shown) in STILLS.items():
        page.goto(f"{url}{address}")
        page.locator(shown).first.wait_for()
        page.wait_for_timeout(5 * SETTLES_MS)
        shot(page).save(FOLDER / f"{name}.png", optimize=True)


def figures(page: Page) -> None:
    """Write the pictures of docs/python.md: run each example that a picture follows, and draw its figure."""
    page.set_viewport_size(FIGURE)
    guide = (FOLDER / "python.md").read_text(encoding="utf-8")
    for code, name in re.findall(r"```python\n((?:(?!```).)*)```\n\n!\[[^\]]*\]\(([^)]+)\)", guide, flags=re.DOTALL):
        names: dict[str, object] = {}
        exec(compile(code, name, "exec"), names)
        page.set_content(go.Figure(names["figure"]).to_html(include_plotlyjs=True, config={"staticPlot": True}))
        plot = page.locator(".js-plotly-plot .main-svg").first
        plot.wait_for()
        Image.open(io.BytesIO(plot.screenshot())).convert("RGB").save(FOLDER / name, optimize=True)


def moving(browser: Browser, url: str) -> None:
    """Write the animation, of two new visitors."""
    pages = (browser.new_context(viewport=SIZE, locale="en-US").new_page() for _ in range(2))
    (first, shown), *others = [*prediction(next(pages), url), *training(next(pages), url)]
    path = FOLDER / "glassbox.webp"
    durations = [shown, *(each for _, each in others)]
    images = [image for image, _ in others]
    first.save(path, save_all=True, append_images=images, duration=durations, loop=0, quality=QUALITY, method=6)
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(durations)} frames, {sum(durations) / 1000:.0f} s")
    if path.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{path.name} is larger than {MAX_BYTES:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default=os.environ.get("CHROMIUM") or shutil.which("chromium"))
    parser.add_argument("--stills", action="store_true", help="take only the still pictures")
    parser.add_argument("--figures", action="store_true", help="draw only the figures of the Python guide")
    args = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=FLAGS)
        figures(browser.new_page())
        browser.close()
    if args.figures:
        return
    _, url, _ = build_app().launch(prevent_thread_lock=True, quiet=True, **launch_options())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=FLAGS)
        stills(browser.new_page(), url)
        if not args.stills:
            moving(browser, url)
        browser.close()


if __name__ == "__main__":
    main()
