"""The Challenges tab in a browser: links open challenges, clicks and typing solve them, and progress is kept."""

import re

from playwright.sync_api import expect


def test_a_link_opens_a_challenge_which_clicks_or_a_text_solve_and_the_browser_keeps_what_was_solved(page, site):
    page.goto(f"{site}?challenge=put_back")
    verdict = page.locator("#challenge-foot .gb-standing")
    expect(verdict).to_contain_text("With head 4.1 off")
    page.locator("#challenge-text .gb-arcs-token").nth(4).click()
    page.locator("#challenge-layer").get_by_text("4", exact=True).click()
    expect(verdict).to_contain_text("With just this piece put back")
    page.locator("#challenge-foot .gb-on").click()
    expect(page).to_have_url(re.compile("challenge=sure"))
    expect(verdict).to_contain_text("39")
    page.locator("#challenge-box textarea").fill("They lived happily ever")
    expect(verdict).to_contain_text("“after”")
    page.reload()
    solved = page.locator("#challenge-head a[data-level='2']")
    expect(solved).to_have_count(2)
    expect(page.locator("#challenge-head a[aria-current]")).to_have_attribute("data-key", "sure")
