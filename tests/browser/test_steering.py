"""Steering: the visitor chooses tokens, undoes and branches, each of which stops a running generation."""

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import (
    CHIPS,
    ONE_MORE,
    forget_status,
    generate,
    open_playground,
    says,
    set_run,
    text,
    written,
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


def test_any_text_and_any_token_of_the_vocabulary_can_be_put_there(opened):
    generate(opened, "The dog", length=2)
    box, hits = opened.locator("#box textarea"), opened.locator("#hits button")
    box.fill(" cat")
    expect(hits.nth(1)).to_contain_text("·cat")
    hits.nth(1).click()
    expect(opened.locator(CHIPS).nth(4)).to_have_text(" cat")
    expect(box).to_have_value("")
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
    expect(opened.locator(LANES)).to_have_count(1)  # the branch behind it still exists
    late = []  # the settings' own events

    def delay(route):
        if "go_on:act" in route.request.post_data:
            route.continue_()
        else:
            late.append(route)

    opened.route("**/queue/join*", delay)
    set_run(opened, 3)
    assert late
    forget_status(opened)
    opened.locator("#go_on").click()
    written(opened)
    opened.unroute("**/queue/join*")
    expect(opened.locator(CHIPS)).to_have_count(9)


def test_choosing_while_it_writes_stops_it_first_and_nothing_is_written_after(opened):
    opened.locator("#clear").click()  # otherwise branches of another test would reappear
    opened.locator("#prompt textarea").fill("Once upon a time")
    set_run(opened, 200, pace="8")
    forget_status(opened)
    opened.locator("#generate").click()
    expect(opened.locator("#status")).to_contain_text("tokens written")
    expect(opened.locator(CHIPS).nth(7)).to_be_visible()
    opened.locator(BARS).nth(1).press("Enter")  # by keyboard, since everything below the text moves while it grows
    # The stream's last tokens may still appear before they are removed.
    chosen, count = opened.wait_for_function(CHOSEN).json_value()
    expect(opened.locator("#generate")).to_be_enabled()
    expect(opened.locator("#stop")).to_be_disabled()
    expect(opened.locator(CHIPS)).to_have_count(int(count))
    expect(opened.locator(CHIPS).last).to_have_text(chosen)
    opened.locator("#step").click()
    expect(opened.locator("#status")).to_contain_text(ONE_MORE)
    # The step follows the chosen token, so the stream wrote nothing more.
    expect(opened.locator(CHIPS)).to_have_count(int(count) + 1)
    expect(opened.locator(CHIPS).nth(int(count) - 1)).to_have_text(chosen)


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
