"""The panels in a browser, on the lessons that contain them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from components.tabs.lessons.course import LESSONS as COURSE
from tests.browser.playground_page import open_playground, open_tab

LESSONS = {  # by lesson: prefixes of its panels' ids
    "tokenizer": ("bpe",),
    "skeleton": ("skeleton",),
    "layer_norm": ("norm",),
    "feed_forward": ("ff",),
    "shortcuts": ("shortcuts",),
    "block": ("placement",),
    "initialisation": ("tying", "start"),
    "small": ("masks",),
    "positions": ("positions",),
    "next": ("prefill", "kernels"),
}
NUMBERS = {lesson.key: n for n, lesson in enumerate(COURSE, 1)}


def open_lessons(page, address):
    open_playground(page, address)  # before the page has its session, this would reopen Write
    open_tab(page, "lessons")


def open_lesson(page, lesson):
    n = NUMBERS[lesson]
    page.locator("#lesson-head .gb-contents summary").click()
    page.locator("#lesson-head .gb-contents li a").nth(n - 1).click()
    expect(page.locator("#lesson-head h2")).to_contain_text(re.compile(rf"^{n} · "))
    for prefix in LESSONS[lesson]:
        expect(page.locator(f"#{prefix}-answer p")).not_to_be_empty()


@pytest.mark.thorough
def test_every_panel_answers_when_its_lesson_is_opened_on_a_dark_phone_and_fits(page, site):
    page.set_viewport_size({"width": 390, "height": 844})
    open_lessons(page, f"{site}?__theme=dark")
    for lesson, prefixes in LESSONS.items():
        open_lesson(page, lesson)
        for prefix in prefixes:
            expect(page.locator(f"[id^={prefix}-] .main-svg").first).to_be_visible()
            expect(page.locator(f"#{prefix}-notice p")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, lesson


@pytest.fixture
def lessons(stay, site):
    return stay(lambda page: open_lessons(page, site))


@pytest.mark.thorough
def test_layer_norm_goes_from_the_example_to_the_running_model(lessons):
    open_lesson(lessons, "layer_norm")
    expect(lessons.locator("#norm-answer")).to_contain_text("mean 0.2170")
    lessons.get_by_label("the running model").click()
    expect(lessons.locator("#norm-before .gb-says")).to_contain_text("192 numbers per row")
    position = lessons.locator("#norm-position input[type=number]")
    position.fill("3")
    position.press("Enter")
    expect(lessons.locator("#norm-answer")).to_contain_text("· 3 ")


@pytest.mark.thorough
def test_a_panel_speaks_the_new_language_refuses_in_it_and_keeps_the_last_word(lessons):
    open_lesson(lessons, "tokenizer")
    answer = lessons.locator("#bpe-answer p")
    expect(answer).to_contain_text("11 bytes")
    lessons.locator("#language").get_by_text("中文").click()
    expect(answer).to_contain_text("11 个字节")
    word = lessons.locator("#bpe-word").locator("input, textarea")
    word.fill("two words")
    expect(lessons.locator("#bpe-notice p")).to_contain_text("切成 2 个单词")
    expect(answer).to_contain_text("11 个字节")
    word.fill("grandmother")
    expect(lessons.locator("#bpe-notice p")).to_be_hidden()
    lessons.locator("#language").get_by_text("EN").click()
    expect(answer).to_contain_text("11 bytes")


@pytest.mark.thorough
def test_training_stops_when_told(lessons):
    open_lesson(lessons, "positions")
    lessons.locator("#positions-start").click()
    expect(lessons.locator("#positions-start")).to_be_disabled()
    lessons.locator("#positions-stop").click()
    expect(lessons.locator("#positions-start")).to_be_enabled()
