"""Take pictures of the running app for the README.

    python docs/pictures.py [--chromium PROGRAM] [--stills]

Starts the app in this process, and a headless Chromium. Writes docs/glassbox.webp (typing, then the film at several
times its speed), docs/playground.png, docs/inside.png and docs/why.png. Needs the packages in requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

from components.page import build_app, launch_options
from components.tabs.inside.film import BEATS

FOLDER = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
SIZE: ViewportSize = {"width": 960, "height": 640}
STILL: ViewportSize = {"width": 1280, "height": 800}
STORY = "prompt=Lily+had+a+cat.+One+day,+the+cat+ran+away.+Lily+looked+for+her&text="
STILLS = {  # address, and an element to wait for
    "playground": ("", "#hide-main:not([disabled])"),
    "inside": (f"?tab=inside&{STORY}", "#flow [data-part=stack]"),
    "why": (f"?tab=why&{STORY}", "#why-flow path"),
}
MAX_BYTES = 3_000_000
QUALITY = 70
TYPED = "The little dog was sad. He"
N_TAKEN = 2  # predicted tokens to accept with the right arrow key
KEY_MS, TAKEN_MS, MOVING_MS, REST_MS = 70, 700, 90, 900  # durations of frames
SETTLES_MS = 600  # waiting time after a key press
STEPS = 9  # frames per beat
LEFT_OUT = {"ending", "add", "neurons"}  # beats to skip, so that the animation isn't too long

Frames = list[tuple[Image.Image, int]]  # images with their durations in ms


def shot(page: Page) -> Image.Image:
    """Take a screenshot of the window."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def typing(page: Page, url: str) -> Frames:
    """Type a text and accept the tokens that the model predicts."""
    page.goto(url)
    page.locator("#bars [role=option]").first.wait_for()
    box = page.locator("#prompt textarea")
    box.fill("")
    page.wait_for_timeout(SETTLES_MS)
    frames = []
    for key in TYPED:
        box.press_sequentially(key)
        page.wait_for_timeout(SETTLES_MS if key == " " or key == TYPED[-1] else 60)
        frames.append((shot(page), KEY_MS))
    page.wait_for_timeout(SETTLES_MS)
    frames.append((shot(page), REST_MS))
    for _ in range(N_TAKEN):
        box.press("ArrowRight")
        page.wait_for_timeout(2 * SETTLES_MS)
        frames.append((shot(page), TAKEN_MS))
    return frames


def film(page: Page) -> Frames:
    """Play the film for the typed text, without the beats in LEFT_OUT."""
    page.locator("#open-film").click()
    page.locator(".gb-filming").wait_for()
    page.locator(".gb-film-play").click()
    page.locator(".gb-filming").evaluate("film => scrollTo(0, scrollY + film.getBoundingClientRect().top - 64)")
    scrub, starts, frames = page.locator(".gb-film-bar input"), 0.0, []
    for beat in BEATS:
        for step in range(STEPS + 1) if beat.name not in LEFT_OUT else ():
            scrub.evaluate(
                "(input, time) => { input.value = time; input.dispatchEvent(new Event('input', { bubbles: true })); }",
                starts + beat.seconds * min(step / STEPS, 0.99),
            )
            page.wait_for_timeout(40)
            frames.append((shot(page), MOVING_MS if step < STEPS else REST_MS))
        starts += beat.seconds
    return frames


def stills(page: Page, url: str) -> None:
    """Write pictures of the Write, Inside and Why? tabs."""
    page.set_viewport_size(STILL)
    for name, (address, shown) in STILLS.items():
        page.goto(f"{url}{address}")
        page.locator(shown).first.wait_for()
        page.wait_for_timeout(5 * SETTLES_MS)
        shot(page).save(FOLDER / f"{name}.png", optimize=True)


def moving(page: Page, url: str) -> None:
    """Write the animation."""
    (first, shown), *others = [*typing(page, url), *film(page)]
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
    args = parser.parse_args()
    _, url, _ = build_app().launch(prevent_thread_lock=True, quiet=True, **launch_options())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=FLAGS)
        stills(browser.new_page(), url)
        if not args.stills:
            moving(browser.new_page(viewport=SIZE), url)
        browser.close()


if __name__ == "__main__":
    main()
