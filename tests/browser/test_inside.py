"""The Inside tab in a browser: what is drawn, what a click, a key and a running text do to both tabs."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from components.layout import build_app, launch_options

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


@pytest.fixture(scope="module")
def url(serve: Any) -> str:
    return serve(build_app(), **launch_options())


@pytest.fixture(scope="module")
def shared(url: str, module_page: Page) -> Page:
    module_page.goto(url)
    return module_page


@pytest.fixture
def opened(shared: Page) -> Page:
    """The example, looked at from its last token, in layer 0 and head 0; the Inside tab is open."""
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


def flow(page: Page) -> Any:
    return page.locator("#flow figcaption .gb-says")


def part(page: Page, name: str) -> Any:
    return page.locator(f"#flow [data-part={name}]")


def test_both_pictures_are_drawn_on_both_themes(opened: Page) -> None:
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1280
    for _ in range(2):
        for widget in ("#flow", "#heads"):
            assert opened.locator(f"{widget} canvas").first.evaluate(INK) > 100
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
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url) if "queue/join" in request.url else None)
    canvas, tip = opened.locator("#flow canvas"), opened.locator("#flow .gb-flow-tip")
    opened.wait_for_timeout(500)
    ticks = len(asked)
    place = part(opened, "plus1").evaluate("button => [button.offsetLeft + button.offsetWidth / 2, 300]")
    canvas.hover(position={"x": place[0], "y": place[1]})
    expect(tip).to_contain_text("First addition")
    expect(tip).to_contain_text(re.compile(r"\|x\| = [\d.]+, \|added\| = [\d.]+ → \|x\| = [\d.]+"))
    assert len(asked) <= ticks + 2  # the clock that follows a text, and nothing else
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
    assert opened.locator("#lines canvas").first.evaluate(INK) > 50
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


def test_in_chinese_its_words_are_chinese(opened: Page) -> None:
    opened.locator("#language").get_by_text("中文").click()
    expect(part(opened, "ff")).to_have_attribute("aria-label", re.compile("前馈层内部"))
    expect(opened.locator("#heads strong")).to_have_text("第 0 层，第 0 个头")
    opened.locator("#language").get_by_text("EN").click()
    expect(opened.locator("#heads strong")).to_have_text("Layer 0, head 0")


def test_on_a_phone_the_flow_scrolls_inside_its_card(opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.wait_for_function("document.querySelector('.gb-flow-scroll').clientWidth < 390")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    scroller = opened.locator(".gb-flow-scroll")
    assert scroller.evaluate("box => box.scrollWidth > 2 * box.clientWidth")
    part(opened, "next").focus()
    assert scroller.evaluate("box => box.scrollLeft") > 500
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


def test_it_follows_a_text_while_it_is_written(opened: Page) -> None:
    opened.get_by_role("tab", name="Playground").click()
    opened.locator("#prompt textarea").fill("The dog")
    box = opened.locator("#length input[type=number]")
    box.fill("200")
    box.press("Tab")
    opened.locator("#pace input").click()
    opened.get_by_role("option", name="5", exact=True).click()
    opened.locator("#generate").click()
    expect(opened.locator("#status")).to_contain_text("tokens/s")
    opened.get_by_role("tab", name="Inside").click()
    expect(flow(opened)).to_contain_text(re.compile(r"of ([3-9]|\d{2,3})\)"))
    first = flow(opened).text_content() or ""
    expect(flow(opened)).not_to_have_text(first)
    opened.get_by_role("tab", name="Playground").click()
    opened.locator("#stop").click(force=True)  # on a slow machine the text may have ended by itself
    expect(opened.locator("#status")).to_contain_text(re.compile("stopped|length reached|ended the text"))


def test_without_a_text_it_says_what_to_do(opened: Page) -> None:
    opened.get_by_role("tab", name="Playground").click()
    opened.locator("#clear").click()
    expect(opened.locator(CHIPS)).to_have_count(0)
    opened.get_by_role("tab", name="Inside").click()
    expect(opened.locator("#flow .gb-flow-empty")).to_be_visible()
    expect(opened.locator("#flow .gb-flow-scroll")).to_be_hidden()
