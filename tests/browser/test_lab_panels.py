"""The panels of the lab in a browser, each in a tab of its own on a page with nothing else."""

from importlib import import_module
from types import SimpleNamespace

import gradio as gr
import pytest
from playwright.sync_api import expect

from components.frame import build_frame
from components.localized import Words
from components.page import launch_options
from components.state.example import example
from components.state.session import Session
from gpt import get_model

PANELS = {
    "layer_norm": "norm",
    "shortcuts": "shortcuts",
    "tokenizer": "bpe",
    "masks": "masks",
    "initialisation": "start",
    "tying": "tying",
    "kernels": "kernels",
    "positions": "positions",
    "skeleton": "skeleton",
    "feed_forward": "ff",
}


@pytest.fixture(scope="module")
def url(serve):
    words = Words()
    with gr.Blocks() as page:
        frame = build_frame(words, example(get_model()))
        playground = SimpleNamespace(frame=frame, session=gr.State(Session(frame.example)))
        with gr.Tabs():
            gr.Tab("nothing")
            for name in PANELS:
                with gr.Tab(name) as tab:
                    build = getattr(import_module(f"components.panels.{name}"), f"build_{name}")
                    build(words, frame, playground).show_on(tab.select)
        words.wire(frame.switch, frame.language)
    return serve(page, **launch_options())


def open_panel(page, name):
    """On the bar, or in the menu of the tabs that do not fit."""
    bar = page.get_by_role("tab", name=name, exact=True)
    if not bar.is_visible():
        page.locator(".overflow-menu > button").click()
        bar = page.locator(".overflow-dropdown").get_by_text(name, exact=True)
    bar.click()
    answer = page.locator(f"#{PANELS[name]}-answer p")
    expect(answer).not_to_be_empty()
    return answer


def test_every_panel_answers_when_it_is_opened_on_a_dark_phone_and_fits(page, url):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{url}?__theme=dark")
    expect(page.get_by_role("tab", name="nothing", exact=True)).to_be_visible()
    for name, prefix in PANELS.items():
        open_panel(page, name)
        expect(page.locator(f"[id^={prefix}-] .main-svg").first).to_be_visible()
        expect(page.locator(f"#{prefix}-notice p")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name


@pytest.fixture
def opened(stay, url):
    """One page for several tests, each of which has panels of its own."""

    def begin(page):
        page.goto(url)
        expect(page.get_by_role("tab", name="nothing", exact=True)).to_be_visible()

    return stay(begin)


def test_layer_norm_goes_from_the_example_to_the_running_model(opened):
    answer = open_panel(opened, "layer_norm")
    expect(answer).to_contain_text("mean 0.2170")
    opened.get_by_label("the running model").click()
    expect(opened.locator("#norm-before .gb-says")).to_contain_text("192 numbers a row")
    expect(opened.locator("#norm-layer")).to_be_visible()


def test_a_panel_that_was_opened_speaks_the_new_language_and_refuses_in_it(opened):
    answer = open_panel(opened, "tokenizer")
    expect(answer).to_contain_text("11 bytes")
    opened.get_by_text("中文", exact=True).click()
    expect(answer).to_contain_text("11 个字节")
    word = opened.locator("#bpe-word").locator("input, textarea")
    word.fill("two words")
    expect(opened.locator("#bpe-notice p")).to_contain_text("切成 2 个单词")
    word.fill("grandmother")
    expect(opened.locator("#bpe-notice p")).to_be_hidden()
    opened.get_by_text("EN", exact=True).click()
    expect(answer).to_contain_text("11 bytes")


def test_speed_is_measured_when_asked_and_learning_stops_when_told(opened):
    open_panel(opened, "kernels")
    opened.locator("#kernels-start").click()
    expect(opened.locator("#kernels-measured .gb-says")).to_contain_text("tokens a second with the cache")
    expect(opened.locator("#kernels-start")).to_be_enabled()
    expect(opened.locator("#kernels-stop")).to_be_disabled()
    open_panel(opened, "positions")
    opened.locator("#positions-start").click()
    expect(opened.locator("#positions-start")).to_be_disabled()
    opened.locator("#positions-stop").click()
    expect(opened.locator("#positions-start")).to_be_enabled()
