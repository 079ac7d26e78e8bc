"""The film in a browser: a stage over the window, played, stepped and left, on a phone, without motion."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab

pytestmark = pytest.mark.thorough

FILM, TITLE = "dialog.gb-film", "dialog.gb-film header h2"


@pytest.fixture
def opened(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "playground")
    return page


def control(page, name):
    return page.locator(FILM).get_by_role("button", name=name, exact=True)


def test_it_fills_the_window_is_stepped_by_keys_and_gives_back_the_page_as_it_was(opened):
    text = opened.locator("#prompt textarea").input_value()
    expect(opened.locator("body")).not_to_have_attribute("data-film-seen", "")
    opened.locator("#open-film").focus()
    opened.keyboard.press("Enter")
    expect(opened.locator(TITLE)).to_have_text("What comes next?")
    expect(opened.locator("body")).to_have_attribute("data-film-seen", "")
    box = opened.locator(FILM).bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1280, 900)
    width = control(opened, "Pause").bounding_box()["width"]  # it is playing
    opened.keyboard.press(" ")
    assert control(opened, "Play").bounding_box()["width"] == width
    opened.keyboard.press("Home")
    for _ in range(6):
        opened.keyboard.press("ArrowRight")
    expect(opened.locator(TITLE)).to_have_text("A token asks")
    expect(opened).to_have_url(re.compile("film=ask"))
    opened.keyboard.press("PageUp")
    expect(opened.locator(TITLE)).to_have_text("From tokens to numbers")
    opened.keyboard.press("Escape")
    expect(opened.locator(FILM)).to_be_hidden()
    expect(opened.locator("#open-film")).to_be_focused()
    expect(opened).not_to_have_url(re.compile("film="))
    opened.locator("#open-film").click()
    expect(opened).to_have_url(re.compile("film=yours"))
    opened.go_back()
    expect(opened.locator(FILM)).to_be_hidden()
    assert opened.locator("#prompt textarea").input_value() == text
    expect(opened.locator("#prompt .gb-hidden")).to_have_count(0)
    opened.locator("#open-film").click()
    expect(opened.locator(TITLE)).to_have_text("What comes next?")
    opened.keyboard.press("End")
    control(opened, "Hide a word in your text").click()
    expect(opened.locator(FILM)).to_be_hidden()
    expect(opened.locator("#prompt .gb-hidden")).to_have_text([" rain", "ing"])


def test_a_link_opens_a_beat_paused_and_without_motion_the_film_is_a_slideshow(page, site):
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site}?film=mix")
    expect(page.locator(TITLE)).to_have_text("The answers are mixed")
    expect(control(page, "Play")).to_be_hidden()
    page.emulate_media(reduced_motion="no-preference")
    control(page, "Next").click()
    expect(page.locator(TITLE)).to_have_text("Many heads at once")
    control(page, "Back").click()
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    control(page, "Leave the film").click()
    expect(page.locator(FILM)).to_be_hidden()
    page.locator("#language").get_by_text("中文").click()
    page.locator("#open-film").click()
    expect(page.locator(TITLE)).to_have_text("下一个词是什么？")
