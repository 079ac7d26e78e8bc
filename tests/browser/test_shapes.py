"""The Shapes tab in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab, says, switch_theme

CHIPS = ".gb-strip [role=option]"


@pytest.fixture
def shapes(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "shapes")
    expect(page.locator("#shape-parts .main-svg").first).to_be_visible()
    return page


def type_number(page, name, value):
    """Type into the field beside the slider, which only has whole steps."""
    number = page.locator(f"#{name} input[type=number]")
    number.fill(str(value))
    number.blur()


@pytest.mark.thorough
def test_a_preset_stands_in_every_control_and_what_is_moved_is_counted_at_once(shapes):
    headline, preset = shapes.locator("#shape-headline"), shapes.locator("#shape-preset select")
    layers = shapes.locator("#shape-n-layer input[type=number]")
    expect(shapes.locator("#shape-status")).to_contain_text("Sample: 4,394,880 random weights")
    expect(shapes.locator(f"#shape-random {CHIPS}").nth(12)).to_be_visible()
    for typed, taken in ((500, "96"), ("", "96"), (1, "1")):
        type_number(shapes, "shape-n-layer", typed)
        expect(layers).to_have_value(taken)
    expect(headline).to_contain_text("1,280,832 parameters")
    type_number(shapes, "shape-block-size", 257)  # between two steps of the slider
    expect(headline).to_contain_text("1,281,024 parameters")
    expect(preset).to_have_value("your own")
    preset.select_option("GPT-2 small")
    for name, value in {"n-embd": "768", "n-layer": "12", "vocab-size": "50257"}.items():
        expect(shapes.locator(f"#shape-{name} input[type=number]")).to_have_value(value)
    expect(headline).to_contain_text("124,439,808 parameters")
    shapes.locator("#shape-n-layer input[type=range]").press("ArrowRight")
    expect(headline).to_contain_text("131,527,680 parameters")
    type_number(shapes, "shape-n-head", 13)
    expect(shapes.locator("#shape-start")).to_be_disabled()
    preset.select_option("the model selected above")
    expect(headline).to_contain_text("4,394,880 parameters")
    expect(shapes.locator("#shape-n-head input[type=number]")).to_have_value("6")


def test_build_runs_the_playground_s_prompt_through_both_models_and_nothing_scrolls_sideways_on_a_phone(shapes):
    open_tab(shapes, "playground")
    shapes.locator("#prompt textarea").fill("The <b>dog</b> and")
    open_tab(shapes, "shapes")
    type_number(shapes, "shape-vocab-size", 5000)
    shapes.locator("#shape-skeleton input").click()
    expect(shapes.locator("#shape-headline")).to_contain_text("1,009,152 parameters")
    shapes.locator("#shape-start").click()
    expect(shapes.locator("#shape-status")).to_contain_text("1,009,152 random weights drawn")
    expect(shapes.locator("#shape-start")).to_be_enabled()
    for side in ("random", "trained"):
        written = re.compile(r"^The <b>dog</b> and(.{22,}|.*∎\s*$)", re.DOTALL)  # a text may end early
        expect(shapes.locator(f"#shape-{side} .gb-strip")).to_have_text(written)
    expect(says(shapes, "shape-stages")).to_contain_text(re.compile(r"\[1, \d+\] .* \[1, \d+, 5000\]"))
    shapes.set_viewport_size({"width": 390, "height": 844})
    for _ in range(2):
        shapes.wait_for_function("document.documentElement.scrollWidth <= 390")
        switch_theme(shapes)
