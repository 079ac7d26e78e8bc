"""The Playground in a browser: write, select, search, change the settings."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import (
    CHIPS,
    ONE_MORE,
    forget_status,
    generate,
    open_playground,
    pick,
    says,
    set_slider,
    text,
    written,
)


@pytest.fixture
def opened(stay, site):
    """One page for most tests: each begins with a text of its own and leaves the settings as they were."""
    return stay(lambda page: open_playground(page, site))


def test_the_first_screen_shows_a_finished_example_and_language_and_theme_are_remembered(page, site):
    open_playground(page, site)
    assert page.locator(CHIPS).count() > 20
    expect(says(page, "bars")).to_contain_text("Entropy")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    assert page.evaluate(ground) != light
    page.locator("#language label", has_text="中文").click()
    expect(page.locator("#generate")).to_have_text("生成")
    expect(page.get_by_role("tab", name="试验台")).to_be_visible()
    expect(says(page, "bars")).to_contain_text("熵")
    page.reload()
    expect(page.locator("#generate")).to_have_text("生成")
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.goto(f"{site}?lang=en")  # a link says otherwise
    expect(page.locator("#generate")).to_have_text("Generate")


def test_what_is_pasted_before_the_page_has_its_session_counts_and_two_visitors_have_two_texts(opened, page, site):
    generate(opened, "The dog", length=2)
    page.goto(site)
    page.locator("#prompt textarea").fill("The dog ran. " * 100)
    expect(page.locator("#prompt-count")).to_contain_text("more than the 256")
    page.locator("#generate").click()
    expect(page.locator("#notice")).to_contain_text("more than the 256")
    set_slider(page, "length", 2)
    page.locator("#use-tail").click()
    written(page)
    assert page.locator(CHIPS).count() <= 130
    expect(page.locator("#use-tail")).to_be_hidden()
    opened.locator(CHIPS).nth(0).click()
    expect(says(opened, "bars")).to_contain_text("After “The”")
    expect(opened.locator(CHIPS)).to_have_count(4)


def test_a_text_streams_to_the_same_end_for_the_same_seed_and_can_be_stopped_and_stepped_on(opened):
    generate(opened, "Once upon a time", length=12, seed="3")
    first = text(opened)
    expect(opened.locator(CHIPS)).to_have_count(4 + 12)
    forget_status(opened)
    opened.locator("#prompt textarea").press("Control+Enter")
    written(opened)
    assert text(opened) == first
    pick(opened, "pace", "5")
    set_slider(opened, "length", 200)
    forget_status(opened)
    opened.locator("#generate").click()
    expect(opened.locator("#status")).to_contain_text("tokens/s")
    opened.locator("#stop").click()
    expect(opened.locator("#status")).to_contain_text("stopped")
    expect(opened.locator("#generate")).to_be_enabled()
    count = opened.locator(CHIPS).count()
    opened.locator("#step").click()
    expect(opened.locator("#status")).to_contain_text(ONE_MORE)
    expect(opened.locator(CHIPS)).to_have_count(count + 1)
    pick(opened, "pace", "50")
    opened.locator("#seed textarea").fill("abc")
    opened.locator("#generate").click()
    expect(opened.get_by_text("The seed must be a whole number")).to_be_visible()
    expect(opened.locator("#generate")).to_be_enabled()


def test_a_selected_token_moves_every_picture_and_so_do_layer_head_and_settings(opened):
    generate(opened, "Once upon a time", length=6)
    opened.locator(CHIPS).nth(1).click()
    expect(says(opened, "bars")).to_contain_text("After “·upon”")
    expect(says(opened, "bars")).to_contain_text("Chosen: “·a”")
    expect(says(opened, "heatmap")).to_contain_text("Layer 3, head 2: “·upon” looked most at")
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    expect(says(opened, "bars")).to_contain_text("After “·a”")
    pick(opened, "layer", "2")
    pick(opened, "head", "average")
    expect(says(opened, "heatmap")).to_contain_text("Layer 2, average of heads")
    pick(opened, "layer", "3")
    pick(opened, "head", "2")
    set_slider(opened, "top-k", 3)
    expect(says(opened, "bars")).to_contain_text("4,093 of 4,096 tokens removed")
    set_slider(opened, "top-k", 0)
    expect(says(opened, "bars")).to_contain_text("0 of 4,096 tokens removed")


def test_presets_set_the_sliders_and_the_pipeline_follows_them_and_a_token_that_is_searched(opened):
    generate(opened, "Once upon a time", length=2)
    opened.locator("#pipeline > button").first.click()
    lines = says(opened, "pipeline-lines")
    opened.locator("#preset label", has_text="greedy").click()
    expect(opened.locator("#temperature input[type=number]")).to_have_value("0")
    expect(lines).to_contain_text("1 of 4,096 tokens can be drawn")
    set_slider(opened, "temperature", 1.5)
    expect(opened.locator("#preset label", has_text="wild").locator("input")).to_be_checked()
    opened.locator("#preset label", has_text="balanced").click()
    box = opened.locator("#pipeline-follow input")
    box.fill("dragon")
    box.press("Enter")
    expect(lines).to_contain_text(re.compile("“·?dragon”"))
    expect(opened.locator("#pipeline-token tr")).to_have_count(7)
    opened.locator("#pipeline-unit label", has_text="logit").click()
    expect(opened.locator("#pipeline-lines .ytitle")).to_have_text("logit")
    opened.locator("#pipeline > button").first.click()


def test_another_model_writes_at_once_and_an_example_fills_the_prompt_and_writes(opened):
    generate(opened, "The dog", length=5)
    trained = opened.locator("#model input").input_value()
    for model in (re.compile("Untrained"), trained):
        forget_status(opened)
        pick(opened, "model", model)
        written(opened)
    expect(opened.locator("#notice")).not_to_contain_text("never been trained")
    forget_status(opened)
    opened.locator("#example-repeat").click()
    expect(opened.locator("#prompt textarea")).to_have_value(re.compile("The cat sat"))
    written(opened)
    expect(opened.locator(CHIPS).first).to_contain_text("The")
    opened.locator("#clear").click()
    expect(opened.locator(CHIPS)).to_have_count(0)
    expect(opened.locator("#prompt textarea")).to_have_value("")


def test_any_text_is_shown_as_text(opened):
    prompt = "<img src=x onerror=alert(1)><script>alert(2)</script> ${alert(1)} {{x}} <b>b</b> a\x00b \u202e 你好 é 👩"
    generate(opened, prompt, length=2)
    assert "<script>alert(2)</script> ${alert(1)} {{x}} <b>b</b>" in text(opened)
    assert opened.locator(f"#strip img, #strip script, {CHIPS} b, #bars img, #heatmap img").count() == 0
