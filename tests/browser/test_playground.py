import json
import re
import time
from contextlib import contextmanager
from itertools import count

import pytest
from playwright.sync_api import expect

from components.state.document_lock import DocumentLock
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
    expect(says(page, "heatmap")).to_contain_text("looked most at")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    assert page.evaluate(ground) != light
    page.locator("#language label", has_text="中文").click()
    expect(page.locator("#generate")).to_have_text("生成")
    expect(page.get_by_role("tab", name="试验台")).to_be_visible()
    expect(says(page, "bars")).to_contain_text("熵")
    expect(says(page, "heatmap")).to_contain_text("主要看向")
    page.goto(site)
    expect(page.locator("#generate")).to_have_text("生成")
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.goto(f"{site}?lang=en")  # a link says otherwise
    expect(page.locator("#generate")).to_have_text("Generate")


def test_a_phone_scrolls_only_downwards_and_shows_the_text_before_the_settings(page, site):
    page.set_viewport_size({"width": 390, "height": 844})
    open_playground(page, site)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tops = [page.locator(s).bounding_box()["y"] for s in ("#prompt", "#strip", ".gb-settings", "#bars", "#heatmap")]
    assert tops == sorted(tops)
    expect(page.locator("#temperature")).to_be_hidden()  # folded away
    page.locator("#generate").click()
    expect(page.locator("#strip")).to_be_in_viewport()


def test_generate_streams_the_text_with_bars_and_heatmap_to_the_same_end_for_the_same_seed(opened):
    generate(opened, "Once upon a time", length=12, seed="3")
    first = text(opened)
    assert first.startswith("Once upon a time")
    expect(opened.locator(CHIPS)).to_have_count(4 + 12)
    expect(opened.locator("#status")).to_contain_text("seed 3")
    generate(opened, "Once upon a time", length=12, seed="4")
    assert text(opened) != first
    generate(opened, "Once upon a time", length=12, seed="3")
    assert text(opened) == first


def test_control_enter_generates(opened):
    set_slider(opened, "length", 3)
    opened.locator("#prompt textarea").fill("The dog")
    forget_status(opened)
    opened.locator("#prompt textarea").press("Control+Enter")
    written(opened)
    expect(opened.locator(CHIPS)).to_have_count(2 + 3)


def test_step_adds_one_token_and_shows_what_could_follow_it(opened):
    generate(opened, "The dog", length=3)
    expect(opened.locator(CHIPS)).to_have_count(5)
    opened.locator("#step").click()
    expect(opened.locator(CHIPS)).to_have_count(6)
    expect(opened.locator(CHIPS).nth(5)).to_have_attribute("aria-selected", "true")
    opened.locator("#step").click()
    expect(opened.locator(CHIPS)).to_have_count(7)


def test_step_after_another_prompt_starts_anew(opened):
    generate(opened, "The dog", length=3)
    opened.locator("#prompt textarea").fill("Lily and Tom")
    opened.locator("#step").click()
    expect(opened.locator(CHIPS).first).to_contain_text("Lily")
    expect(opened.locator(CHIPS)).to_have_count(4)


def test_stop_ends_the_text_and_gives_the_buttons_back(opened):
    opened.locator("#prompt textarea").fill("Once upon a time")
    pick(opened, "pace", "5")
    set_slider(opened, "length", 200)
    forget_status(opened)
    opened.locator("#generate").click()
    expect(opened.locator("#stop")).to_be_enabled()
    expect(opened.locator("#status")).to_contain_text("tokens/s")
    opened.locator("#stop").click()
    expect(opened.locator("#status")).to_contain_text("stopped")
    expect(opened.locator("#generate")).to_be_enabled()
    assert opened.locator(CHIPS).count() < 200
    opened.locator("#step").click()
    expect(opened.locator("#status")).to_contain_text(ONE_MORE)
    pick(opened, "pace", "50")


def test_clear_empties_everything_and_the_next_text_works(opened):
    opened.locator("#clear").click()
    expect(opened.locator(CHIPS)).to_have_count(0)
    expect(opened.locator("#prompt textarea")).to_have_value("")
    expect(opened.locator("#strip")).to_contain_text("Nothing yet")
    generate(opened, "The dog", length=2)
    expect(opened.locator(CHIPS)).to_have_count(4)


def test_a_click_on_a_token_moves_every_picture_and_marks_what_was_chosen(opened):
    generate(opened, "Once upon a time", length=6)
    opened.locator(CHIPS).nth(1).click()
    expect(says(opened, "bars")).to_contain_text("After “·upon”")
    expect(says(opened, "bars")).to_contain_text("Chosen: “·a”")
    expect(says(opened, "heatmap")).to_contain_text("“·upon” looked most at")
    expect(opened.locator(CHIPS).nth(1)).to_have_attribute("aria-selected", "true")


def test_tokens_can_be_reached_and_chosen_with_the_keyboard(opened):
    generate(opened, "Once upon a time", length=4)
    opened.locator(CHIPS).nth(0).click()
    expect(says(opened, "bars")).to_contain_text("After “Once”")
    expect(says(opened, "heatmap")).to_contain_text("“Once” looked most at")
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    expect(says(opened, "bars")).to_contain_text("After “·a”")


