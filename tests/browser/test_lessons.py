"""The Lessons tab in a browser: links open it, controls change the picture, progress is kept, a button leads on."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_tab

pytestmark = pytest.mark.thorough


@pytest.fixture
def follow(stay, site):
    """`follow(anew=True)` opens the lesson on attention by its link. Otherwise the last test's page is reused."""

    def begin(page):
        page.goto(f"{site}?lesson=attention")
        expect_lesson(page, 12)
        expect(page).to_have_url(re.compile("lesson=attention"))

    return partial(stay, begin)


def expect_lesson(page, n):
    expect(page.locator("#lesson-head h2")).to_contain_text(re.compile(rf"^{n} · "))


def step(page, n):
    return page.locator("#lesson-head ol a").nth(n - 1)


def open_lesson(page, n):
    """Open a lesson by its name in the list."""
    page.locator("#lesson-head summary").click()
    step(page, n).click()
    expect_lesson(page, n)


def test_a_link_opens_a_lesson_whose_picture_follows_its_controls_and_whose_place_opens_with_its_text_and_layer(follow):
    lessons = follow(anew=True)
    says = lessons.locator("#figure-attention-chart .gb-says")
    expect(says).to_contain_text("In layer 0, head 0, “little”")
    expect(lessons.locator("#lesson-body pre").first).to_contain_text("softmax(dim=-1)")
    layer = lessons.locator("#figure-layer input[type=number]")
    expect(layer).to_have_value("0")
    text = lessons.locator("#figure-text textarea, #figure-text input").first
    expect(text).not_to_have_value("")
    layer.fill("3")
    layer.press("Enter")
    expect(says).to_contain_text("In layer 3, head 0")
    text.fill("The dog ran to the")
    expect(says).to_contain_text("“the”")
    lessons.locator("#lesson-head .gb-film-link").click()
    expect(lessons.locator("dialog.gb-film header h2")).to_have_text("The others answer")
    expect(lessons).to_have_url(re.compile("film=answer"))
    lessons.keyboard.press("Escape")
    expect(lessons).not_to_have_url(re.compile("film="))
    lessons.locator("#lesson-body .gb-lesson-go").click()
    expect(lessons.get_by_role("tab", name="Inside", exact=True)).to_have_attribute("aria-selected", "true")
    open_tab(lessons, "playground")
    expect(lessons.locator("#layer select")).to_have_value("3")
    expect(lessons.locator("#heatmap .gb-says")).to_contain_text("In layer 3 (head 0)")
    expect(lessons.locator("#prompt textarea")).to_have_value("The dog ran to the")
    open_tab(lessons, "lessons")
    expect_lesson(lessons, 12)
    open_lesson(lessons, 19)
    lessons.locator("#lesson-body .gb-lesson-go").click()
    expect(lessons.get_by_role("tab", name="Shapes", exact=True)).to_have_attribute("aria-selected", "true")
    expect(lessons.locator("#shape-headline")).to_contain_text("163,009,536")


def test_what_was_seen_is_kept_by_the_browser_and_a_panel_of_the_lab_is_shown_and_speaks_chinese(follow, site):
    lessons = follow()
    open_tab(lessons, "lessons")
    open_lesson(lessons, 3)
    lessons.locator("#lesson-head .gb-on").click()
    expect_lesson(lessons, 4)
    questions = lessons.locator("#lesson-body .gb-questions > li")
    for n, choice, text in ((0, 1, "Not yet."), (0, 0, "Correct."), (1, 2, "Correct.")):
        questions.nth(n).locator("label").nth(choice).click()
        questions.nth(n).get_by_role("button").click()
        expect(questions.nth(n).get_by_role("status")).to_contain_text(text)
    expect(questions.first.locator("details p")).to_be_visible()
    expect(step(lessons, 4)).to_have_attribute("data-level", "2")
    lessons.keyboard.press("ArrowRight")
    expect_lesson(lessons, 5)
    expect(step(lessons, 5)).to_have_attribute("data-level", "1")
    lessons.goto(f"{site}?tab=lessons")
    expect_lesson(lessons, 5)
    for n, level in ((2, "0"), (3, "1"), (4, "2"), (5, "1")):
        expect(step(lessons, n)).to_have_attribute("data-level", level)
    expect(step(lessons, 5)).to_have_attribute("aria-current", "step")
    lessons.locator("#lesson-head .gb-contents summary").click()
    search = lessons.locator("#lesson-head .gb-contents input")
    search.fill("GELU relu")
    expect(lessons.locator("#lesson-head .gb-contents a")).to_have_count(1)
    search.press("Enter")
    expect_lesson(lessons, 7)
    expect(lessons.locator("#figure-activations-chart .gb-says")).to_contain_text("x = 1.00")
    lessons.reload()
    expect_lesson(lessons, 7)
    open_lesson(lessons, 14)
    expect(lessons.locator("#shortcuts-answer")).not_to_be_empty()
    expect(lessons.locator("#card-lesson .gb-figure")).to_have_count(0)
    lessons.locator("#language").get_by_text("中文").click()
    expect(lessons.locator("#lesson-head h2")).to_have_text("14 · 残差连接")
    expect(lessons.locator("#lesson-body .gb-solution summary").first).to_have_text("显示答案")
