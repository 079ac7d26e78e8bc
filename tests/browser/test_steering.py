"""Steering: the visitor chooses tokens, undoes and branches, each of which stops a running generation."""

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import (
    CHIPS,
    generate,
    open_playground,
    says,
    text,
)

pytestmark = pytest.mark.thorough

BARS = "#bars [role=option]"
LANES = "#tree .gb-branch"
CHOSEN = """() => {
  const chosen = document.querySelector("#status").textContent.match(/“(.*)” inserted by hand/);
  const count = document.querySelector("#prompt-count").innerText.match(/^\\d+/);
  return chosen && count ? [chosen[1], count[0]] : null;
}"""


@pytest.fixture
def opened(stay, site):
    """A shared page. Each test types its own text and restores the settings."""
    return stay(lambda page: open_playground(page, site))


def token_of(bar):
    """Return the token of a bar. Its label omits the space before a word."""
    return bar.locator("code").text_content()


def test_bars_put_tokens_in_by_mouse_and_keyboard_and_undo_redo_and_branches_lead_back(opened):
    generate(opened, "Once upon a time", length=4)
    first = text(opened)
    third = opened.locator(BARS).nth(2)
    token = token_of(third)
    third.click()
    expect(opened.locator("#status")).to_contain_text("inserted by hand")
    expect(opened.locator(CHIPS)).to_have_count(9)
    assert text(opened) in (first + token, f"{first} {token}")
    expect(opened.locator("#draw")).to_contain_text("you chose it")
    opened.locator("#undo").click()
    expect(opened.locator(CHIPS)).to_have_count(8)
    opened.locator("#redo:enabled").click()
    expect(opened.locator(CHIPS)).to_have_count(9)
    opened.locator("#undo").click()
    expect(opened.locator(CHIPS)).to_have_count(8)
    opened.locator(CHIPS).nth(3).click()
    expect(says(opened, "bars")).to_contain_text("After “time”")
    opened.locator(BARS).first.focus()
    opened.keyboard.press("ArrowDown")
    token = token_of(opened.locator(BARS).nth(1))
    opened.keyboard.press("Enter")
    expect(opened.locator(CHIPS)).to_have_count(5)
    assert text(opened) in ("Once upon a time" + token, f"Once upon a time {token}")
    shown = opened.locator(f"{LANES}[aria-selected=true]")
    expect(shown).to_have_count(1)
    opened.locator(LANES).first.focus()
    opened.keyboard.press("Enter")
    expect(opened.locator(CHIPS)).not_to_have_count(5)
    assert text(opened).startswith(first)


def test_each_bar_of_the_picture_lies_under_the_button_of_its_token_at_any_width(opened):
    generate(opened, "Once upon a time", length=2)
    opened.locator("#pipeline > summary").click()
    for width in (390, 1600, 1280):
        opened.set_viewport_size({"width": width, "height": 900})
        opened.wait_for_function(
            """() => {
              const labels = [...document.querySelectorAll("#pipeline-bars .ytick text")];
              const middle = (node) => (({ y, height }) => y + height / 2)(node.getBoundingClientRect());
              const buttons = [...document.querySelectorAll("#pipeline-bars .gb-rows button")];
              return buttons.length > 5 && buttons.every((button) => {
                const { top, bottom } = button.getBoundingClientRect();
                const inside = labels.filter((label) => middle(label) > top && middle(label) < bottom);
                const word = inside[0]?.textContent.replace(/^·(?=.)/, "");
                return inside.length === 1 && button.ariaLabel.includes(`“${word}”`);
              });
            }"""
        )
    opened.locator("#pipeline > summary").click()
