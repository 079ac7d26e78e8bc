"""The film in a browser: opened from the first screen or a link, played, stepped, left, on a phone, without motion."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab

FILM = "#flow"
TITLE, SAYS, STAGE = "#flow .gb-film-says h3", "#flow .gb-film-says > p", "#flow .gb-flow-scroll"

CLOSE_AND_OPEN = """() => {
  const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true })
  document.querySelector("#flow .gb-flow-scroll").dispatchEvent(escape)
  document.querySelector("#follow").click()
}"""


@pytest.fixture
def opened(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "playground")
    return page


def control(page, name):
    return page.locator(FILM).get_by_role("button", name=name, exact=True)


def test_it_plays_pauses_steps_by_keys_writes_the_token_it_draws_and_is_left_at_its_part(opened):
    expect(opened.locator("body")).not_to_have_attribute("data-film-seen", "")
    opened.locator("#open-film").click()
    expect(opened.locator(TITLE)).to_have_text("The same last words")
    expect(opened.locator("body")).to_have_attribute("data-film-seen", "")
    width = control(opened, "Pause").bounding_box()["width"]  # it is playing
    opened.locator(STAGE).press(" ")
    assert control(opened, "Play").bounding_box()["width"] == width
    opened.locator(f"{FILM} .gb-film-bar input").fill("0")
    for _ in range(4):
        opened.locator(STAGE).press("ArrowRight")
    expect(opened.locator(TITLE)).to_have_text("A token asks")
    expect(opened).to_have_url(re.compile("film=ask"))
    opened.locator(STAGE).press("PageUp")
    expect(opened.locator(TITLE)).to_have_text("Your text goes in")
    tokens = opened.locator("#dock").get_by_role("option")
    n = tokens.count()
    for _ in range(9):
        opened.locator(STAGE).press("PageDown")
    expect(opened.locator(TITLE)).to_have_text("The token is written")
    expect(tokens).to_have_count(n + 1)
    for _ in range(6):
        opened.locator(STAGE).press("ArrowLeft")
    control(opened, "Stop here and look around").click()
    expect(opened.locator(TITLE)).to_be_hidden()
    expect(opened.locator("#flow [data-part=z]")).to_be_focused()
    expect(opened).not_to_have_url(re.compile("film="))


@pytest.mark.thorough
def test_a_link_opens_a_beat_paused_and_without_motion_the_film_is_a_slideshow(page, site):
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site}?film=mix")
    expect(page.locator(TITLE)).to_have_text("The answers are mixed")
    expect(control(page, "Play")).to_be_hidden()
    page.emulate_media(reduced_motion="no-preference")
    control(page, "Next").click()
    expect(page.locator(TITLE)).to_have_text("6 heads at once")
    expect(control(page, "Play")).to_be_visible()  # a link opens it paused
    control(page, "Back").click()
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    page.locator("#language").get_by_text("中文").click()
    expect(page.locator(TITLE)).to_have_text("把回答混合起来")
    page.locator(STAGE).press("Escape")
    expect(page.locator(TITLE)).to_be_hidden()
    page.locator("#follow").click()
    expect(page.locator(TITLE)).to_have_text("结尾相同")
    page.locator(STAGE).press("ArrowRight")
    expect(page.locator(TITLE)).not_to_have_text("结尾相同")
    page.evaluate(CLOSE_AND_OPEN)  # the server handles both at once, so that it never shows the page without the film
    expect(page.locator(TITLE)).to_have_text("结尾相同")
