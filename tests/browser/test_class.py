"""A class: a teacher's page with a page that follows it, and a sequence of stops with a presenter's keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SLOW
from tests.browser.playground_page import CHIPS, open_more, open_playground, open_tab, tab

pytestmark = pytest.mark.thorough


@pytest.fixture
def other(browser):
    """The page of another visitor, with a phone, in a window of its own: the one behind another draws once a second."""
    visitor = browser.new_page(viewport={"width": 390, "height": 844}, locale="en-US")
    visitor.set_default_timeout(SLOW)
    yield visitor
    visitor.close()


def bar(page):
    return page.locator("#class-bar")


def share(page):
    """Let others follow the page; returns the link."""
    open_more(page)
    page.get_by_role("button", name="For a class").click()
    page.get_by_text("Follow me").click()
    page.get_by_role("button", name="Let others follow").click()
    link = page.locator("#class-dialog details[open] input")
    expect(link).to_have_value(re.compile("follow="))
    page.get_by_role("button", name="Close").click()
    return link.input_value()


def test_a_page_follows_the_teacher_reaches_nothing_of_it_and_goes_on_alone_from_there(page, other, site):
    open_playground(page, site)
    other.goto(f"{share(page)}&lang=zh")
    expect(bar(other)).to_contain_text("你正在跟随老师的页面")
    page.locator("#prompt textarea").fill("Lily had a red")
    expect(other.locator("#prompt textarea")).to_have_value("Lily had a red")
    other.locator(CHIPS).nth(0).dispatch_event("click")  # not sent while following
    page.locator(CHIPS).nth(1).click()
    expect(other.locator(CHIPS).nth(1)).to_have_attribute("aria-selected", "true")
    other.get_by_role("button", name="自己探索").click()
    expect(bar(other).get_by_role("button", name="重新跟随")).to_be_visible()
    other.locator("#prompt textarea").fill("Tom had a big")
    expect(other.locator("#bars .gb-says")).to_contain_text("big")
    expect(page.locator("#prompt textarea")).to_have_value("Lily had a red")


def test_a_page_follows_into_another_tab_again_after_it_went_on_alone_and_until_the_class_ends(page, other, site):
    open_playground(page, site)
    other.goto(f"{share(page)}&lang=zh")
    expect(bar(other)).to_contain_text("你正在跟随老师的页面")
    other.get_by_role("button", name="自己探索").click()
    open_tab(page, "why")
    bar(other).get_by_role("button", name="重新跟随").click()
    expect(tab(other, "原因")).to_have_attribute("aria-selected", "true")
    open_more(page)
    page.get_by_role("button", name="For a class").click()
    page.locator("#class-dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(bar(other)).to_contain_text("老师已停止共享")
    expect(other).not_to_have_url(re.compile("follow="))
    bar(other).get_by_role("button", name="关闭").click()
    expect(bar(other)).to_be_hidden()


def test_the_stops_of_a_link_are_stepped_by_keys_through_the_film_and_on(page, site):
    page.goto(f"{site}?class=first-lesson&stop=4")
    expect(bar(page)).to_contain_text("4 of 8")
    title = page.locator("dialog.gb-film header h2")
    expect(title).to_have_text("The same last words")
    bar(page).get_by_role("button", name="Present").click()
    expect(page.locator("body[data-presenting]")).to_have_count(1)
    says = page.locator("dialog.gb-film .gb-film-says")
    assert says.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 24
    for _ in range(12):
        page.keyboard.press("PageDown")
    expect(title).to_have_text("The next token is found")
    expect(bar(page)).to_contain_text("4 of 8")
    page.keyboard.press("PageDown")
    expect(bar(page)).to_contain_text("5 of 8")
    expect(title).to_have_text("A token asks")
    expect(page).to_have_url(re.compile("stop=5"))
    page.keyboard.press("Escape")
    expect(title).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("body[data-presenting]")).to_have_count(0)
    bar(page).get_by_role("button", name="Close").click()
    expect(bar(page)).to_be_hidden()
    expect(page).not_to_have_url(re.compile("class="))
    open_more(page)
    page.get_by_role("button", name="Present").click()
    page.keyboard.press("PageDown")  # writes a word, although the button for it is not shown
    expect(page.locator("#prompt textarea")).to_have_value(re.compile("looked for her .+"))