def test_moving_the_temperature_redraws_the_bars_without_running_the_model(opened, monkeypatch):
    generate(opened, "Once upon a time", length=4)
    opened.locator(CHIPS).nth(0).click()
    expect(says(opened, "bars")).to_contain_text("After “Once”")
    before = says(opened, "bars").text_content()

    def refuse(*args, **kwargs):
        raise AssertionError("the model ran")

    monkeypatch.setattr("gpt.model.GPT.hidden_states", refuse)
    set_slider(opened, "temperature", 2)
    expect(says(opened, "bars")).not_to_have_text(before)
    set_slider(opened, "top-k", 3)
    expect(says(opened, "bars")).to_contain_text("4,093 of 4,096 tokens removed")
    set_slider(opened, "top-k", 0)
    expect(says(opened, "bars")).to_contain_text("0 of 4,096 tokens removed")
    set_slider(opened, "temperature", 0.8)
    expect(says(opened, "bars")).to_have_text(before)


def test_layer_and_head_choose_the_heatmap(opened):
    generate(opened, "Once upon a time", length=4)
    expect(says(opened, "heatmap")).to_contain_text("Layer 3, head 2")  # a head that shows something
    pick(opened, "layer", "2")
    expect(says(opened, "heatmap")).to_contain_text("Layer 2, head 2")
    pick(opened, "head", "average")
    expect(says(opened, "heatmap")).to_contain_text("Layer 2, average of heads")
    pick(opened, "layer", "3")
    pick(opened, "head", "2")
    expect(says(opened, "heatmap")).to_contain_text("Layer 3, head 2")


def test_the_untrained_model_writes_at_once_and_says_what_it_is(opened):
    generate(opened, "The dog", length=2)
    trained = opened.locator("#model input").input_value()
    set_slider(opened, "length", 5)
    forget_status(opened)
    pick(opened, "model", re.compile("Untrained"))
    expect(opened.locator("#notice")).to_contain_text("never been trained")
    written(opened)
    expect(opened.locator(CHIPS)).to_have_count(2 + 5)
    forget_status(opened)
    pick(opened, "model", trained)
    expect(opened.locator("#notice")).not_to_contain_text("never been trained")
    written(opened)


def test_a_model_picked_while_the_page_still_tells_of_another_text_gives_the_buttons_back(opened, monkeypatch):
    """The browser says twice that a model was picked, so there are two streams, of which one is empty."""
    settling, first = DocumentLock.settling, count()

    @contextmanager
    def slow(turns):
        with settling(turns):
            yield
        if not next(first):
            time.sleep(2)

    trained = opened.locator("#model input").input_value()
    set_slider(opened, "length", 10)
    pick(opened, "pace", "20")
    monkeypatch.setattr(DocumentLock, "settling", slow)
    forget_status(opened)
    pick(opened, "model", re.compile("Untrained"))
    written(opened)
    forget_status(opened)
    pick(opened, "model", trained)
    written(opened)
    pick(opened, "pace", "50")


def test_an_empty_prompt_starts_from_end_of_text_and_says_so(opened):
    generate(opened, "", length=3)
    expect(opened.locator("#notice")).to_contain_text("end-of-text")
    expect(opened.locator(CHIPS)).to_have_count(4)


def test_a_prompt_that_is_too_long_says_by_how_much_and_offers_its_last_part(opened):
    set_slider(opened, "length", 2)
    opened.locator("#prompt textarea").fill("The dog ran. " * 100)
    expect(opened.locator("#prompt-count")).to_contain_text("more than the 256")
    opened.locator("#generate").click()
    expect(opened.locator("#notice")).to_contain_text("more than the 256")
    forget_status(opened)
    opened.locator("#use-tail").click()
    written(opened)
    assert opened.locator(CHIPS).count() <= 130
    expect(opened.locator("#use-tail")).to_be_hidden()


def test_a_seed_that_is_no_number_is_refused_and_the_next_request_works(opened):
    generate(opened, "Lily", length=2)
    before = text(opened)
    opened.locator("#seed input, #seed textarea").first.fill("abc")
    opened.locator("#generate").click()
    expect(opened.get_by_text("The seed must be a whole number")).to_be_visible()
    expect(opened.locator("#generate")).to_be_enabled()
    assert text(opened) == before
    opened.locator("#seed input, #seed textarea").first.fill("")
    generate(opened, "The dog", length=2)
    expect(opened.get_by_text("The seed must be a whole number")).to_be_hidden()
    assert text(opened).startswith("The dog")


@pytest.mark.parametrize(
    "prompt",
    [
        "<img src=x onerror=alert(1)><script>alert(2)</script>",
        "${alert(1)} {{alert(2)}} `${1+1}` <b>bold</b>",
        "a\x00b \u202e abc \t x",
        "你好，世界 é 👩",
    ],
)
def test_any_text_is_shown_as_text(opened, prompt):
    generate(opened, prompt, length=3)
    assert prompt.split()[0][-1] in text(opened)
    assert opened.locator(f"#strip img, #strip script, {CHIPS} b, #bars img, #heatmap img").count() == 0


def test_two_visitors_do_not_see_each_others_text(opened, page, site):
    generate(opened, "The dog", length=2)
    open_playground(page, site)
    expect(page.locator(CHIPS).first).to_have_text("Once")
    generate(page, "Lily", length=2)
    assert text(opened).startswith("The dog")
    opened.locator(CHIPS).nth(0).click()
    expect(says(opened, "bars")).to_contain_text("After “The”")


def test_an_example_button_fills_the_prompt_and_writes(opened):
    set_slider(opened, "length", 3)
    forget_status(opened)
    opened.locator("#example-repeat").click()
    expect(opened.locator("#prompt textarea")).to_have_value(re.compile("The cat sat"))
    written(opened)
    expect(opened.locator(CHIPS).first).to_contain_text("The")


def test_the_page_fetches_nothing_from_elsewhere_and_only_the_four_endpoints_are_public(opened, site):
    answer = opened.request.get(f"{site}gradio_api/info")
    assert set(json.loads(answer.text())["named_endpoints"]) == {"/generate", "/next_token", "/attention", "/tokenize"}
