"""The Loss tab in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground

CHIPS = "#loss-strip .gb-strip [role=option]"
SHADE = "chip => Number(chip.style.getPropertyValue('--s'))"


@pytest.fixture
def loss(stay, site):
    page = stay(lambda page: open_playground(page, site))
    page.get_by_role("tab", name="Loss", exact=True).click()
    expect(page.locator(CHIPS).first).to_be_visible()
    return page


def test_a_text_has_its_loss_and_its_tokens_are_shaded_and_selected_with_the_keyboard(loss):
    text = "Lily <img src=x onerror=alert(1)> ran \x00 home."
    loss.locator("#loss-text textarea").fill(text)
    loss.locator("#loss-text textarea").press("Control+Enter")
    expect(loss.locator("#loss-strip .gb-strip")).to_have_text(text)
    expect(loss.locator("#loss-measure")).to_be_enabled()
    expect(loss.locator("#loss-headline")).to_contain_text(re.compile(r"\d\.\d{4} nats per token"))
    selected = loss.locator("#loss-strip [aria-selected=true]")
    shades = loss.locator(CHIPS).evaluate_all(f"chips => chips.map({SHADE})")
    assert selected.evaluate(SHADE) == max(shades) == 1
    assert min(shades) == shades[0] == 0
    chip = loss.locator(CHIPS).first
    chip.click()
    expect(loss.locator("#loss-token")).to_contain_text("comes first")
    chip.press("ArrowRight")
    expect(loss.locator("#loss-strip .gb-tip")).to_contain_text("rank")
    expect(loss.locator("#loss-strip .gb-tip")).to_contain_text("bits")
    loss.keyboard.press("Enter")
    expect(loss.locator("#loss-token")).to_contain_text("of 4,096")


def test_an_example_fills_the_box_as_often_as_it_is_chosen_and_is_scored(loss):
    box = loss.locator("#loss-text textarea")
    for _ in range(2):
        box.fill("other words")
        loss.locator("#loss-example-repeat").click()
        expect(box).to_have_value(re.compile("^The cat sat"))
        expect(loss.locator("#loss-strip .gb-strip")).to_have_text(re.compile("^The cat sat"))
        expect(loss.locator("#loss-measure")).to_be_enabled()
    loss.get_by_text("中文", exact=True).click()
    expect(loss.locator("#loss-headline")).to_contain_text("每个词元")
    expect(loss.locator("#loss-strip .gb-from")).to_have_text("意外程度 0")
