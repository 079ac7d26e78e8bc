"""Concepts in a browser: a chip and its slider, and features that tint the text while the pointer is on them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab

BARS = "#bars .gb-changed"
TINTED = "#concepts-features [role=option][style*='--tint']"


def test_a_chip_turns_a_concept_up_and_the_slider_moves_the_bars(page, site):
    open_playground(page, site)
    concepts = page.locator("#concepts")
    dog = concepts.get_by_role("button", name="dog", exact=True)
    expect(page.locator(BARS)).to_have_count(0)
    dog.click()
    expect(dog).to_have_attribute("aria-pressed", "true")
    expect(page.locator(BARS).first).to_be_visible()
    expect(concepts.get_by_role("term")).to_have_text(["Without", "With dog"])
    slider = concepts.get_by_role("slider", name="dog")
    slider.focus()
    slider.press("End")
    expect(concepts.locator("output")).to_have_text("+4")
    expect(page).to_have_url(re.compile(r"edits=c\d\.\d+(%3D|=)4"))
    concepts.get_by_role("button", name="reset").click()
    expect(dog).to_have_attribute("aria-pressed", "false")
    expect(page.locator(BARS)).to_have_count(0)
    expect(slider).to_have_count(0)
    expect(concepts.get_by_role("term")).to_have_count(0)


@pytest.mark.thorough
def test_a_feature_tints_the_text_while_it_is_pointed_at_and_shows_its_evidence_by_a_click(page, site):
    open_playground(page, site)
    open_tab(page, "concepts")
    page.get_by_label("Find a concept").fill("rain")
    features = page.locator("#concepts-features").get_by_role("listbox", name="Concepts at this word")
    rain = features.get_by_role("option", name="rain (layer 2)")
    rain.hover()
    expect(page.locator(TINTED).filter(has_text="rain").first).to_be_visible()
    rain.click()
    expect(page.locator("#concepts-title")).to_have_text("Concept: rain")
    expect(page.locator("#concepts-evidence mark")).to_have_count(12)
