"""Steering: the visitor chooses tokens, undoes and branches, each of which stops a running generation."""

import pytest

from tests.browser.playground_page import (
    generate,
    open_playground,
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
