"""The Shapes and Loss tabs in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground

CHIPS = ".gb-strip [role=option]"
PICKED = "the model picked above"
UNTIED = "GPT-2 small, untied, no QKV bias"


def open_tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


@pytest.fixture
def opened(stay, site):
    """One page for most tests: each begins with a text or a shape of its own."""
    return stay(lambda page: open_playground(page, site))


@pytest.fixture
def shapes(opened):
    open_tab(opened, "Shapes")
    expect(opened.locator("#shape-parts .main-svg").first).to_be_visible()
    expect(opened.locator(f"#shape-random {CHIPS}").first).to_be_visible()
    if opened.locator("#shape-preset input").input_value() != PICKED:
        pick(opened, PICKED, "4,394,880")
    return opened


SLIDERS = {PICKED: (192, 8, 4096), "GPT-2 XL": (1600, 48, 50257)}


def pick(page, name, total):
    """A preset, once it stands in every control: what is typed before then is lost."""
    page.locator("#shape-preset input").click()
    page.get_by_role("option", name=name, exact=True).click()
    for slider, value in zip(("n-embd", "n-layer", "vocab-size"), SLIDERS.get(name, (768, 12, 50257)), strict=True):
        expect(page.locator(f"#shape-{slider} input[type=number]")).to_have_value(str(value))
    expect(page.locator("#shape-headline")).to_contain_text(f"{total} parameters")


def type_number(page, name, value):
    box = page.locator(f"#shape-{name} input[type=number]")
    box.fill(str(value))
    box.press("Tab")


# What stands there before a run may be what stands there after it: its two words are counted.
COUNT = """() => {
  window.told = 0;
  const count = new MutationObserver((records) => (window.told += records.length));
  count.observe(document.querySelector("#shape-status p"), { childList: true });
}"""


def build(page, says):
    page.evaluate(COUNT)
    page.locator("#shape-build").click()
    page.wait_for_function("window.told >= 2")
    expect(page.locator("#shape-status")).to_contain_text(says)
    expect(page.locator("#shape-build")).to_be_enabled()


def test_a_preset_shows_its_numbers_and_moving_a_slider_makes_it_one_s_own(shapes):
    headline, preset = shapes.locator("#shape-headline"), shapes.locator("#shape-preset input")
    pick(shapes, UNTIED, "163,009,536")
    expect(shapes.locator("#shape-parts .gb-says")).to_contain_text("tied 124,412,160")
    expect(shapes.locator("#shape-sizes")).to_contain_text("621.83 MiB")
    shapes.locator("#shape-tie-weights input").click()
    expect(headline).to_contain_text("124,412,160 parameters")
    expect(preset).to_have_value("your own")
    shapes.locator("#shape-qkv-bias input").click()
    expect(preset).to_have_value("GPT-2 small")
    shapes.locator("#shape-n-layer input[type=range]").press("ArrowRight")
    expect(headline).to_contain_text("131,527,680 parameters")  # one block more: 7,087,872


def test_a_number_beyond_the_range_and_an_empty_box_are_what_the_slider_then_shows(shapes):
    type_number(shapes, "n-layer", 500)
    expect(shapes.locator("#shape-n-layer input[type=number]")).to_have_value("96")
    expect(shapes.locator("#shape-headline")).to_contain_text("43,542,912 parameters")
    type_number(shapes, "n-layer", "")
    expect(shapes.locator("#shape-n-layer input[type=number]")).to_have_value("1")
    expect(shapes.locator("#shape-headline")).to_contain_text("1,280,832 parameters")
    pick(shapes, PICKED, "4,394,880")


def test_a_wrong_combination_says_why_and_loses_nothing(shapes):
    pick(shapes, "GPT-2 small", "124,439,808")
    type_number(shapes, "n-head", 13)
    expect(shapes.locator("#shape-notice")).to_contain_text("Width 768 must divide by 13 heads")
    expect(shapes.locator("#shape-headline")).to_contain_text("124,439,808 parameters")
    expect(shapes.locator("#shape-build")).to_be_disabled()
    type_number(shapes, "n-head", 16)
    expect(shapes.locator("#shape-notice p")).to_be_hidden()
    expect(shapes.locator("#shape-build")).to_be_enabled()


def test_a_shape_over_the_limit_is_counted_and_not_built(shapes):
    pick(shapes, "GPT-2 XL", "1,557,611,200")
    expect(shapes.locator("#shape-room")).to_contain_text("would need 6.69 GiB")
    expect(shapes.locator("#shape-build")).to_be_disabled()


def test_build_runs_the_playground_s_prompt_through_random_and_trained_weights(shapes):
    open_tab(shapes, "Playground")
    shapes.locator("#prompt textarea").fill("The <b>dog</b> and")
    open_tab(shapes, "Shapes")
    pick(shapes, PICKED, "4,394,880")  # the tab looks first whether another model was picked
    type_number(shapes, "n-layer", 2)
    type_number(shapes, "vocab-size", 5000)
    expect(shapes.locator("#shape-headline")).to_contain_text("1,899,264 parameters")
    build(shapes, "1,899,264 random weights drawn")
    for side in ("random", "trained"):
        written = re.compile(r"^The <b>dog</b> and.{22,}", re.DOTALL)
        expect(shapes.locator(f"#shape-{side} .gb-strip")).to_have_text(written)
    expect(shapes.locator("#shape-stages .gb-says")).to_contain_text(re.compile(r"\[1, \d+\] .* \[1, \d+, 5000\]"))


def test_the_skeleton_has_the_same_shapes_and_says_that_it_computes_nothing(shapes):
    note = shapes.locator("#shape-stages .gb-note")
    build(shapes, "4,394,880 random weights drawn")
    expect(note).not_to_contain_text("computes nothing")
    whole = shapes.locator("#shape-stages .gb-says").text_content()
    shapes.locator("#shape-skeleton input").click()
    expect(shapes.locator("#shape-headline")).to_contain_text("835,584 parameters")
    shapes.locator("#shape-build").click()
    expect(note).to_contain_text("computes nothing")
    expect(shapes.locator("#shape-stages .gb-says")).to_have_text(whole)
    expect(shapes.locator("#shape-build")).to_be_enabled()
    shapes.locator("#shape-skeleton input").click()
    expect(shapes.locator("#shape-headline")).to_contain_text("4,394,880 parameters")


def test_the_language_changes_what_is_said_here_and_in_a_tab_that_was_never_opened(page, site):
    open_playground(page, site)
    open_tab(page, "Shapes")
    pick(page, "GPT-2 small", "124,439,808")
    type_number(page, "n-head", 13)
    expect(page.locator("#shape-notice")).to_contain_text("Width 768 must divide by 13 heads")
    page.get_by_text("中文", exact=True).click()
    expect(page.locator("#shape-notice")).to_contain_text("宽度 768 不能被头数 13 整除")
    open_tab(page, "损失")
    expect(page.locator("#loss-headline")).to_contain_text("每个词元")
    expect(page.locator("#loss-strip .gb-from")).to_have_text("意外程度 0")
    expect(page.locator("#loss-strip .gb-to")).to_contain_text("比特")
    shade = page.locator("#loss-strip [aria-selected=true]").evaluate("chip => chip.style.getPropertyValue('--s')")
    assert float(shade) == 1


def test_nothing_scrolls_sideways_on_a_phone_in_either_theme(opened):
    for tab, drawn in (("Shapes", "#shape-parts .main-svg"), ("Loss", f"#loss-strip {CHIPS}")):
        open_tab(opened, tab)
        expect(opened.locator(drawn).first).to_be_visible()
        opened.set_viewport_size({"width": 390, "height": 844})
        for _ in range(2):
            opened.wait_for_function("document.documentElement.scrollWidth <= 390")
            opened.locator("#theme").click()
        opened.set_viewport_size({"width": 1280, "height": 900})
