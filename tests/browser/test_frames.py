"""Widgets that show views: the changes of a frame appear together, and the page asks for missing frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import gradio as gr
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from components.assets import HEAD, ROUTES
from components.figures.bars import next_token_bars
from components.theme import THEME
from components.widgets.chart import chart, chart_data
from components.widgets.frame import frame_widget
from components.widgets.sentence import sentence
from components.widgets.tokens import token_line, tokens
from components.widgets.widget import placed, to_json

OPTIONS: dict[str, Any] = {"theme": THEME, "head": HEAD, "app_kwargs": {"routes": ROUTES}}
COUNT = 120
DRAWN = Event()  # set when the stream may continue past its middle


def line(position: int) -> str:
    return token_line(100 + position, f" w{position}", 0.5, 1, "g").strip()


def bars(position: int) -> dict[str, Any]:
    after = np.array([(position + 1) / COUNT, 1 - (position + 1) / COUNT])
    return chart_data(next_token_bars([" girl", " boy"], np.array([0.5, 0.5]), after, chosen=0), f"Token {position}.")


def frame(number: int, views: dict[str, Any], **more: Any) -> str:
    base = None if number == 1 else number - 1
    return to_json({"n": number, "base": base, "session": "of a test", "views": views, **more})


def stream() -> Iterator[str]:
    """Add a token and its chart with each frame. In the middle, wait until the browser has drawn some."""
    DRAWN.clear()
    yield frame(1, {"strip": {"doc": "a", "lines": [line(0)]}, "bars": bars(0), "says": {"text": "Token 0."}})
    for position in range(1, COUNT):
        added = {"$lines": position, "add": [line(position)]}
        said = {"text": f"Token {position}."}
        yield frame(position + 1, {"strip": {"lines": added}, "bars": bars(position), "says": said})
        if position == COUNT // 2:
            DRAWN.wait(timeout=60)


def whole(number: int, selected: int) -> str:
    """Return a complete frame of the finished stream, with a selection."""
    strip = {"doc": "a", "lines": [line(position) for position in range(COUNT)], "selected": selected}
    views = {"strip": strip, "bars": bars(COUNT - 1), "says": {"text": f"Token {COUNT - 1}."}}
    return to_json({"n": number, "base": None, "views": views})


def received(sent: dict[str, Any]) -> str:
    return str(sent["select"])


def demo() -> gr.Blocks:
    """Build a page with every widget that shows a view, and a button for everything a server may send them."""
    with gr.Blocks() as blocks:
        hidden = frame_widget()
        placed(sentence("says"))
        strip = placed(tokens("strip"))
        placed(chart("bars"))
        event = gr.Textbox(label="event", elem_id="event")
        with gr.Tabs():
            with gr.Tab("first"):
                gr.Markdown("nothing")
            with gr.Tab("second"):
                placed(chart("later", view="bars"))
        sends: dict[str, Callable[..., Any]] = {
            "ready": lambda: frame(1, {"says": {"text": "Ready."}}),
            "stream": stream,
            "choose": lambda: whole(COUNT + 1, selected=3),
            "gap": lambda: frame(COUNT + 9, {"says": {"text": "Too early."}}),
        }
        for name, send in sends.items():
            gr.Button(name, elem_id=name).click(send, None, hidden, show_progress="hidden")
        hidden.retry(lambda: whole(COUNT + 10, selected=7), None, hidden, show_progress="hidden")
        strip.select(received, strip, event, show_progress="hidden")
    return blocks


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(demo(), **OPTIONS)


def stream_to_the_end(page: Page) -> None:
    page.click("#stream")
    expect(page.locator("#strip .gb-chip")).to_have_count(COUNT // 2 + 1)
    DRAWN.set()
    expect(page.locator("#strip .gb-chip")).to_have_count(COUNT)
    expect(page.locator("#says p")).to_have_text(f"Token {COUNT - 1}.")


def test_all_widgets_show_the_same_frame_a_missing_one_is_asked_for_and_a_selection_goes_both_ways(
    page: Page, url: str
) -> None:
    page.goto(url)
    page.click("#ready")
    expect(page.locator("#says p")).to_have_text("Ready.")
    page.evaluate("""() => {
        window.seen = [];
        const text = (selector) => document.querySelector(selector).textContent;
        const look = () => {
            const count = document.querySelectorAll("#strip .gb-chip").length;
            const says = text("#says p").replace("Ready.", "");
            window.seen.push([count ? `Token ${count - 1}.` : "", says, text("#bars .gb-says")]);
            requestAnimationFrame(look);
        };
        look();
    }""")
    stream_to_the_end(page)
    seen = page.evaluate("window.seen")
    assert all(strip == says == bars for strip, says, bars in seen), seen
    assert len({strip for strip, _, _ in seen}) >= 3, "one between the first and the last"
    chips = page.locator("#strip .gb-chip")
    page.click("#choose")
    expect(chips.nth(3)).to_have_attribute("aria-selected", "true")
    chips.nth(5).click()
    assert chips.nth(5).get_attribute("aria-selected") == "true"  # immediately
    expect(page.locator("#event textarea")).to_have_value("{'index': 5}")
    page.click("#gap")
    expect(chips.nth(7)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#says p")).to_have_text(f"Token {COUNT - 1}.")
    page.get_by_role("tab", name="second", exact=True).click()  # a tab opened later shows the newest frame
    expect(page.locator("#later .gb-says")).to_have_text(f"Token {COUNT - 1}.")
    expect(page.locator("#later .main-svg").first).to_be_visible()
