"""The Inside tab in a browser: what is drawn, what a click, a key and a running text do to both tabs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.playground_page import forget_status, open_playground, pick, set_slider, written

CHIPS = "#strip .gb-strip [role=option]"
INK = """canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < data.length; i += 28) if (data[i + 3]) seen.add(data.slice(i, i + 3).join());
  return seen.size;
}"""

CORNER = """canvas => {  // a pixel of the opened layer's card
  const ratio = canvas.width / canvas.clientWidth;
  const x = document.querySelector(".gb-flow-layer").offsetLeft;
  return canvas.getContext("2d").getImageData(x * ratio, 50 * ratio, 1, 1).data.join();
}"""


@pytest.fixture
def opened(stay: Callable[..., Page], site: str) -> Page:
    """One page for most tests: the example, looked at from its last token, in layer 0 and head 0; the Inside tab."""
    shared = stay(lambda page: open_playground(page, site))
    shared.mouse.move(5, 5)
    shared.get_by_role("tab", name="Playground").click()
    shared.locator(CHIPS).last.click()
    shared.get_by_role("tab", name="Inside").click()
    shared.get_by_role("tab", name="The machine").click()
    shared.locator(".gb-heads-grid canvas").click(position={"x": 40, "y": 40})
    expect(flow(shared)).to_contain_text(f"position {shared.locator(CHIPS).count() - 1} of")
    expect(flow(shared)).to_contain_text("layer 0, head 0")
    shared.mouse.move(5, 5)
    return shared


def drawn(page: Page, canvas: str, colours: int) -> None:
    """Wait for a picture of more than so many colours."""
    page.wait_for_function(f"n => ({INK})(document.querySelector('{canvas}')) > n", arg=colours)


def flow(page: Page) -> Any:
    return page.locator("#flow figcaption .gb-says")


def part(page: Page, name: str) -> Any:
    return page.locator(f"#flow [data-part={name}]")


def test_both_pictures_are_drawn_on_both_themes(opened: Page) -> None:
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1280
    for _ in range(2):
        for widget in ("#flow", "#heads"):
            drawn(opened, f"{widget} canvas", 100)
        before = opened.locator("#flow canvas").evaluate(CORNER)
        opened.locator("#theme").click()
        opened.wait_for_function(f"before => ({CORNER})(document.querySelector('#flow canvas')) !== before", arg=before)


def test_a_click_on_a_head_and_a_layer_moves_every_picture_in_both_tabs(opened: Page) -> None:
    opened.get_by_role("button", name="Head 3", exact=True).click()
    expect(flow(opened)).to_contain_text("layer 0, head 3")
    opened.get_by_role("button", name="Layer +").click()
    expect(flow(opened)).to_contain_text("layer 1, head 3")
    expect(opened.locator("#heads strong")).to_have_text("Layer 1, head 3")
    opened.get_by_role("tab", name="Playground").click()
    expect(opened.locator("#heatmap .gb-says")).to_contain_text("Layer 1, head 3")
    expect(opened.locator("#layer input")).to_have_value("1")
    expect(opened.locator("#head input")).to_have_value("3")


def test_a_click_on_a_row_looks_from_that_token(opened: Page) -> None:
    expect(part(opened, "tokens")).to_have_attribute("aria-label", re.compile("position 53"))
    box = opened.locator("#flow canvas").bounding_box()
    assert box is not None
    opened.locator("#flow canvas").click(position={"x": 60, "y": box["height"] - 100})
    expect(part(opened, "tokens")).not_to_have_attribute("aria-label", re.compile("position 53"))
    expect(flow(opened)).not_to_contain_text("position 53 of")
    position = re.search(r"position (\d+) of", flow(opened).text_content() or "")
    assert position is not None
    opened.get_by_role("tab", name="Playground").click()
    chip = opened.locator(CHIPS).nth(int(position[1]))
    expect(chip).to_have_attribute("aria-selected", "true")


def test_a_selection_in_the_playground_is_there_when_the_tab_opens(opened: Page) -> None:
    opened.get_by_role("tab", name="Playground").click()
    opened.locator(CHIPS).nth(2).click()
    expect(opened.locator("#heatmap .gb-says")).to_contain_text("“·a” looked most")
    opened.get_by_role("tab", name="Inside").click()
    expect(flow(opened)).to_contain_text("“·a” (position 2 of")


def test_hovering_says_what_a_part_is_with_this_tokens_numbers_and_asks_the_server_nothing(opened: Page) -> None:
    asked: list[int] = []

    def note(request: Request) -> None:
        if "queue/join" in request.url:
            asked.append(request.post_data_json["fn_index"])

    opened.on("request", note)
    canvas, tip = opened.locator("#flow canvas"), opened.locator("#flow .gb-flow-tip")
    while len(asked) == len(set(asked)):  # until the clock that follows a text has ticked twice
        with opened.expect_request("**/queue/join*"):
            pass
    clock, before = max(asked, key=asked.count), len(asked)
    place = part(opened, "plus1").evaluate("button => [button.offsetLeft + button.offsetWidth / 2, 300]")
    canvas.hover(position={"x": place[0], "y": place[1]})
    expect(tip).to_contain_text("First addition")
    expect(tip).to_contain_text(re.compile(r"\|x\| = [\d.]+, \|added\| = [\d.]+ → \|x\| = [\d.]+"))
    assert set(asked[before:]) <= {clock}
    opened.remove_listener("request", note)
    opened.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_every_part_can_be_reached_and_moved_with_the_keyboard(opened: Page) -> None:
    part(opened, "q").focus()
    expect(opened.locator("#flow .gb-flow-tip")).to_contain_text("Query of head 0")
    opened.keyboard.press("Tab")
    expect(opened.locator("#flow .gb-flow-tip")).to_contain_text("Keys of head 0")
    opened.keyboard.press("ArrowRight")
    expect(flow(opened)).to_contain_text("layer 0, head 1")
    opened.keyboard.press("ArrowUp")
    expect(flow(opened)).to_contain_text("position 52 of")
    part(opened, "ff").focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowRight")
    expect(flow(opened)).to_contain_text("layer 2, head 1")
    expect(part(opened, "ff")).to_be_focused()


def test_the_overview_opens_a_head_by_click_and_by_arrow_keys(opened: Page) -> None:
    grid = opened.locator(".gb-heads-grid")
    grid.focus()
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowRight")
    expect(opened.locator("#heads strong")).to_have_text("Layer 1, head 1")
    expect(flow(opened)).to_contain_text("layer 0, head 0")
    opened.keyboard.press("Enter")
    expect(flow(opened)).to_contain_text("layer 1, head 1")
    opened.locator(".gb-heads-grid canvas").click(position={"x": 40, "y": 40})
    expect(flow(opened)).to_contain_text("layer 0, head 0")


def test_one_cell_is_worked_out_with_numbers_that_follow_from_each_other(opened: Page) -> None:
    opened.get_by_role("tab", name="One head").click()
    worked = opened.locator("#stages .gb-stages-sum")
    expect(worked).to_contain_text("(53) looks at")
    opened.get_by_role("button", name="÷ √32").click()
    expect(opened.locator("#stages .gb-stages-what")).to_contain_text("Scaled")
    expect(worked.locator(".gb-now")).to_contain_text("/ √32 =")
    opened.locator("#stages .gb-stages-large").focus()
    opened.keyboard.press("ArrowUp")
    expect(worked).to_contain_text("(52) looks at")
    text = "\n".join(worked.locator("code").all_text_contents()).replace("−", "-")
    raw, score = (float(x) for x in re.search(r"(-?[\d.]+) / √32 = (-?[\d.]+)", text).groups())
    total, weight = re.search(r"exp\(-?[\d.]+ - \(?(-?[\d.]+)\)?\) = ([\d.]+)", text).groups()
    assert score == pytest.approx(raw / 32**0.5, abs=0.01)
    assert float(weight) == pytest.approx(math.exp(score - float(total)), rel=0.02, abs=0.01)
    expect(opened.locator("#stages figcaption .gb-says")).to_contain_text("position 52")
    opened.get_by_role("tab", name="Playground").click()
    expect(opened.locator(CHIPS).nth(52)).to_have_attribute("aria-selected", "true")


def test_who_looks_at_whom_in_lines_and_in_other_views(opened: Page) -> None:
    opened.get_by_role("tab", name="One head").click()
    says = opened.locator("#lines figcaption .gb-says")
    expect(says).to_contain_text("Layer 0, head 0: ")
    drawn(opened, "#lines canvas", 50)
    first = opened.locator("#lines .gb-lines-heads button").first
    first.click()
    expect(first).to_have_attribute("aria-pressed", "false")
    opened.locator("#lines-view input").click()
    opened.get_by_role("option", name="attention rollout").click()
    expect(says).to_contain_text("After all layers, position 53")
    expect(first).to_be_hidden()
    opened.locator("#lines .gb-lines-picture").focus()
    opened.keyboard.press("ArrowUp")
    expect(says).to_contain_text("position 52")


def test_on_a_phone_the_flow_scrolls_inside_its_card(opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.wait_for_function("document.querySelector('.gb-flow-scroll').clientWidth < 390")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    scroller = opened.locator(".gb-flow-scroll")
    assert scroller.evaluate("box => box.scrollWidth > 2 * box.clientWidth")
    part(opened, "next").focus()
    opened.wait_for_function("document.querySelector('.gb-flow-scroll').scrollLeft > 500")
    opened.set_viewport_size({"width": 1280, "height": 900})


def test_a_layer_and_a_token_picked_beside_the_stream_hold_in_every_part(opened: Page) -> None:
    opened.get_by_role("tab", name="Stream and neurons").click()
    expect(opened.locator("#stream-layer")).to_contain_text("Layer 0")
    opened.locator("#stream-layer").get_by_role("button", name="Layer +").click()
    expect(opened.locator("#stream-layer")).to_contain_text("Layer 1")
    opened.locator("#stream-tokens [role=option]").nth(3).click()
    expect(opened.locator("#neurons .gb-says")).to_contain_text("At “·time” neuron")
    opened.get_by_role("tab", name="The machine").click()
    expect(flow(opened)).to_contain_text("“·time” (position 3 of")
    expect(flow(opened)).to_contain_text("layer 1, head 0")


def test_it_follows_a_text_while_it_is_written_and_another_language_and_an_empty_page(page: Page, site: str) -> None:
    open_playground(page, site)
    page.locator("#prompt textarea").fill("The dog")
    set_slider(page, "length", 200)
    pick(page, "pace", "5")
    forget_status(page)
    page.locator("#generate").click()
    expect(page.locator("#status")).to_contain_text("tokens/s")
    page.get_by_role("tab", name="Inside").click()
    expect(flow(page)).to_contain_text(re.compile(r"of ([3-9]|\d{2,3})\)"))
    first = flow(page).text_content() or ""
    expect(flow(page)).not_to_have_text(first)
    page.get_by_role("tab", name="Playground").click()
    page.locator("#stop").click(force=True)  # on a slow machine the text may have ended by itself
    written(page)
    page.get_by_role("tab", name="Inside").click()
    page.locator("#language").get_by_text("中文").click()
    expect(part(page, "ff")).to_have_attribute("aria-label", re.compile("前馈层内部"))
    expect(page.locator("#heads strong")).to_have_text("第 3 层，第 2 个头")
    page.get_by_role("tab", name="试验台").click()
    page.locator("#clear").click()
    expect(page.locator(CHIPS)).to_have_count(0)
    page.get_by_role("tab", name="内部").click()
    expect(page.locator("#inside-notice")).to_contain_text("还没有文本")
    for name in ("整台机器", "一个头"):
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.locator("#inside-notice")).to_be_visible()
        expect(page.locator("#inside-parts .gb-card:visible, #trace-save:visible")).to_have_count(0)
