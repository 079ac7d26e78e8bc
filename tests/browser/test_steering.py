"""A person takes the wheel: chooses, undoes, branches, and stops what is being written by doing so."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import (
    CHIPS,
    ONE_MORE,
    forget_status,
    generate,
    open_playground,
    pick,
    says,
    set_slider,
    text,
    written,
)

BARS = "#bars .gb-rows button"
LANES = "#tree .gb-branch"
CHOSEN = """() =>
    document.querySelector("#status").textContent.match(/“(.*)” put in by hand · context (\\d+)/)?.slice(1)
"""


@pytest.fixture
def opened(stay, site):
    """One page for all: each test begins with a text of its own and leaves the settings as they were."""
    return stay(lambda page: open_playground(page, site))


def token_of(bar):
    """What a bar puts there, from its name: “·the”: raw ..."""
    return re.match("“(.*?)”", bar.get_attribute("aria-label")).group(1).replace("·", " ")


def test_a_click_on_a_bar_appends_it_even_where_sampling_had_cut_it_and_undo_and_redo_follow(opened):
    generate(opened, "Once upon a time", length=2)
    set_slider(opened, "top-k", 1)
    expect(says(opened, "bars")).to_contain_text("4,095 of 4,096 tokens removed")
    third, before = opened.locator(BARS).nth(2), text(opened)
    token = token_of(third)
    third.click()
    expect(opened.locator("#status")).to_contain_text("put in by hand")
    expect(opened.locator(CHIPS)).to_have_count(7)
    assert text(opened) == before + token
    expect(opened.locator("#draw")).to_contain_text("you chose it")
    expect(opened.locator("#redo")).to_be_disabled()
    opened.locator("#undo").click()
    expect(opened.locator(CHIPS)).to_have_count(6)
    expect(opened.locator("#redo")).to_be_enabled()
    opened.locator("#redo").click()
    expect(opened.locator(CHIPS)).to_have_count(7)
    assert text(opened) == before + token
    set_slider(opened, "top-k", 0)
    expect(says(opened, "bars")).to_contain_text("0 of 4,096 tokens removed")


def test_enter_on_a_bar_at_an_earlier_token_starts_a_branch_and_the_picture_leads_back(opened):
    generate(opened, "Once upon a time", length=4)
    first = text(opened)
    expect(opened.locator("#tree")).to_be_hidden()
    opened.locator(CHIPS).nth(3).click()
    expect(says(opened, "bars")).to_contain_text("After “·time”")
    opened.locator(BARS).first.focus()
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowDown")
    token = token_of(opened.locator(BARS).nth(2))
    opened.keyboard.press("Enter")
    expect(opened.locator(CHIPS)).to_have_count(5)
    assert text(opened) == "Once upon a time" + token
    expect(opened.locator(LANES)).to_have_count(2)
    expect(opened.locator(LANES).nth(1)).to_have_attribute("aria-selected", "true")
    opened.locator(LANES).nth(1).focus()
    opened.keyboard.press("ArrowUp")
    opened.keyboard.press("Enter")
    expect(opened.locator(CHIPS)).to_have_count(8)
    assert text(opened) == first
    expect(opened.locator(LANES).nth(0)).to_have_attribute("aria-selected", "true")


def test_any_text_and_any_token_of_the_vocabulary_can_be_put_there(opened):
    generate(opened, "The dog", length=2)
    box, hits = opened.locator("#box textarea, #box input"), opened.locator("#hits button")
    box.fill(" cat")
    expect(hits.nth(1)).to_contain_text("·cat")
    rank, p = hits.nth(1).locator("span").nth(1), hits.nth(1).locator("span").nth(2)
    assert re.fullmatch(r"[\d,]+", rank.text_content())
    assert p.text_content().endswith("%")
    hits.nth(1).click()
    expect(opened.locator(CHIPS).nth(4)).to_have_text(" cat")
    expect(box).to_have_value("")
    box.fill("123")
    expect(hits.first).to_contain_text("as text")
    box.fill(" ran away")
    expect(hits.first).to_contain_text("ran·away")
    box.press("Enter")
    expect(opened.locator(CHIPS).last).to_have_text(" away")
    expect(opened.locator("#status")).to_contain_text("typed")
    assert text(opened).endswith(" cat ran away")


def test_back_to_a_token_and_on_from_there(opened):
    generate(opened, "Once upon a time", length=8)
    expect(opened.locator("#back")).to_be_disabled()
    opened.locator(CHIPS).nth(5).click()
    opened.locator("#back").click()
    expect(opened.locator(CHIPS)).to_have_count(6)
    expect(opened.locator("#back")).to_be_disabled()
    expect(opened.locator(LANES)).to_have_count(1)  # what stood behind it is still there
    set_slider(opened, "length", 3)
    opened.locator("#seed input, #seed textarea").first.fill("77")
    opened.locator("#go_on").click()
    expect(opened.locator("#status")).to_contain_text("seed 77")
    written(opened)
    expect(opened.locator("#status")).to_contain_text("length reached")
    expect(opened.locator(CHIPS)).to_have_count(9)


def test_the_number_of_a_draw_is_the_same_again_and_falls_on_its_token(opened):
    shown = []
    for _ in range(2):
        generate(opened, "Once upon a time", length=5, seed="21")
        opened.locator(CHIPS).nth(6).click()
        expect(opened.locator("#draw")).to_contain_text("at position 6")
        shown.append(opened.locator("#draw").text_content())
    assert shown[0] == shown[1]
    assert "falls here" in shown[0]
    mark = opened.locator("#draw .gb-fell").evaluate("node => parseFloat(getComputedStyle(node, '::after').left)")
    left, width = opened.locator("#draw .gb-drawn").evaluate("node => [node.offsetLeft, node.offsetWidth]")
    assert left - 5 <= mark <= left + width + 5


def test_choosing_while_it_writes_stops_it_first_and_nothing_is_written_after(opened):
    opened.locator("#prompt textarea").fill("Once upon a time")
    pick(opened, "pace", "20")
    set_slider(opened, "length", 200)
    forget_status(opened)
    opened.locator("#generate").click()
    expect(opened.locator("#status")).to_contain_text("tokens/s")
    expect(opened.locator(CHIPS).nth(7)).to_be_visible()
    opened.locator(BARS).nth(1).press("Enter")  # no pointer: what is below the text moves while it grows
    chosen, count = opened.wait_for_function(CHOSEN).json_value()  # the stream's last words may still follow, and go
    expect(opened.locator("#generate")).to_be_enabled()
    expect(opened.locator("#stop")).to_be_disabled()
    expect(opened.locator(CHIPS)).to_have_count(int(count))
    expect(opened.locator(CHIPS).last).to_have_text(chosen.replace("·", " "))
    opened.locator("#step").click()
    expect(opened.locator("#status")).to_contain_text(ONE_MORE)
    expect(opened.locator(CHIPS)).to_have_count(int(count) + 1)  # the step follows the choice: the stream wrote no more
    expect(opened.locator(CHIPS).nth(int(count) - 1)).to_have_text(chosen.replace("·", " "))
    opened.locator("#undo").click()
    expect(opened.locator("#status")).to_contain_text("Undone")
    expect(opened.locator(CHIPS)).to_have_count(int(count))
    pick(opened, "pace", "50")


def test_the_tint_and_the_lines_say_how_sure_the_model_was(opened):
    generate(opened, "Once upon a time", length=6)
    tints = []
    for name in ("probability", "rank", "entropy", "surprisal"):
        opened.locator("#shading label", has_text=name).click()
        expect(opened.locator("#strip .gb-scale")).to_contain_text(name)
        tints.append(
            opened.locator(CHIPS).evaluate_all("chips => chips.map(chip => chip.style.getPropertyValue('--p'))")
        )
    assert len(set(map(json.dumps, tints))) == 4
    curve = opened.locator("#strip .gb-curve")
    expect(curve).to_contain_text("perplexity")
    opened.locator(CHIPS).nth(5).hover()
    expect(curve.locator("figcaption")).to_contain_text("bits")
    box = curve.locator("svg").bounding_box()
    curve.locator("svg").click(position={"x": box["width"] - 4, "y": 40})
    expect(opened.locator(CHIPS).last).to_have_attribute("aria-selected", "true")
    expect(opened.locator("#back")).to_be_disabled()


def test_the_why_tab_is_about_the_branch_that_is_shown(opened):
    generate(opened, "The cat sat", length=4)
    opened.locator(CHIPS).nth(2).click()
    opened.locator("#box textarea, #box input").fill(" banana")
    opened.locator("#box textarea, #box input").press("Enter")
    expect(opened.locator("#status")).to_contain_text("typed")
    opened.get_by_role("tab", name="Why?").click()
    expect(opened.locator("#why-strip [role=option]").last).to_contain_text("ana")
    opened.get_by_role("tab", name="Playground").click()


@pytest.mark.parametrize("width", [390, 1280, 1600])
def test_a_click_on_a_bar_of_a_fresh_page_puts_in_the_token_of_that_bar(page, site, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_playground(page, site)
    count = page.locator(CHIPS).count()
    expect(page.locator("#bars .ytick text, #bars .y2tick text").first).to_be_visible()
    labels = page.locator("#bars .ytick text")
    middle = {}
    for label in labels.all():
        box = label.bounding_box()
        middle[label.text_content()] = box["y"] + box["height"] / 2
    for button in page.locator(BARS).all():
        box, name = button.bounding_box(), button.get_attribute("aria-label")
        inside = [text for text, y in middle.items() if box["y"] <= y <= box["y"] + box["height"]]
        assert len(inside) == 1, name
        assert inside[0].strip("·") in name
    third = page.locator(BARS).nth(2)
    token = third.get_attribute("aria-label")
    third.click()
    expect(page.locator(CHIPS)).to_have_count(count + 1)
    assert page.locator(CHIPS).last.text_content().strip() in token
