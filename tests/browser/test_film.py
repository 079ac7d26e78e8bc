"""The film in a browser: opened from the first screen, played, stepped, left; as a link, on a phone, without motion."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab

TITLE, SAYS, STAGE = ".gb-film h3", ".gb-film-says p", ".gb-film-stage"


@pytest.fixture
def opened(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "playground")
    return page


def test_it_plays_pauses_steps_by_keys_stands_in_the_address_and_is_left_at_its_part(opened):
    expect(opened.locator("body")).not_to_have_attribute("data-film-seen", "")
    opened.locator("#open-film").click()
    expect(opened.locator(TITLE)).to_have_text("The text")
    expect(opened.locator("body")).to_have_attribute("data-film-seen", "")
    expect(opened.locator(SAYS)).to_contain_text("“to”")
    expect(opened.locator(".gb-film-play")).to_have_attribute("aria-label", "Pause")  # it plays by itself
    expect(opened.locator(TITLE)).to_have_text("Tokens")
    stage = opened.locator(STAGE)
    opened.keyboard.press(" ")
    expect(opened.locator(".gb-film-play")).to_have_attribute("aria-label", "Play")
    opened.locator(".gb-film input").fill("0")
    expect(opened.locator(TITLE)).to_have_text("The text")
    for _ in range(8):
        stage.press("ArrowRight")
    expect(opened.locator(TITLE)).to_have_text("Softmax")
    expect(opened.locator(SAYS)).to_contain_text("add up to 100 %")
    expect(opened).to_have_url(re.compile("film=9"))
    stage.press("ArrowLeft")
    expect(opened.locator(TITLE)).to_have_text("Mask")
    opened.locator(".gb-film-leave").click()
    expect(opened.locator(".gb-film")).to_be_hidden()
    expect(opened.get_by_role("tab", name="One head")).to_have_attribute("aria-selected", "true")
    expect(opened).not_to_have_url(re.compile("film="))


def test_a_link_opens_a_beat_and_without_motion_the_film_is_a_slideshow(page, site):
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site}?film=10")
    expect(page.locator(TITLE)).to_have_text("Weighted sum of the values")
    expect(page.locator(".gb-film-play")).to_have_attribute("aria-label", "Play")
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    summed = page.locator(".gb-film svg text", has_text=re.compile("^output$"))
    expect(summed).to_be_in_viewport()
    page.locator("#language").get_by_text("中文").click()
    expect(page.locator(TITLE)).to_have_text("值的加权和")
    page.locator(STAGE).press("Escape")
    expect(page.locator(".gb-film")).to_be_hidden()
    page.locator("#follow").click()
    expect(page.locator(TITLE)).to_have_text("文本")
