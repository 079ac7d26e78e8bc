"""Widgets that show views: what one frame changes is on the screen together, and a missing frame is asked for."""

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
from components.widgets.encoding import to_json
from components.widgets.frame import frame_widget
from components.widgets.sentence import sentence
from components.widgets.tokens import token_line, tokens
from components.widgets.widget import placed

OPTIONS: dict[str, Any] = {"theme": THEME, "head": HEAD, "app_kwargs": {"routes": ROUTES}}
COUNT = 300
DRAWN = Event()  # whether the stream may go on from its middle


def line(position: int) -> str:
    return token_line(100 + position, f" w{position}", 0.5, 1, "g").strip()


def bars(position: int) -> dict[str, Any]:
    after = np.array([(position + 1) / COUNT, 1 - (position + 1) / COUNT])
    return chart_data(next_token_bars([" girl", " boy"], np.array([0.5, 0.5]), after, chosen=0), f"Token {position}.")


def frame(number: int, views: dict[str, Any], **more: Any) -> str:
    base = None if number == 1 else number - 1
    return to_json({"n": number, "base": base, "session": "of a test", "views": views, **more})


def stream() -> Iterator[str]:
    """Every frame adds a token and its chart; in the middle it waits until the browser has drawn some."""
    DRAWN.clear()
    yield frame(1, {"strip": {"doc": "a", "lines": [line(0)]}, "bars": bars(0), "says": {"text": "Token 0."}})
    for position in range(1, COUNT):
        added = {"$lines": position, "add": [line(position)]}
        said = {"text": f"Token {position}."}
        yield frame(position + 1, {"strip": {"lines": added}, "bars": bars(position), "says": said})
        if position == COUNT // 2:
            DRAWN.wait(timeout=60)


def whole(number: int, selected: int) -> str:
    """The end of the stream, with a selection."""
    strip = {"doc": "a", "lines": [line(position) for position in range(COUNT)], "selected": selected}
    views = {"strip": strip, "bars": bars(COUNT - 1), "says": {"text": f"Token {COUNT - 1}."}}
    return to_json({"n": number, "base": None, "views": views})


def received(sent: dict[str, Any]) -> str:
    return str(sent["select"])


def demo() -> gr.Blocks:
    """A widget of each kind that shows a view, and a button for each thing that a server may send them."""
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


@pytest.fixture
def shown(stay: Callable[..., Page], url: str) -> Page:
    """One page for all, with nothing of the test before."""
    page = stay(lambda page: page.goto(url))
    page.get_by_role("tab", name="first", exact=True).click()
    page.click("#ready")
    expect(page.locator("#says p")).to_have_text("Ready.")
    expect(page.locator("#strip .gb-chip")).to_have_count(0)
    return page


def stream_to_the_end(page: Page) -> None:
    page.click("#stream")
    expect(page.locator("#strip .gb-chip")).to_have_count(COUNT // 2 + 1)
    DRAWN.set()
    expect(page.locator("#strip .gb-chip")).to_have_count(COUNT)
    expect(page.locator("#says p")).to_have_text(f"Token {COUNT - 1}.")


def test_at_every_moment_all_widgets_show_the_same_frame(shown: Page) -> None:
    shown.evaluate("""() => {
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
    stream_to_the_end(shown)
    seen = shown.evaluate("window.seen")
    assert all(strip == says == bars for strip, says, bars in seen), seen
    assert len({strip for strip, _, _ in seen}) >= 3, "one between the first and the last"


def test_a_selection_of_the_server_and_of_a_person(shown: Page) -> None:
    stream_to_the_end(shown)
    chips = shown.locator("#strip .gb-chip")
    shown.click("#choose")
    expect(chips.nth(3)).to_have_attribute("aria-selected", "true")
    chips.nth(5).click()
    assert chips.nth(5).get_attribute("aria-selected") == "true"  # at once
    expect(shown.locator("#event textarea")).to_have_value("{'index': 5}")


def test_a_missing_frame_is_asked_for(shown: Page) -> None:
    stream_to_the_end(shown)
    shown.click("#gap")
    expect(shown.locator("#strip .gb-chip").nth(7)).to_have_attribute("aria-selected", "true")
    expect(shown.locator("#says p")).to_have_text(f"Token {COUNT - 1}.")


def test_a_tab_that_is_opened_later_shows_the_newest_frame(shown: Page) -> None:
    stream_to_the_end(shown)
    shown.get_by_role("tab", name="second", exact=True).click()
    expect(shown.locator("#later .gb-says")).to_have_text(f"Token {COUNT - 1}.")
    expect(shown.locator("#later .main-svg").first).to_be_visible()
