"""Strip and chart in a real browser: they show what was sent, and the visitor's actions reach the server."""

from __future__ import annotations

import itertools
import json
import re
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute
from playwright.sync_api import Locator, Page, Route, expect

from components.assets import HEAD, PLOTLY_URL, ROUTES
from components.figures.bars import next_token_bars
from components.figures.palette import PALETTE
from components.theme import THEME
from components.widgets.chart import chart, chart_data
from components.widgets.frame import frame_widget
from components.widgets.tokens import token_line, tokens
from components.widgets.widget import placed, to_json

pytestmark = pytest.mark.thorough

HOSTILE = ["<img src=x onerror=alert(1)>", "${alert(1)}", "{{x}}", "<b>bold</b>", "</div>", "&amp;"]
TEXT = ["Once", " upon", " a", " time", ",", "\n", "\n", *HOSTILE, " the", " end", "."]
OPTIONS: dict[str, Any] = {"theme": THEME, "head": HEAD, "app_kwargs": {"routes": ROUTES}}


def line(position: int) -> str:
    kind = "p" if position < 4 else "g"
    return token_line(100 + position, TEXT[position % len(TEXT)], 0.5, 1 + position, kind).strip()


def frame(
    *, count: int = len(TEXT), says: str = "Says <b>seven</b>.", drawn: bool = True, language: str = "en", **strip: Any
) -> str:
    """Return a complete frame: a text with this many tokens, and a chart."""
    figure = next_token_bars(
        [" girl", "<b>boy</b>", "7"], np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.3, 0.0]), chosen=0
    )
    text = {"doc": "a", "lines": [line(i) for i in range(count)], "shade": "", "selected": -1}
    views = {"strip": text | strip, "chart": chart_data(figure if drawn else None, says if drawn else "")}
    voice = {"language": language, "exact": False}
    return to_json({"n": next(NUMBERS), "base": None, "session": "of a test", "voice": voice, "views": views})


NUMBERS = itertools.count(1)
FRAMES: dict[str, dict[str, Any]] = {
    "reset": {},
    "grow": {"count": len(TEXT) + 5},
    "nothing": {"drawn": False},
    "again": {"says": "Again."},
}


def sent(values: dict[str, Any]) -> tuple[str, str]:
    return frame(**values), ""


def received(sent: dict[str, Any]) -> str:
    return json.dumps(sent["select"])


def demo() -> gr.Blocks:
    """Build a page with both widgets and a button for each frame."""
    with gr.Blocks() as blocks:
        hidden = frame_widget()
        hidden.value = frame()
        event = gr.Textbox(label="event", elem_id="event")
        pictures = (tokens("strip", empty="page"), chart("chart", clickable=True))
        for shown in map(placed, pictures):
            shown.select(received, shown, event, show_progress="hidden")
        for name, values in FRAMES.items():
            button = gr.Button(name, elem_id=name)
            button.click(partial(sent, values), None, [hidden, event], show_progress="hidden")
    return blocks


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(demo(), **OPTIONS)


@pytest.fixture
def shown(stay: Callable[..., Page], url: str) -> Page:
    """A shared page in its initial state, with everything drawn."""
    opened = stay(lambda page: page.goto(url))
    opened.mouse.move(0, 0)
    opened.click("#reset")
    expect(opened.locator("#chart .gb-says")).to_have_text("Says <b>seven</b>.")
    expect(chips(opened)).to_have_count(len(TEXT))
    expect(opened.locator("#strip .gb-to")).to_have_text("100%")
    expect(event(opened)).to_have_value("")
    expect(opened.locator("#chart .textpoint text").first).to_have_text("50% → 70%")
    return opened


def chips(page: Page) -> Locator:
    return page.locator("#strip .gb-chip")


def event(page: Page) -> Locator:
    return page.locator("#event textarea")


def test_tokens_are_shown_as_the_text_they_are_and_new_ones_leave_the_old_alone(shown: Page) -> None:
    strip = shown.locator("#strip .gb-strip")
    assert strip.evaluate("e => e.textContent").replace("⏎", "") == "".join(TEXT)
    assert strip.locator("img, b, script").count() == 0
    tops = [chips(shown).nth(i).bounding_box()["y"] for i in (4, 5, 6, 7)]
    assert tops[0] == tops[1] < tops[2] < tops[3]  # a newline starts a new line
    shown.evaluate("""() => {
        window.touched = 0;
        const all = [...document.querySelectorAll("#strip .gb-chip")];
        const count = (changes) => window.touched += changes.length;
        const every = {attributes: true, childList: true, characterData: true, subtree: true};
        for (const chip of all.slice(0, -1)) new MutationObserver(count).observe(chip, every);
    }""")
    shown.click("#grow")
    expect(chips(shown)).to_have_count(len(TEXT) + 5)
    assert shown.evaluate("window.touched") == 0


