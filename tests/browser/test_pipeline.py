"""The pipeline card and the presets, in the page."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground

CHIPS = "#strip .gb-strip [role=option]"


@pytest.fixture
def opened(stay, site):
    def begin(page):
        open_playground(page, site)
        page.locator("#pipeline > button").first.click()
        expect(page.locator("#pipeline-lines .main-svg").first).to_be_visible()

    return stay(begin)


def cell(page, row, column):
    return page.locator(f"#pipeline-stages tr:nth-child({row + 2}) > :nth-child({column + 1})")


def test_sliders_move_the_stages_without_running_the_model(opened, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the model ran")

    monkeypatch.setattr("gpt.model.GPT.hidden_states", refuse)
    opened.locator("#top-k input[type=number]").fill("7")
    opened.locator("#top-k input[type=number]").press("Tab")
    expect(cell(opened, 2, 0)).to_have_text("Top-k 7")
    expect(cell(opened, 2, 1)).to_contain_text("4,089")
    expect(opened.locator("#pipeline-lines .gb-says")).to_contain_text("7 of 4,096 tokens can be drawn")
    expect(opened.locator("#preset input:checked")).to_have_count(0)


def test_presets_set_the_sliders_and_know_themselves_again(opened):
    opened.locator("#preset label", has_text="greedy").click()
    expect(opened.locator("#temperature input[type=number]")).to_have_value("0")
    expect(opened.locator("#pipeline-lines .gb-says")).to_contain_text("1 of 4,096 tokens can be drawn")
    opened.locator("#preset label", has_text="careful").click()
    expect(opened.locator("#top-p input[type=number]")).to_have_value("0.9")
    opened.locator("#top-p input[type=number]").fill("1")
    opened.locator("#top-p input[type=number]").press("Tab")
    expect(opened.locator("#preset input:checked")).to_have_count(0)
    opened.locator("#temperature input[type=number]").fill("1.5")
    opened.locator("#temperature input[type=number]").press("Tab")
    expect(opened.locator("#preset label", has_text="wild").locator("input")).to_be_checked()


def test_the_card_follows_the_selection_and_any_token_that_is_searched(opened):
    opened.locator(CHIPS).nth(4).click()
    expect(opened.locator("#pipeline-lead")).to_contain_text("“,”")
    box = opened.locator("#pipeline-follow input")
    box.fill("dragon")
    box.press("Enter")
    expect(opened.locator("#pipeline-lines .gb-says")).to_contain_text(re.compile("“·?dragon”"))
    expect(opened.locator("#pipeline-token tr")).to_have_count(7)
    opened.locator("#pipeline-unit label", has_text="logit").click()
    expect(opened.locator("#pipeline-lines .ytitle")).to_have_text("logit")
