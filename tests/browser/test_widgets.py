"""The widgets in a real browser: what is sent is what is seen, and what a person does arrives at the server."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute
from playwright.sync_api import Page, Route, expect

from components.assets import HEAD, PLOTLY_URL, ROUTES
from components.figures import charts as figures
from components.figures import palette
from components.theme import THEME
from components.widgets.chart import chart, chart_value
from components.widgets.tokens import TOKEN_LABELS, header, selection, shade_value, token_line, tokens

HOSTILE = ["<img src=x onerror=alert(1)>", "${alert(1)}", "{{x}}", "<b>bold</b>", "</div>", "&amp;"]
TEXT = ["Once", " upon", " a", " time", ",", "\n", "\n", *HOSTILE, " the", " end", "."]
STREAMED = 100
WEIGHTS = np.array([0.1, 0.4, 0.0, 0.2])
OPTIONS: dict[str, Any] = {"theme": THEME, "head": HEAD, "app_kwargs": {"routes": ROUTES}}


def line(position: int) -> str:
    kind = "p" if position < 4 else "g"
    return token_line(100 + position, TEXT[position % len(TEXT)], 0.5, 1 + position, kind)


def text(doc: str, count: int) -> str:
    return header(doc) + "".join(map(line, range(count)))


def bars(first: float, says: str) -> str:
    after = np.array([first, 1 - first, 0.0])
    figure = figures.next_token_bars([" girl", "<b>boy</b>", "7"], np.array([0.5, 0.3, 0.2]), after, chosen=0)
    return chart_value(figure, says, "A note.")


def stream() -> Iterator[tuple[str, str]]:
    value = header("stream")
    yield value, gr.skip()
    for position in range(STREAMED):
        value += line(position)
        yield value, bars((position + 1) / STREAMED, f"Update {position}.")


def reset(times: str) -> tuple[Any, str, str, str]:
    strip = gr.update(value=text("first", len(TEXT)), selected=selection(-1), shade="", labels=TOKEN_LABELS)
    return strip, bars(0.7, "Says <b>seven</b>."), "", str(int(times) + 1)


def received(event: gr.EventData) -> str:
    return json.dumps(event.payload)


def demo() -> gr.Blocks:
    """Both widgets, and a button for each thing that a server may send them."""
    with gr.Blocks() as blocks:
        strip = tokens(text("first", len(TEXT)), elem_id="strip")
        picture = chart(bars(0.7, "Says <b>seven</b>."), elem_id="chart", clickable=True)
        event = gr.Textbox(label="event", elem_id="event")
        with gr.Tabs():
            with gr.Tab("one"):
                gr.Markdown("nothing")
            with gr.Tab("two"):
                later = chart(bars(0.7, "Later."), elem_id="later")
        sends: dict[str, tuple[Callable[..., Any], list[Any]]] = {
            "stream": (stream, [strip, picture]),
            "grow": (lambda: text("first", len(TEXT) + 5), [strip]),
            "empty": (lambda: gr.update(value="", labels=TOKEN_LABELS | {"empty": "Nothing yet."}), [strip]),
            "fourth": (lambda: gr.update(selected=selection(4)), [strip]),
            "shade": (lambda: gr.update(shade=shade_value(WEIGHTS)), [strip]),
            "shade-nothing": (lambda: gr.update(shade=shade_value(np.zeros(3))), [strip]),
            "unshade": (lambda: gr.update(shade=""), [strip]),
            "chinese": (lambda: gr.update(labels=TOKEN_LABELS | {"probability": "概率"}), [strip]),
            "broken": (lambda: '{"figure": {"data": 7', [picture]),
            "behind": (lambda: (bars(0.9, "Latest."), "sent"), [later, event]),
            "mended": (lambda: bars(0.6, "Mended."), [picture]),
        }
        for name, (send, outputs) in sends.items():
            gr.Button(name, elem_id=name).click(send, None, outputs, show_progress="hidden")
        resets = gr.Textbox("0", label="resets", elem_id="resets")
        gr.Button("reset", elem_id="reset").click(
            reset, resets, [strip, picture, event, resets], show_progress="hidden"
        )
        for widget in (strip, picture):
            widget.select(received, None, event, show_progress="hidden")
    return blocks


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(demo(), **OPTIONS)


@pytest.fixture
def shown(stay: Callable[..., Page], url: str) -> Page:
    """One page for most tests, as it was at first, with everything drawn."""

    def begin(page: Page) -> None:
        page.goto(url)
        expect(page.locator("#resets textarea")).to_have_value("0")

    opened = stay(begin)
    opened.mouse.move(0, 0)
    times = int(opened.locator("#resets textarea").input_value())
    opened.click("#reset")
    expect(opened.locator("#resets textarea")).to_have_value(str(times + 1))
    expect(opened.locator("#chart .gb-says")).to_have_text(re.compile("^Says"))
    expect(chips(opened)).to_have_count(len(TEXT))
    expect(opened.locator("#strip .gb-to")).to_have_text("100 %")
    expect(event(opened)).to_have_value("")
    expect(opened.locator("#chart .textpoint text").first).to_have_text("50 % → 70 %")
    return opened


def chips(page: Page) -> Any:
    return page.locator("#strip .gb-chip")


def event(page: Page) -> Any:
    return page.locator("#event textarea")


def test_tokens_are_shown_as_the_text_they_are(shown: Page) -> None:
    strip = shown.locator("#strip .gb-strip")
    assert strip.evaluate("e => e.textContent").replace("⏎", "") == "".join(TEXT)
    assert strip.locator("img, b, script").count() == 0
    assert chips(shown).count() == len(TEXT)
    tops = [chips(shown).nth(i).bounding_box()["y"] for i in (4, 5, 6, 7)]
    assert tops[0] == tops[1] < tops[2] < tops[3]  # a newline ends its line


def test_new_tokens_leave_the_old_chips_alone(shown: Page) -> None:
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


def test_a_stream_ends_with_its_newest_token_and_its_newest_chart(shown: Page) -> None:
    shown.click("#stream")
    expect(chips(shown)).to_have_count(STREAMED)
    expect(shown.locator("#chart .gb-says")).to_have_text(f"Update {STREAMED - 1}.")
    expect(shown.locator("#chart .textpoint text").first).to_have_text("50 % → 100 %")
    assert chips(shown).last.get_attribute("aria-selected") == "true"


def test_a_click_selects_at_once_and_arrives_at_the_server(shown: Page) -> None:
    chips(shown).nth(3).click()
    assert chips(shown).nth(3).get_attribute("aria-selected") == "true"
    assert shown.locator("#strip [aria-selected=true]").count() == 1
    expect(event(shown)).to_have_value('{"index": 3}')
    shown.click("#stream")
    expect(chips(shown)).to_have_count(STREAMED)
    assert chips(shown).last.get_attribute("aria-selected") == "true"  # another text: the newest again


def test_the_keyboard_moves_through_the_tokens_and_selects(shown: Page) -> None:
    focused = "[...document.querySelectorAll('#strip .gb-chip')].indexOf(document.activeElement)"
    chips(shown).last.focus()
    for key, place in {"Home": 0, "ArrowRight": 1, "ArrowDown": 6, "ArrowUp": 0, "End": len(TEXT) - 1}.items():
        shown.keyboard.press(key)
        assert shown.evaluate(focused) == place, key
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("Enter")
    expect(event(shown)).to_have_value(f'{{"index": {len(TEXT) - 2}}}')
    assert shown.locator("#strip .gb-chip[tabindex='0']").count() == 1  # one stop for the Tab key


def test_focus_tells_what_the_model_thought_of_a_token(shown: Page) -> None:
    chips(shown).nth(1).focus()
    tip = shown.locator("#strip .gb-tip")
    expect(tip).to_be_visible()
    assert chips(shown).nth(1).get_attribute("aria-describedby") == tip.get_attribute("id")
    assert tip.evaluate("e => [...e.children].map((c) => c.textContent)") == [
        *["·upon", "id", "101", "probability", "50\u00a0%", "rank", "2"]
    ]
    shown.click("#chinese")
    expect(tip).to_be_hidden()
    chips(shown).nth(1).hover()
    expect(tip.locator("span").nth(1)).to_have_text("概率")
    shown.keyboard.press("Escape")


def test_the_server_selects_even_what_it_selected_before(shown: Page) -> None:
    for _ in range(2):
        chips(shown).nth(1).click()
        shown.click("#fourth")
        expect(chips(shown).nth(4)).to_have_attribute("aria-selected", "true")


def test_attention_shades_the_tokens_instead_of_probability(shown: Page) -> None:
    strength = "e => getComputedStyle(e).backgroundColor"
    before = [chips(shown).nth(i).evaluate(strength) for i in range(5)]
    shown.click("#shade")
    expect(shown.locator("#strip .gb-to")).to_have_text("40 %")
    weights = [float(chips(shown).nth(i).evaluate("e => e.style.getPropertyValue('--s')") or 0) for i in range(5)]
    assert weights == pytest.approx([0.25, 1, 0, 0.5, 0], abs=0.01)
    assert len({chips(shown).nth(i).evaluate(strength) for i in range(4)}) == 4
    shown.click("#shade-nothing")
    expect(shown.locator("#strip .gb-scale")).not_to_be_visible()
    shown.click("#unshade")
    expect(shown.locator("#strip .gb-scale")).to_be_visible()
    expect(shown.locator("#strip .gb-to")).to_have_text("100 %")
    assert [chips(shown).nth(i).evaluate(strength) for i in range(5)] == before


def test_an_empty_text_says_so_and_spaces_show_on_request(shown: Page) -> None:
    content = "e => getComputedStyle(e, '::before').content"
    assert chips(shown).nth(1).evaluate(content) == "none"
    shown.click("#strip .gb-marks")
    assert chips(shown).nth(1).evaluate(content) == '"·"'
    expect(shown.locator("#strip .gb-marks")).to_have_attribute("aria-pressed", "true")
    shown.click("#strip .gb-marks")
    shown.click("#empty")
    expect(shown.locator("#strip .gb-empty")).to_be_visible()
    expect(shown.locator("#strip .gb-legend")).to_be_hidden()
    expect(shown.locator("#strip .gb-empty")).to_have_text("Nothing yet.")
    assert chips(shown).count() == 0


def test_a_chart_says_in_words_what_it_shows(shown: Page) -> None:
    plot = shown.locator("#chart .gb-plot")
    assert plot.get_attribute("role") == "img"
    assert plot.get_attribute("aria-label") == "Says <b>seven</b>."
    expect(shown.locator("#chart .gb-says")).to_have_text("Says <b>seven</b>.")
    ticks = shown.locator("#chart .ytick text").all_text_contents()
    assert ticks == ["·girl", "<b>boy</b>", "7"]


def test_a_click_on_a_row_of_bars_arrives_at_the_server(shown: Page) -> None:
    shown.locator("#chart").scroll_into_view_if_needed()
    place = shown.locator("#chart .bars .point path").nth(1).bounding_box()
    shown.mouse.move(place["x"] + 20, place["y"] + place["height"] / 2)
    shown.wait_for_selector("#chart .hoverlayer .legend")
    shown.mouse.down()
    shown.mouse.up()
    expect(event(shown)).to_have_value(re.compile('"y": 1, "pointNumber": 1'))


def test_the_theme_changes_every_colour_of_a_chart(shown: Page) -> None:
    fill = "getComputedStyle(document.querySelectorAll('#chart .bars .point path')[{}]).fill"
    for theme, index in (("light", 0), ("dark", 1), ("light", 0)):
        shown.evaluate(f"document.body.classList.toggle('dark', {str(theme == 'dark').lower()})")
        for bar, name in ((0, "before"), (3, "after")):
            colour = palette.PALETTE[name][index]
            wanted = f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"
            shown.wait_for_function(f"{fill.format(bar)} === '{wanted}'")


def test_a_broken_value_shows_nothing_and_the_next_is_drawn(shown: Page) -> None:
    shown.click("#broken")
    expect(shown.locator("#chart .gb-chart")).to_be_hidden()
    shown.click("#mended")
    expect(shown.locator("#chart .gb-says")).to_have_text("Mended.")
    expect(shown.locator("#chart .main-svg").first).to_be_visible()
    shown.locator("#chart .nsewdrag").click(position={"x": 20, "y": 10})
    expect(event(shown)).to_have_value(re.compile('"pointNumber": 0'))  # clicks survive, and come once


def test_a_chart_in_a_hidden_tab_is_drawn_when_it_is_opened(shown: Page) -> None:
    one, two = (shown.get_by_role("tab", name=name, exact=True) for name in ("one", "two"))
    change = shown.locator("#later .textpoint text").first
    two.click()
    expect(change).to_have_text("50 % → 70 %")
    assert shown.locator("#later .main-svg").first.bounding_box()["width"] > 600
    one.click()
    shown.click("#behind")
    expect(event(shown)).to_have_value("sent")
    two.click()
    expect(change).to_have_text("50 % → 90 %")  # what came while nobody could see it
    expect(shown.locator("#later .gb-says")).to_have_text("Latest.")
    one.click()


def test_a_phone_shows_everything_without_scrolling_sideways(shown: Page) -> None:
    shown.set_viewport_size({"width": 390, "height": 800})
    shown.wait_for_function("document.querySelector('#chart .main-svg').getBoundingClientRect().width < 390")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    chips(shown).nth(3).hover()
    tip = shown.locator("#strip .gb-tip").bounding_box()
    assert tip["x"] >= 0
    assert tip["x"] + tip["width"] <= 390
    shown.set_viewport_size({"width": 1280, "height": 900})


def test_a_chart_keeps_its_place_until_plotly_is_there(page: Page, url: str) -> None:
    held: list[Route] = []
    page.route(f"**/{PLOTLY_URL}", lambda route: held.append(route))
    page.goto(url, wait_until="commit")
    expect(page.locator("#chart .gb-says")).to_be_visible()
    reserved = page.locator("#chart").bounding_box()
    assert page.locator("#chart .main-svg").count() == 0
    held[0].continue_()
    expect(page.locator("#chart .main-svg").first).to_be_attached()
    assert page.locator("#chart").bounding_box() == reserved


def test_everything_is_found_under_a_path_of_its_own(page: Page) -> None:
    outer = FastAPI(routes=[APIRoute("/favicon.ico", lambda: None)])  # Chromium asks for it
    gr.mount_gradio_app(outer, demo(), path="/inner/app", ssr_mode=False, **OPTIONS)
    server = uvicorn.Server(uvicorn.Config(outer, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        page.goto(f"http://127.0.0.1:{port}/inner/app/")
        expect(page.locator("#chart .main-svg").first).to_be_attached()
    finally:
        server.should_exit = True
        thread.join()
