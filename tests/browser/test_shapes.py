"""The Shapes tab in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, pick, says

CHIPS = ".gb-strip [role=option]"


@pytest.fixture
def shapes(stay, site):
    page = stay(lambda page: open_playground(page, site))
    page.get_by_role("tab", name="Tools", exact=True).click()
    expect(page.locator("#shape-parts .main-svg").first).to_be_visible()
    return page


def type_number(page, name, value):
    box = page.locator(f"#shape-{name} input[type=number]")
    box.fill(str(value))
    box.press("Tab")
    return box


def test_a_preset_stands_in_every_control_and_what_is_moved_is_counted_at_once(shapes):
    headline, preset = shapes.locator("#shape-headline"), shapes.locator("#shape-preset input")
    expect(shapes.locator("#shape-status")).to_contain_text("Sample: 4,394,880 random weights")
    expect(shapes.locator(f"#shape-random {CHIPS}").nth(20)).to_be_visible()
    expect(type_number(shapes, "n-layer", 500)).to_have_value("96")
    expect(headline).to_contain_text("43,542,912 parameters")
    expect(type_number(shapes, "n-layer", "")).to_have_value("1")
    expect(headline).to_contain_text("1,280,832 parameters")
    expect(preset).to_have_value("your own")
    pick(shapes, "shape-preset", "GPT-2 small")
    for name, value in {"n-embd": "768", "n-layer": "12", "vocab-size": "50257"}.items():
        expect(shapes.locator(f"#shape-{name} input[type=number]")).to_have_value(value)
    expect(headline).to_contain_text("124,439,808 parameters")
    shapes.locator("#shape-n-layer input[type=range]").press("ArrowRight")
    expect(headline).to_contain_text("131,527,680 parameters")
    type_number(shapes, "n-head", 13)
    expect(shapes.locator("#shape-notice")).to_contain_text("Width 768 is not divisible by 13 heads")
    expect(headline).to_contain_text("131,527,680 parameters")
    expect(shapes.locator("#shape-build")).to_be_disabled()
    type_number(shapes, "n-head", 16)
    expect(shapes.locator("#shape-notice p")).to_be_hidden()
    expect(shapes.locator("#shape-build")).to_be_enabled()
    pick(shapes, "shape-preset", "the model selected above")
    expect(headline).to_contain_text("4,394,880 parameters")
    expect(shapes.locator("#shape-n-head input[type=number]")).to_have_value("6")


def test_build_runs_the_playground_s_prompt_through_both_models_and_nothing_scrolls_sideways_on_a_phone(shapes):
    shapes.get_by_role("tab", name="Playground", exact=True).click()
    shapes.locator("#prompt textarea").fill("The <b>dog</b> and")
    shapes.get_by_role("tab", name="Tools", exact=True).click()
    type_number(shapes, "vocab-size", 5000)
    shapes.locator("#shape-skeleton input").click()
    expect(shapes.locator("#shape-headline")).to_contain_text("1,009,152 parameters")
    shapes.locator("#shape-build").click()
    expect(shapes.locator("#shape-status")).to_contain_text("1,009,152 random weights drawn")
    expect(shapes.locator("#shape-build")).to_be_enabled()
    for side in ("random", "trained"):
        written = re.compile(r"^The <b>dog</b> and.{22,}", re.DOTALL)
        expect(shapes.locator(f"#shape-{side} .gb-strip")).to_have_text(written)
    expect(says(shapes, "shape-stages")).to_contain_text(re.compile(r"\[1, \d+\] .* \[1, \d+, 5000\]"))
    shapes.get_by_text("中文", exact=True).click()
    expect(shapes.locator("#shape-stages .gb-note")).to_contain_text("骨架")
    shapes.set_viewport_size({"width": 390, "height": 844})
    for _ in range(2):
        shapes.wait_for_function("document.documentElement.scrollWidth <= 390")
        shapes.locator("#theme").click()
