"""A reloaded page: input has no effect until the page shows the visitor's text."""

from __future__ import annotations

import re
from threading import Event

import pytest
from playwright.sync_api import Browser, Page, expect

from components.render import Renderer
from components.state.session import Session
from tests.browser.playground_page import CHIPS, close_more, open_more, open_playground, open_tab, says, text

pytestmark = pytest.mark.thorough

BLOCKED = """for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });
}"""
TYPED = "My cat likes"
CARET_MS = 300  # longer than the box waits for the caret to rest


def test_a_click_before_the_text_is_back_is_not_taken_for_one_in_the_example_and_what_is_typed_is_kept(
    page: Page, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_playground(page, site)
    page.locator("#prompt textarea").fill(TYPED)
    expect(says(page, "bars")).to_contain_text("likes")
    start, free = Renderer.start, Event()

    def wait(renderer: Renderer, session: Session) -> None:
        free.wait(timeout=60)
        start(renderer, session)

    monkeypatch.setattr(Renderer, "start", wait)
    page.reload(wait_until="commit")
    box = page.locator("#prompt textarea")
    expect(box).to_have_value(re.compile("^It was raining"))
    expect(page.locator("#step")).to_be_attached()
    place = box.bounding_box()
    assert place is not None
    page.mouse.click(place["x"] + 12, place["y"] + 12)  # the first token
    page.keyboard.press("Control+Enter")
    page.keyboard.type(" fisg")
    page.keyboard.press("Backspace")
    page.keyboard.type("h")
    page.wait_for_timeout(CARET_MS)
    expect(page.locator(".first-waiting")).to_be_visible()
    free.set()
    expect(page.locator("#first-screen")).to_have_count(0)
    expect(box).to_have_value(f"{TYPED} fish")
    expect(box).to_be_focused()
    expect(says(page, "bars")).to_contain_text("fish")
    page.locator("#language label", has_text="中文").click()
    expect(page.locator("#generate")).to_have_text("续写")
    expect(page.locator(CHIPS).last).to_have_attribute("aria-selected", "true")
    assert text(page) == f"{TYPED} fish"


def test_a_page_whose_storage_is_blocked_opens_and_can_be_used(browser: Browser, site: str) -> None:
    page, problems = browser.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.add_init_script(BLOCKED)
    page.goto(site)
    page.locator("#write-own").click()  # every visitor is a new one
    page.locator("#language label", has_text="中文").click()
    expect(page.locator("#generate")).to_have_text("续写")
    open_more(page)
    page.locator("#theme").click()
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.locator("#numbers input").click()
    expect(page.locator("body")).to_have_attribute("data-numbers", "")
    close_more(page)
    page.locator("#prompt textarea").fill(TYPED)
    expect(says(page, "bars")).to_contain_text("likes")
    open_tab(page, "lessons", "zh")
    assert problems == []
    page.close()
