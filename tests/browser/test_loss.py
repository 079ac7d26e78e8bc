"""The Loss tab in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab

CHIPS = "#loss-strip .gb-strip [role=option]"
SHADE = "chip => Number(chip.style.getPropertyValue('--s'))"


@pytest.mark.thorough
def test_a_text_has_its_loss_its_tokens_are_shaded_and_selected_and_an_example_is_scored_as_often_as_it_is_chosen(
    stay, site
):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "loss")
    expect(page.locator(CHIPS).first).to_be_visible()
    box = page.locator("#loss-text textarea")
    text = "Lily <img src=x onerror=alert(1)> ran \x00 home."
    box.fill(text)
    box.press("Control+Enter")
    expect(page.locator("#loss-strip .gb-strip")).to_have_text(text.replace("\x00", "[NUL]"))
    expect(page.locator("#loss-start")).to_be_enabled()
    expect(page.locator("#loss-headline")).to_contain_text(re.compile(r"\d\.\d{4} nats per token"))
    shades = page.locator(CHIPS).evaluate_all(f"chips => chips.map({SHADE})")
    assert page.locator("#loss-strip [aria-selected=true]").evaluate(SHADE) == max(shades) == 1
    assert min(shades) == shades[0] == 0
    chip = page.locator(CHIPS).first
    chip.click()
    expect(page.locator("#loss-token")).to_contain_text("comes first")
    chip.press("ArrowRight")
    expect(page.locator("#loss-strip .gb-tip")).to_contain_text("bits")
    page.keyboard.press("Enter")
    expect(page.locator("#loss-token")).to_contain_text("of 4,096")
    for _ in range(2):
        box.fill("other words")
        page.locator("#loss-example-repeat").click()
        expect(box).to_have_value(re.compile("^The cat sat"))
        expect(page.locator("#loss-strip .gb-strip")).to_have_text(re.compile("^The cat sat"))
        expect(page.locator("#loss-start")).to_be_enabled()
