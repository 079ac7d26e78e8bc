"""The Lessons tab in a browser: a link opens it, a picture obeys its controls, progress is kept, a button leads on."""

import re

import pytest
from playwright.sync_api import expect

from components.layout import build_app, launch_options


@pytest.fixture(scope="module")
def url(serve):
    return serve(build_app(), **launch_options())


@pytest.fixture(scope="module")
def lessons(url, module_page):  # in this order: the page is closed before the app
    module_page.goto(f"{url}?lesson=8")
    expect_lesson(module_page, 8)
    return module_page


def expect_lesson(page, n):
    expect(page.locator("#lesson-head h2")).to_contain_text(re.compile(rf"^{n} · "))


def step(page, n):
    return page.locator(f"#lesson-head .gb-steps li:nth-child({n}) a")


def test_a_link_opens_a_lesson_whose_picture_follows_its_controls(lessons):
    says = lessons.locator("#lesson-chart .gb-says")
    expect(says).to_contain_text("Layer 0, head 0: “·little”")
    expect(lessons.locator("#lesson-body pre code").first).to_contain_text("softmax(dim=-1)")
    layer = lessons.locator("#lesson-a input[type=number]")
    layer.fill("3")
    layer.press("Enter")
    expect(says).to_contain_text("Layer 3, head 0")
    lessons.locator("#lesson-text textarea, #lesson-text input").first.fill("The dog ran to the")
    expect(says).to_contain_text("“·the”")


def test_the_place_in_the_app_opens_with_the_lessons_layer(lessons):
    lessons.locator("#lesson-body .gb-lesson-go").click()
    expect(lessons.get_by_role("tab", name="Inside", exact=True)).to_have_attribute("aria-selected", "true")
    lessons.get_by_role("tab", name="Playground", exact=True).click()
    expect(lessons.locator("#layer input")).to_have_value("3")
    expect(lessons.locator("#heatmap .gb-says")).to_contain_text("Layer 3, head 0")
    lessons.get_by_role("tab", name="Lessons", exact=True).click()
    expect_lesson(lessons, 8)


def test_what_was_seen_and_answered_is_kept_by_the_browser(lessons, url):
    lessons.locator("#lesson-body summary").click()
    expect(step(lessons, 8)).to_have_attribute("data-level", "2")
    lessons.locator("#lesson-head .gb-on").click()
    expect_lesson(lessons, 9)
    lessons.keyboard.press("ArrowRight")
    expect_lesson(lessons, 10)
    again = lessons.context.new_page()
    again.goto(f"{url}?tab=lessons")
    expect_lesson(again, 10)
    for n, level in ((7, "0"), (8, "2"), (9, "1"), (10, "1")):
        expect(step(again, n)).to_have_attribute("data-level", level)
    expect(step(again, 10)).to_have_attribute("aria-current", "step")


def test_a_panel_of_the_lab_is_shown_and_everything_speaks_chinese(lessons):
    step(lessons, 7).click()
    expect_lesson(lessons, 7)
    expect(lessons.locator("#shortcuts-answer")).not_to_be_empty()
    expect(lessons.locator("#lesson-chart")).not_to_be_visible()
    lessons.locator("#language").get_by_text("中文").click()
    expect(lessons.locator("#lesson-head h2")).to_have_text("7 · 残差连接")
    expect(lessons.locator("#lesson-body summary")).to_have_text("看答案")