def test_a_click_and_the_keyboard_select_at_once_and_arrive_at_the_server(shown: Page) -> None:
    chips(shown).nth(3).click()
    assert chips(shown).nth(3).get_attribute("aria-selected") == "true"
    assert shown.locator("#strip [aria-selected=true]").count() == 1
    expect(event(shown)).to_have_value('{"index": 3}')
    focused = "[...document.querySelectorAll('#strip .gb-chip')].indexOf(document.activeElement)"
    chips(shown).last.focus()
    for key, place in {"Home": 0, "ArrowRight": 1, "ArrowDown": 6, "ArrowUp": 0, "End": len(TEXT) - 1}.items():
        shown.keyboard.press(key)
        assert shown.evaluate(focused) == place, key
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("Enter")
    expect(event(shown)).to_have_value(f'{{"index": {len(TEXT) - 2}}}')
    assert shown.locator("#strip .gb-chip[tabindex='0']").count() == 1  # one Tab stop


def test_a_chart_says_in_words_what_it_shows_on_both_themes_and_a_click_on_a_row_arrives_once(shown: Page) -> None:
    plot = shown.locator("#chart .gb-plot")
    assert (plot.get_attribute("role"), plot.get_attribute("aria-label")) == ("group", "Says <b>seven</b>.")
    assert shown.locator("#chart .ytick text").all_text_contents() == ["·girl", "<b>boy</b>", "7"]
    fill = "getComputedStyle(document.querySelectorAll('#chart .bars .point path')[{}]).fill"
    for theme, index in (("light", 0), ("dark", 1), ("light", 0)):
        shown.evaluate(f"document.body.classList.toggle('dark', {str(theme == 'dark').lower()})")
        for bar, name in ((0, "before"), (3, "after")):
            colour = PALETTE[name][index]
            wanted = f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"
            shown.wait_for_function(f"{fill.format(bar)} === '{wanted}'")
    shown.click("#nothing")
    expect(shown.locator("#chart .gb-chart")).to_be_hidden()
    shown.click("#again")
    expect(shown.locator("#chart .gb-says")).to_have_text("Again.")
    shown.locator("#chart").scroll_into_view_if_needed()
    place = shown.locator("#chart .bars .point path").nth(1).bounding_box()
    shown.mouse.move(place["x"] + 20, place["y"] + place["height"] / 2)
    shown.wait_for_selector("#chart .hoverlayer .legend")
    shown.mouse.down()
    shown.mouse.up()
    expect(event(shown)).to_have_value(re.compile('"y": 1, "pointNumber": 1'))


def test_a_chart_keeps_its_place_until_plotly_is_there(page: Page, url: str) -> None:
    held: list[Route] = []
    page.route(f"**/{PLOTLY_URL}", lambda route: held.append(route))
    page.goto(url, wait_until="commit")
    expect(page.locator("#chart .gb-says")).to_be_visible()
    expect(chips(page).first).to_be_visible()  # the strip above the chart
    reserved = page.locator("#chart").bounding_box()
    assert page.locator("#chart .main-svg").count() == 0
    page.wait_for_function("window.Plotly === undefined && document.querySelector('script[data-glassbox=plotly]')")
    held[0].continue_()
    expect(page.locator("#chart .main-svg").first).to_be_attached()
    assert page.locator("#chart").bounding_box() == reserved


def test_everything_is_found_under_a_path_of_its_own(page: Page) -> None:
    outer = FastAPI(routes=[APIRoute("/favicon.ico", lambda: None)])  # Chromium requests it
    gr.mount_gradio_app(outer, demo(), path="/inner/app", ssr_mode=False, **OPTIONS)
    server = uvicorn.Server(uvicorn.Config(outer, log_level="error"))
    # Connections made before the server runs wait in the queue.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}/inner/app/")
            expect(page.locator("#chart .main-svg").first).to_be_attached()
        finally:
            server.should_exit = True
            thread.join()
