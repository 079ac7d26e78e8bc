"""The Inside tab in a browser: its pictures, and the effect of clicks, keys and generation on both tabs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.playground_page import (
    CHIPS,
    open_playground,
    open_tab,
    show_numbers,
    show_step,
    switch_theme,
)

pytestmark = pytest.mark.thorough

INK = """canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < data.length; i += 28) if (data[i + 3]) seen.add(data.slice(i, i + 3).join());
  return seen.size;
}"""


@pytest.fixture
def opened(stay: Callable[..., Page], site: str) -> Page:
    """A shared page with Inside open: the example, with its last token, layer 0 and head 0 selected."""
    page = stay(lambda page: open_playground(page, site))
    page.mouse.move(5, 5)
    open_tab(page, "playground")
    page.locator(CHIPS).last.click()
    open_tab(page, "inside")
    show_step(page, "All heads")
    page.locator(".gb-heads-grid canvas").click(position={"x": 40, "y": 40})
    expect(flow(page)).to_contain_text("layer 0, head 0, “play”")
    page.mouse.move(5, 5)
    return page


def drawn(page: Page, canvas: str, colours: int) -> None:
    """Wait until a picture has more than this many colours."""
    page.wait_for_function(f"n => ({INK})(document.querySelector('{canvas}')) > n", arg=colours)


def flow(page: Page) -> Any:
    return page.locator("#flow figcaption .gb-says")


def part(page: Page, name: str) -> Any:
    return page.locator(f"#flow [data-part={name}]")


def test_the_pictures_are_drawn_on_both_themes_show_numbers_under_the_pointer_and_fit_a_phone(opened: Page) -> None:
    for _ in range(2):
        for widget in ("#flow", "#heads"):
            drawn(opened, f"{widget} canvas", 100)
        switch_theme(opened)
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/queue/join" in request.url:
            asked.append(request.url)

    tip = opened.locator("#flow .gb-flow-tip")
    opened.on("request", note)
    x = part(opened, "plus1").evaluate("button => button.offsetLeft + button.offsetWidth / 2")
    opened.locator("#flow canvas").hover(position={"x": x, "y": 300})
    expect(tip).to_contain_text("First addition")
    lengths = re.compile(r"\|x\| = [\d.]+, \|added\| = [\d.]+ → \|x\| = [\d.]+")
    expect(tip).not_to_contain_text(lengths)
    assert asked == [], "the words are there already"
    opened.remove_listener("request", note)
    opened.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.wait_for_function("document.querySelector('.gb-flow-scroll').clientWidth < 390")
    assert opened.locator(".gb-flow-scroll").evaluate("box => box.scrollWidth > 2 * box.clientWidth")
    part(opened, "next").focus()
    opened.wait_for_function("document.querySelector('.gb-flow-scroll').scrollLeft > 500")
    opened.locator(".gb-flow-scroll").click(position={"x": 40, "y": 90})  # the first token, which stays visible
    expect(flow(opened)).to_contain_text("“was” attends")
    opened.set_viewport_size({"width": 1280, "height": 900})
    whole = "box => box.clientWidth > 1000 && box.scrollWidth <= box.clientWidth"
    opened.wait_for_function(f"({whole})(document.querySelector('.gb-flow-scroll'))")
    more = opened.locator("#flow .gb-flow-more")
    more.click()
    expect(more).to_have_text("Show 12 tokens")
    more.click()
    expect(more).to_have_text("Show 13 tokens")
    show_numbers(opened)
    opened.locator("#flow canvas").hover(position={"x": x, "y": 300})
    expect(tip).to_contain_text(lengths)
    show_numbers(opened, False)
