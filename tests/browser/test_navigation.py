"""The row of tabs and the text below it, which stays in view: all tabs share one selection."""

import re

import pytest
from playwright.sync_api import expect

from components.i18n import t
from components.page import INNER
from tests.browser.conftest import FORGET
from tests.browser.playground_page import CHIPS, open_playground, open_tab, says, tab

pytestmark = pytest.mark.thorough

DOCK = "#dock [role=option]"


@pytest.fixture
def opened(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "playground")
    return page


def test_the_text_stays_in_view_in_every_tab_and_its_token_is_selected_in_all_of_them(opened):
    expect(opened.locator("#dock")).to_be_hidden()  # the larger text is visible
    open_tab(opened, "why")
    opened.locator("#why-evidence > summary").click()
    expect(says(opened, "why-lens")).not_to_be_empty()
    opened.mouse.wheel(0, 1200)
    expect(opened.locator("#why-lead")).not_to_be_in_viewport()
    expect(opened.locator("#dock")).to_be_in_viewport(ratio=1)
    assert opened.locator(DOCK).all_text_contents() == opened.locator(CHIPS).all_text_contents()
    expect(opened.locator(DOCK).last).to_be_in_viewport()  # the selected chip
    opened.locator(DOCK).nth(5).click()
    expect(opened.locator(DOCK).nth(5)).to_have_attribute("aria-selected", "true")
    open_tab(opened, "activations")
    layer = opened.locator("#activations-layer option:checked").text_content()
    opened.locator(DOCK).nth(5).press("ArrowRight")
    opened.locator(DOCK).nth(6).press("Enter")
    expect(opened.locator(DOCK).nth(6)).to_have_attribute("aria-selected", "true")
    open_tab(opened, "playground")
    expect(opened.locator(CHIPS).nth(6)).to_have_attribute("aria-selected", "true")
    expect(opened.locator("#layer select")).to_have_value(layer)


def test_back_and_forward_go_through_every_tab_and_its_lessons_and_challenges(page, site):
    open_playground(page, site)
    places = [("playground", page.url)]

    def note(id, query):
        expect(page).to_have_url(re.compile(query))
        places.append((id, page.url))

    for id in (*INNER["look"], *INNER["learn"], *INNER["lab"]):
        open_tab(page, id)
        opened = {"lessons": "lesson=", "challenges": "challenge="}.get(id, "")
        note(id, f"tab={id}&.*{opened}")
        if opened:
            page.locator("#lesson-head summary, #challenge-head summary").filter(visible=True).click()
            page.locator("#lesson-head a, #challenge-head a").filter(visible=True).nth(3).click()
            expect(page).not_to_have_url(places[-1][1])
            note(id, opened)
    n = page.evaluate("history.length")
    order = [*range(len(places) - 2, -1, -1), *range(1, len(places))]
    for i, go in zip(order, [page.go_back] * (len(places) - 1) + [page.go_forward] * (len(places) - 1), strict=True):
        go()
        id, address = places[i]
        expect(tab(page, t(f"tab.{id}"))).to_have_attribute("aria-selected", "true")
        if id in ("lessons", "challenges"):
            now = page.locator(f"#{id.removesuffix('s')}-head a[aria-current]")
            expect(now).to_have_attribute("href", re.compile(re.search("(lesson|challenge)=[^&]+", address)[0]))
        expect(page).to_have_url(address)
    assert page.evaluate("history.length") == n
    address = page.url
    page.evaluate(FORGET)  # the server knows nothing about this visitor
    page.goto("about:blank")
    page.goto(address)
    expect(tab(page, t(f"tab.{places[-1][0]}"))).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(address)


def test_a_row_of_tabs_is_one_stop_of_the_keyboard_with_arrows(opened):
    opened.locator(".gb-skip a").press("Enter")
    expect(opened.locator("#tabs > [role=tabpanel]:focus")).to_have_count(1)
    opened.locator("#more > summary").focus()
    opened.keyboard.press("Tab")
    expect(tab(opened, "Write")).to_be_focused()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowRight")
    expect(tab(opened, "Learn")).to_be_focused()
    expect(tab(opened, "Write")).to_have_attribute("aria-selected", "true")
    opened.keyboard.press("Enter")
    expect(tab(opened, "Learn")).to_have_attribute("aria-selected", "true")
    opened.keyboard.press("Tab")
    expect(opened.locator("#tabs > :first-child :focus")).to_have_count(0)
    opened.keyboard.press("Shift+Tab")
    expect(tab(opened, "Learn")).to_be_focused()
