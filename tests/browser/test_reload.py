"""A page that is loaded again: nothing answers before it shows the visitor's session."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Event

import pytest
from playwright.sync_api import Locator, Page, expect

from components.render import Renderer
from components.state.session import Session
from tests.browser.playground_page import CHIPS, open_playground, says, text

EXAMPLE = re.compile("^Once upon a time")
TYPED = "My cat likes"


def choose_token(page: Page) -> Locator:
    return page.locator("#prompt textarea")


def choose_prediction(page: Page) -> Locator:
    return page.locator("#bars [role=option]").first


@pytest.mark.parametrize("target", [choose_token, choose_prediction])
def test_an_action_before_the_text_is_back_is_not_answered_by_the_example(
    page: Page, site: str, monkeypatch: pytest.MonkeyPatch, target: Callable[[Page], Locator]
) -> None:
    open_playground(page, site)
    page.locator("#prompt textarea").fill(TYPED)
    expect(says(page, "bars")).to_contain_text("likes")
    n_tokens = page.locator(CHIPS).count()
    start, free = Renderer.start, Event()

    def wait(renderer: Renderer, session: Session) -> None:
        free.wait(timeout=60)
        start(renderer, session)

    monkeypatch.setattr(Renderer, "start", wait)
    page.reload(wait_until="commit")
    expect(page.locator("#step")).to_be_visible()
    expect(page.locator("#prompt textarea")).to_have_value(EXAMPLE)
    expect(page.locator(".first-waiting")).to_be_visible()
    box = target(page).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 12, box["y"] + 12)
    page.keyboard.press("Control+Enter")
    free.set()
    expect(page.locator("#first-screen")).to_have_count(0)
    expect(says(page, "bars")).to_contain_text("likes")
    page.locator("#step").click()
    expect(page.locator(CHIPS)).to_have_count(n_tokens + 1)
    assert text(page).startswith(TYPED)
