"""One visit in a browser, for what no cheaper test can tell. The other browser tests are `thorough`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_plus

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.browser.conftest import NEW_VISITOR
from tests.browser.playground_page import (
    CHIPS,
    FIRST_VIEW,
    forget_status,
    open_strip,
    pick,
    picked,
    shown_next,
    text,
    written,
)
from tests.conftest import randomized
from tests.parity.named_models import NanoGPT

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> ${alert(1)} {{x}} <b>b</b> a\x00b \u202e 你好 é 👩"


@pytest.fixture
def opened(stay: Callable[..., Page], site: str) -> Page:
    """A page that the tests share. Each types its own text."""
    return stay(lambda page: page.goto(site))


def test_a_new_visitor_sees_one_question_and_the_first_action_opens_the_workbench_where_the_model_writes(
    stay: Callable[..., Page], site: str
) -> None:
    page = stay(lambda page: page.goto(f"{site}?{NEW_VISITOR}"), anew=True)
    expect(page.locator("#first-screen")).to_have_count(0)
    expect(page.locator("#hero-question")).to_have_text("Why does this small GPT guess “outside”?")
    controls, words = page.evaluate(FIRST_VIEW)
    assert (len(controls), len(words)) <= (12, 60), controls
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator("#write-own")).to_be_in_viewport(ratio=0.9)
    page.locator("#hero-growth input").fill("17")  # how the model was learned
    expect(page.locator("#hero-growth .gb-growth-text")).to_contain_text("there was a little girl named Lily")
    expect(page.locator("#generate")).to_be_hidden()
    word = page.locator("#prompt .gb-copy span", has_text="because")
    stood = word.bounding_box()["x"], word.bounding_box()["width"]
    page.locator("#hide-main").click()
    expect(page.locator("#generate")).to_be_visible()
    expect(page.locator("#reason")).to_contain_text("Without “raining”, “outside” drops from 91% to 9%")
    assert (word.bounding_box()["x"], word.bounding_box()["width"]) == stood  # although the guess has another length
    controls, words = page.evaluate(FIRST_VIEW)
    assert len(controls) <= 20, controls
    assert len(words) <= 90, words
    shorter = len(page.locator("#prompt textarea").input_value())
    page.locator("#generate").click()
    page.wait_for_function("n => document.querySelector('#prompt textarea').value.length > n", arg=shorter)
    page.locator("#stop").click()
    written(page)


def compose(page: Page, text: str) -> None:
    """Compose a text at the caret like an input method; the next call replaces it until it is committed."""
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})


def test_composed_pinyin_is_neither_lost_nor_doubled_and_the_document_is_the_committed_text(opened: Page) -> None:
    box = opened.locator("#prompt textarea")
    box.fill("The dog ran")
    shown_next(opened)
    box.evaluate("box => box.setSelectionRange(7, 7)")
    for pinyin in ("ni hao", "ni ha"):
        compose(opened, pinyin)
        expect(box).to_have_value(f"The dog{pinyin} ran")
        shown_next(opened)
        assert box.evaluate("box => box.selectionStart") == 7 + len(pinyin)
    opened.context.new_cdp_session(opened).send("Input.insertText", {"text": "你好"})
    expect(box).to_have_value("The dog你好 ran")
    shown_next(opened)
    assert box.evaluate("box => box.selectionStart") == 9
    expect(opened).to_have_url(
        re.compile(re.escape(quote_plus("The dog你好 ran")))
    )  # the document, as the server has it


def test_the_film_opens_is_stepped_by_keys_and_gives_back_the_page_as_it_was(opened: Page) -> None:
    film, title = opened.locator("dialog.gb-film"), opened.locator("dialog.gb-film header h2")
    before = opened.locator("#prompt textarea").input_value()
    opened.locator("#open-film").click()
    expect(title).to_have_text("What comes next?")
    opened.keyboard.press("End")
    expect(title).not_to_have_text("What comes next?")
    opened.keyboard.press("Escape")
    expect(film).to_be_hidden()
    expect(opened).not_to_have_url(re.compile("film="))
    assert opened.locator("#prompt textarea").input_value() == before


def test_the_right_arrow_takes_the_next_token_undo_takes_it_back_and_a_reload_keeps_the_text(opened: Page) -> None:
    box, ghost = opened.locator("#prompt textarea"), opened.locator("#prompt .gb-ghost")
    box.fill("")
    box.press_sequentially("Once upon a")
    expect(ghost).to_have_text(" time")
    shown_next(opened)
    box.press("ArrowRight")
    expect(box).to_have_value("Once upon a time")
    expect(ghost).to_have_text(",")
    box.press("Control+z")
    expect(box).to_have_value("Once upon a")
    shown_next(opened)
    opened.reload()
    expect(opened.locator("#first-screen")).to_have_count(0)
    expect(box).to_have_value("Once upon a")
    expect(ghost).to_have_text(" time")


def test_any_text_is_shown_as_text(opened: Page) -> None:
    open_strip(opened)
    opened.locator("#prompt textarea").fill(HOSTILE)
    expect(opened.locator(CHIPS).nth(40)).to_be_visible()
    assert "<script>alert(2)</script> ${alert(1)} {{x}} <b>b</b>" in text(opened)
    assert opened.locator(f"#strip img, #strip script, {CHIPS} b, #bars img, #heatmap img").count() == 0


def test_a_link_opens_the_text_that_it_names(opened: Page, site: str) -> None:
    opened.goto(f"{site}?prompt=The%20dog&temperature=0.8&seed=3&text=6&length=6&lang=en")
    written(opened)
    expect(opened.locator("#prompt-count")).to_have_text(re.compile("^8 of 256"))
    expect(opened.locator("#prompt textarea")).to_have_value(re.compile("^The dog"))


@pytest.mark.thorough
def test_a_checkpoint_asks_for_its_heads_then_opens_and_writes(opened: Page, tmp_path: Path) -> None:
    weights = tmp_path / "mine.pt"
    torch.save(randomized(NanoGPT()).state_dict(), weights)
    opened.locator("#upload summary").click()
    opened.locator("#upload-files input[type=file]").set_input_files(str(weights))
    # The name is there while the file is still sent; the list is there once it has arrived.
    expect(opened.locator("#upload-files .file-preview")).to_contain_text("mine")
    opened.locator("#upload-open").click()
    expect(opened.locator("#upload-message")).to_contain_text("neither the number of heads")
    pick(opened, "upload-heads", "2")
    opened.locator("#prompt textarea").fill("3 5 7")
    forget_status(opened)
    opened.locator("#upload-open").click()
    expect(opened.locator("#upload-message")).to_contain_text("2 heads")
    written(opened)
    expect(picked(opened, "model")).to_have_text(re.compile("mine.pt"))
