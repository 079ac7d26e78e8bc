"""Checks every tab with axe-core's WCAG 2.2 rules: in both themes, and in both languages at phone width."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import SIZE
from tests.browser.playground_page import open_more_controls, open_tab, switch_theme

pytestmark = pytest.mark.thorough

SETTLED = {  # by tab, an element that is present once its pictures are drawn
    "playground": "#heatmap .main-svg",
    "inside": "#path .gb-path-end",
    "why": "#why-parts .main-svg",
    "change": "#change-original .gb-chip",
    "compare": "#compare-start:enabled",
    "activations": "#curves .main-svg",
    "train": "#scaling-tokens .main-svg",
    "lessons": "#lesson-body pre code",
    "challenges": "#challenge-text .gb-arcs-token",
    "learned": "#learned-flow [data-part=stack]",
    "shapes": "#shape-parts .main-svg",
    "loss": "#loss-strip .gb-chip",
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# A chart is a single image with a description, and its colours have tests of their own.
SHOWN = {"exclude": [[".gb-plot .main-svg"]]}
# Tabs opened earlier stay in the page, and axe would spend most of its time on them.
TAKE_AWAY = """() => {
  window.away = [...document.querySelectorAll("[role=tabpanel][style*=none]")].map((panel) => {
    const place = document.createComment("");
    panel.replaceWith(place);
    return () => place.replaceWith(panel);
  });
}"""
PUT_BACK = "() => window.away.forEach((back) => back())"
TRIES = 10  # colours are wrong during a transition, so try again
PHONE, WINDOW = {"width": 390, "height": 844}, {"width": 1600, "height": 900}
WIDE = "width => document.documentElement.scrollWidth <= width"


def faults(page: Page, rules: list[str]) -> list[str]:
    """Return the violations that persist, as rule and element."""
    found: list[str] = []
    for _ in range(TRIES):
        with alone(page):
            answer = Axe().run(page, SHOWN, {"resultTypes": ["violations"], "runOnly": rules})
        broken = answer.response["violations"]
        found = [f"{rule['id']}: {node['html'][:160]}" for rule in broken for node in rule["nodes"]]
        if not found:
            break
        page.wait_for_timeout(300)
    return found


@contextmanager
def alone(page: Page) -> Iterator[None]:
    """Remove the closed tabs from the page for the duration of the block."""
    page.evaluate(TAKE_AWAY)
    yield
    page.evaluate(PUT_BACK)


def begin(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#first-screen")).to_have_count(0)
    open_more_controls(page)


@pytest.mark.parametrize("name", SETTLED)
def test_a_tab_can_be_read_and_used_by_everybody(stay, site, name):
    page = stay(lambda page: begin(page, site))
    open_tab(page, name)
    unfold(page, name)
    expect(page.locator(SETTLED[name]).first).to_be_visible()
    assert faults(page, RULES) == []
    switch_theme(page)
    assert faults(page, ["color-contrast"]) == []
    switch_theme(page)
    page.set_viewport_size(PHONE)
    page.wait_for_function(WIDE, arg=PHONE["width"])
    page.set_viewport_size(WINDOW)
    expect(page.locator("#tabs .overflow-menu:visible")).to_have_count(0)  # all tabs are back in their rows
    page.set_viewport_size(SIZE)


def test_no_tab_scrolls_sideways_on_a_chinese_phone_and_the_text_stands_before_the_settings(page, site):
    page.set_viewport_size(PHONE)
    begin(page, f"{site}?lang=zh&model=stories&prompt=Lily+had+a+red+ball.+Tom+had+a+blue&text=")
    for part in ("#prompt", "#bars", "#generate", "#heatmap"):  # the button stays at the edge of the window
        expect(page.locator(part)).to_be_visible()
    tops = [page.locator(s).bounding_box()["y"] for s in ("#prompt", "#bars", "#heatmap")]
    assert tops == sorted(tops)
    for name, settled in SETTLED.items():
        open_tab(page, name, "zh")
        unfold(page, name)
        expect(page.locator(settled).first).to_be_visible()
        page.wait_for_function(WIDE, arg=PHONE["width"])
    open_tab(page, "playground", "zh")
    page.locator("#generate").click()
    expect(page.locator("#stop")).to_be_in_viewport()
    page.locator("#stop").click()
    expect(page.locator("#generate")).to_be_enabled()


def unfold(page: Page, name: str) -> None:
    """Unfold the evidence in the Why? tab, unless it is open."""
    if name == "why":
        expect(page.locator("#why-flow [role=button]").first).to_be_visible()
        if not page.locator("#why-strip").is_visible():
            page.locator("#why-evidence > summary").click()
