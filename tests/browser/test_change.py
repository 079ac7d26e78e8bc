"""Change it in a browser: switches, synchronised texts, patching, and links that restore edits."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.thorough

CHIPS = ".gb-strip .gb-chip"


@pytest.fixture
def change(stay, site):
    """A shared page without any edits, opened by a link that had some."""

    def begin(page):
        page.goto(f"{site}?lang=en&tab=change&seed=10&length=12&edits=h0.5%3D0,act%3Drelu")
        expect(page.locator("#change-says")).to_contain_text("ReLU instead of GELU (tanh); layer 0, head 5 off")
        expect(switch(page, 0, 7)).to_have_class(re.compile("gb-off"))
        expect(page.locator("#change-activation input[value=relu]")).to_be_checked()

    page = stay(begin)
    page.locator("#change-reset").click()
    expect(lead(page)).to_contain_text("No changes yet")
    expect(says(page, "divergence")).to_contain_text("No changes yet")
    expect(page.locator("#change-divergence .gb-plot")).to_be_hidden()
    expect(switch(page, 0, 7)).not_to_have_class(re.compile("gb-off"))
    return page


def says(page, name):
    return page.locator(f"#change-{name} .gb-says")


def lead(page):
    return page.locator("#change-lead")


def switch(page, layer, place):
    """Return the switches of a layer: its number, attention, the heads, feed-forward."""
    return page.locator("#change-switches .gb-switch-row").nth(layer + 1).locator(".gb-switch").nth(place)


def test_switches_by_mouse_keyboard_and_slider_change_the_prediction_at_once(change):
    switch(change, 1, 1).click()
    expect(lead(change)).to_contain_text("layer 1 attention off")
    expect(change.locator("#change-says")).to_contain_text(
        re.compile(r"went from .* to .* because of this change: layer 1 attention off")
    )
    grid = change.locator("#change-switches [role=grid]")
    grid.press("ArrowRight")
    grid.press("ArrowRight")
    grid.press("Space")
    expect(lead(change)).to_contain_text("layer 1 attention off; layer 1, head 1 off")
    change.locator("#change-switches input[type=range]").fill("0.5")
    expect(lead(change)).to_contain_text("layer 1, head 1 × 0.5")
    switch(change, 3, 0).click()
    expect(lead(change)).to_contain_text("layer 3 off")
    change.locator(f"#change-original {CHIPS}").nth(5).click()
    expect(change.locator("#change-says")).to_contain_text("After “Tom”")


def test_both_texts_are_written_in_step_and_the_patch_of_a_cell_becomes_an_edit(change):
    change.locator("#change-try-attention-all").click()
    expect(lead(change)).to_contain_text("attention in all layers off")
    change.locator("#change-both").click()
    expect(change.locator("#change-parted")).to_contain_text(
        re.compile(r"attention in all layers off, the texts diverge")
    )
    expect(change.locator("#change-both")).to_be_enabled()
    expect(change.locator("#change-edited .gb-parted")).to_have_count(1)
    expect(change.locator("#change-again")).to_be_hidden()
    switch(change, 1, 1).click()
    expect(change.locator("#change-stale")).to_contain_text("written with attention in all layers off")
    expect(change.locator("#change-edited .gb-strip")).to_have_css("opacity", "0.45")
    change.locator("#change-again").click()
    expect(change.locator("#change-again")).to_be_hidden()
    expect(change.locator("#change-both")).to_be_enabled()
    change.locator("#change-try-attention-all").click()
    change.locator("#change-python summary").press("Enter")
    expect(change.locator("#change-code pre")).to_have_text(re.compile(r"attn_scale=\{0: 0\.0, 1: 0\.0"))
    change.locator("#change-reset").click()
    change.locator("#change-patch-animals").click()
    expect(says(change, "map")).to_contain_text("“dog” − “cat”")
    change.locator("#change-map .nsewdrag").last.click(position={"x": 20, "y": 30})
    expect(change.locator("#change-cell")).to_contain_text("of the way to")
    change.locator("#change-keep").click()
    expect(lead(change)).to_contain_text("taken from prompt A")
    change.locator("#change-clean textarea").fill("One more token here than there.")
    change.locator("#change-measure").click()
    expect(change.locator("#change-trouble")).to_contain_text("but both need the same number")
