"""The Compare tab in a browser: two columns in lockstep, and a beam search tree that becomes the document."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from components.tabs.compare import beams, columns
from tests.browser.playground_page import open_playground, open_tab

pytestmark = pytest.mark.thorough

CHIPS = ".gb-strip [role=option]"


@pytest.fixture(scope="module", autouse=True)
def hurry():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "TOKENS_PER_SECOND", 1e9)
        patch.setattr(columns, "UPDATE_SECONDS", 0.3)
        patch.setattr(beams, "STEP_SECONDS", 0)
        yield


@pytest.fixture
def compare(stay, site):
    """A shared page on which the columns are side by side and nothing has been generated."""
    page = stay(partial(open_playground, address=site))
    open_tab(page, "compare")
    page.locator("#compare-part label").first.click()
    expect(page.locator("#compare-generate")).to_be_enabled()
    expect(page.locator("#compare-right-bars .gb-says")).to_contain_text("after")
    return page


def test_the_tab_opens_with_an_example_whose_parting_is_marked_in_both_strips_and_one_selection_is_for_both(
    compare,
):
    for side in ("left", "right"):
        expect(compare.locator(f"#compare-{side}-status")).to_contain_text("40 tokens · length reached")
    expect(compare.locator("#compare-left-strip .gb-parted")).to_have_count(1)
    at = compare.locator("#compare-left-strip .gb-parted").evaluate(
        "chip => [...chip.parentNode.children].indexOf(chip)"
    )
    for side in ("left", "right"):
        expect(compare.locator(f"#compare-{side}-strip {CHIPS}").nth(at)).to_have_class(re.compile("gb-parted"))
        expect(compare.locator(f"#compare-{side}-strip .gb-parted")).to_have_count(1)
        chip = compare.locator(f"#compare-{side}-strip {CHIPS}").nth(at - 1)
        expect(chip).to_have_attribute("aria-selected", "true")
    expect(compare.locator("#compare-divergence .gb-says")).to_contain_text(f"Over {at} positions")
    here = compare.locator(f"#compare-left-strip {CHIPS}").nth(5)
    here.click()
    token = here.text_content().strip()
    for side in ("left", "right"):
        expect(compare.locator(f"#compare-{side}-bars .gb-says")).to_contain_text(f"after “{token}”")
    expect(compare.locator(f"#compare-right-strip {CHIPS}").nth(5)).to_have_attribute("aria-selected", "true")


def test_a_way_through_the_tree_becomes_the_document(compare):
    compare.locator("#compare-part label").last.click()
    expect(compare.locator("#beams-chosen")).to_contain_text("ends at step")  # the initial search, of an example
    compare.locator("#compare-prompt textarea").fill("Tom saw a big")
    compare.locator("#beams-search").click()
    expect(compare.locator("#beams-tree .gb-beam-start")).to_contain_text("big")
    expect(compare.locator("#beams-chosen")).to_contain_text("ends at step")
    expect(compare.locator("#beams-tree .gb-best[data-outcome=finished]")).to_have_count(1)
    expect(compare.locator("#beams-table tr")).to_have_count(4)
    first = compare.locator("#beams-tree button.gb-beam").first
    first.focus()
    expect(compare.locator("#beams-tree .gb-tip")).to_contain_text("log-probability")
    first.press("ArrowRight")
    compare.keyboard.press("Enter")
    expect(compare.locator("#beams-chosen")).to_contain_text("ends at step 2")
    for part in ("first", "last"):
        getattr(compare.locator("#compare-part label"), part).click()
    expect(compare.locator("#beams-tree button.gb-picked")).to_have_count(2)
    way = re.search("“(.*)”", compare.locator("#beams-chosen").text_content()).group(1)
    compare.locator("#beams-adopt").click()
    expect(compare.locator("#prompt textarea")).to_have_value(f"Tom saw a big{way.replace('·', ' ')}")
    expect(compare.locator(f"#strip {CHIPS}")).to_have_count(6)
    expect(compare.locator("#strip .gb-strip")).to_have_text(f"Tom saw a big{way.replace('·', ' ')}")
    expect(compare.locator("#strip")).to_be_visible()
