"""Every tab in a browser, read by axe-core, which knows WCAG 2.2: on the light theme; on the dark one, its colours."""

from functools import partial

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

SETTLED = {  # a tab, and what is on it once its pictures have come
    "Playground": "#bars .main-svg",
    "Inside": "#flow [data-part=stack]",
    "Why?": "#why-parts .main-svg",
    "Change it": "#change-original .gb-chip",
    "Compare": "#compare-generate:enabled",
    "Activations": "#curves .main-svg",
    "Shapes": "#shape-parts .main-svg",
    "Loss": "#loss-strip .gb-chip",
    "Train": "#train-settings",
    "Lessons": "#lesson-body pre code",
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SHOWN = {"exclude": [["[role=tabpanel][style*=none]"]]}  # all that was opened before stays in the page
PATIENCE = 10  # tries: what is on its way from one state to another has the colours of neither


def faults(page: Page, rules: list[str]) -> list[str]:
    """What stays wrong: the rule, and where it is broken."""
    found: list[str] = []
    for _ in range(PATIENCE):
        answer = Axe().run(page, SHOWN, {"resultTypes": ["violations"], "runOnly": rules})
        broken = answer.response["violations"]
        found = [f"{rule['id']}: {node['html'][:160]}" for rule in broken for node in rule["nodes"]]
        if not found:
            break
        page.wait_for_timeout(300)
    return found


@pytest.fixture
def opened(stay, site):
    def begin(page):
        page.goto(site)
        expect(page.locator("#bars .main-svg").first).to_be_visible()

    return partial(stay, begin)


@pytest.mark.parametrize("name", SETTLED)
def test_a_tab_can_be_read_and_used_by_everybody(opened, name):
    page = opened()
    page.get_by_role("tab", name=name, exact=True).first.click()
    expect(page.locator(SETTLED[name]).first).to_be_visible()
    assert faults(page, RULES) == []
    page.locator("#theme").click()
    assert faults(page, ["color-contrast"]) == []
    page.locator("#theme").click()
