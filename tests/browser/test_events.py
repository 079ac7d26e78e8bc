"""Page events: of several quick actions the last one wins, even if the server is still busy with the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from components.render import Renderer
from tests.browser.playground_page import open_playground, open_tab, tab

Actions = tuple[Callable[[], None], Callable[[], None], Locator, str]


def inside(page: Page) -> Actions:
    open_tab(page, "inside")
    tab(page, "The machine").click()
    heads, caption = page.locator(".gb-heads-grid"), page.locator("#flow figcaption .gb-says")
    expect(caption).to_contain_text("layer 3, head 4")

    def choose_previous() -> None:
        for key in ("ArrowLeft", "Enter"):
            heads.press(key)

    return choose_previous, choose_previous, caption, "layer 3, head 2"


def change(page: Page) -> Actions:
    open_tab(page, "change")
    lead, heads = page.locator("#change-lead"), page.locator("#change-switches .gb-switch-head")
    expect(lead).to_contain_text("No changes yet")
    return heads.nth(1).click, heads.nth(2).click, lead, "layer 0, head 1 off; layer 0, head 2 off"


@contextmanager
def busy_server() -> Iterator[None]:
    """Prevent frames from being drawn inside the block."""
    draw, free = Renderer.frame, Event()

    def frame(*arguments: Any) -> str | None:
        free.wait(timeout=60)
        return draw(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Renderer, "frame", frame)
        try:
            yield
        finally:
            free.set()


@pytest.mark.parametrize("prepare", [inside, change])
def test_of_two_quick_actions_the_last_one_counts_while_the_server_is_busy_with_the_first(
    stay: Callable[..., Page], site: str, prepare: Callable[[Page], Actions]
) -> None:
    page = stay(lambda page: open_playground(page, site))
    first, last, shown, expected = prepare(page)
    with busy_server():
        first()
        last()
    expect(shown).to_contain_text(expected)
