"""The skeleton in the machine's place in a browser: it comes, keeps what is selected, and goes again."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.playground_page import open_playground


def test_the_skeleton_takes_the_picture_s_place_and_gives_it_back(page: Page, site: str) -> None:
    open_playground(page, site)
    page.get_by_role("tab", name="Inside").click()
    says, bars = page.locator("#flow figcaption .gb-says"), page.locator("#flow [data-part=next]")
    expect(says).to_contain_text(re.compile(r"position 53 of 54\) in layer 3, head 2"))
    expect(bars).to_have_attribute("aria-label", re.compile("Next token"))
    whole = bars.get_attribute("aria-label") or ""

    page.locator("#flow-model input[value=skeleton]").click()
    expect(says).to_contain_text("position 53 of 54) as it was embedded")
    expect(bars).not_to_have_attribute("aria-label", whole)
    expect(page.locator("#flow [data-part=attn]")).to_have_attribute(
        "aria-label", re.compile("no token looks at another")
    )
    expect(page.locator("#flow .gb-flow-heads")).to_be_hidden()
    expect(page.locator("#flow-lead")).to_contain_text("The skeleton")
    expect(page.locator("#heads-whose")).to_have_text("These are the heads of the whole model: the skeleton has none.")

    page.locator("#flow [data-part=attn]").focus()
    page.keyboard.press("ArrowRight")  # nothing to open
    page.keyboard.press("ArrowUp")
    expect(says).to_contain_text("position 52 of 54) as it was embedded")
    page.keyboard.press("ArrowDown")
    expect(says).to_contain_text("position 53 of 54) as it was embedded")

    page.locator("#flow-model input[value=whole]").click()
    expect(says).to_contain_text("in layer 3, head 2")
    expect(bars).to_have_attribute("aria-label", whole)
    expect(page.locator("#flow .gb-flow-heads")).to_be_visible()
    expect(page.locator("#heads-whose p")).to_be_hidden()
