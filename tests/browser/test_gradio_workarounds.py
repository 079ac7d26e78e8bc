"""What components/gradio_workarounds.js makes up for, on a page without it: a test that fails says that it can go."""

from __future__ import annotations

from collections.abc import Callable

import gradio as gr
import pytest
from playwright.sync_api import Page, expect


def demo() -> gr.Blocks:
    with gr.Blocks() as page:
        text, told = gr.Textbox(elem_id="text"), gr.Textbox(elem_id="told")
        gr.Dropdown(choices=["one", "two"], interactive=True, elem_id="list")
        gr.Button("after")
        text.input(lambda typed: typed, text, told, trigger_mode="always_last")
    return page


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(demo())


def test_gradio_tells_nobody_what_is_deleted_in_a_text_box(page: Page, url: str) -> None:
    page.goto(url)
    box, told = page.locator("#text textarea"), page.locator("#told textarea")
    box.press_sequentially("ab")
    expect(told).to_have_value("ab")
    box.press("Backspace")
    box.press_sequentially("c")
    expect(told).to_have_value("ac")
    box.press("Backspace")
    page.locator("#list input").click()
    expect(page.get_by_role("listbox")).to_be_visible()  # time for an event
    assert told.input_value() == "ac"


def test_gradio_leaves_a_list_open_when_the_focus_goes_on(page: Page, url: str) -> None:
    page.goto(url)
    page.locator("#list input").click()
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#list input")).not_to_be_focused()
    assert page.get_by_role("listbox").is_visible()
