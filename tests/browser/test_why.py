"""Causes in a browser: all tabs share one selection, and every card belongs to it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab, set_run
from tests.browser.playground_page import pick as choose_model

pytestmark = pytest.mark.thorough

CHIPS = ".gb-strip [role=option]"


@pytest.fixture
def why(stay, site):
    """A shared page with this tab open. Each test selects its own token with `ask`, and ends in this tab."""

    def begin(page):
        open_playground(page, site)
        open_why(page)

    return stay(begin)


def open_why(page):
    open_tab(page, "why")
    if not page.locator("#why-strip").is_visible():
        page.locator("#why-evidence > summary").click()
    expect(page.locator("#why-roles .main-svg").first).to_be_visible()
    expect(says(page, "head")).to_contain_text("attends most to")


def ask(page, position):
    """Select a token and wait until every card belongs to it."""
    page.locator(f"#why-strip {CHIPS}").nth(position).click()
    about(page, position)


def about(page, position):
    chip = page.locator(f"#why-strip {CHIPS}").nth(position)
    expect(chip).to_have_attribute("aria-selected", "true")
    expect(says(page, "head")).to_contain_text(f"“{chip.text_content().removeprefix(' ')}” attends most to")


def says(page, name):
    return page.locator(f"#why-{name} .gb-says")


def choose(page, name, value):
    page.locator(f"#why-{name} input[value={value}]").click()


def click_cell(page, name, column, row):
    """Click the centre of a map's cell."""
    plot = f"document.querySelector('#why-{name} .gb-plot')"
    page.wait_for_function(
        f"n => {plot}._fullLayout?.xaxis.range[0] < n && n < {plot}._fullLayout.xaxis.range[1]", arg=column
    )
    columns, rows = (
        page.locator(f"#why-{name} .gb-plot").evaluate("(plot, axis) => plot._fullLayout[axis].range", axis)
        for axis in ("xaxis", "yaxis")
    )
    area = page.locator(f"#why-{name} .nsewdrag").last
    box = area.bounding_box()
    x = (column - columns[0]) / (columns[1] - columns[0]) * box["width"]
    y = (row - rows[1]) / (rows[0] - rows[1]) * box["height"]  # the range starts at the bottom
    area.hover(position={"x": x, "y": y})
    expect(page.locator(f"#why-{name} .hoverlayer > *").first).to_be_attached()
    page.mouse.down()
    page.mouse.up()


def test_the_tab_answers_about_the_example_as_soon_as_it_opens_and_follows_model_and_language(page, site):
    open_playground(page, site)
    set_run(page, 12)  # another model regenerates the text
    open_why(page)
    expect(page.locator("#why-lead")).to_contain_text(re.compile(r"the model gives .* \d+%"))
    for name in ("influence", "lens", "cell", "path", "parts", "heads"):
        expect(says(page, name)).not_to_be_empty()
    assert page.locator(f"#why-strip {CHIPS}").count() == page.locator(f"#strip {CHIPS}").count()
    choose_model(page, "model", re.compile("^Untrained"))
    expect(page.locator("#why-lead")).to_contain_text("under 1%")
    page.get_by_text("中文", exact=True).click()
    expect(says(page, "parts")).to_contain_text("加起来是")
    expect(page.locator("#why-lead")).to_contain_text("模型认为")
    open_tab(page, "playground", "zh")
    page.locator("#clear").click()
    expect(page.locator("#prompt textarea")).to_have_value("")
    open_tab(page, "why", "zh")
    expect(page.locator("#why-because")).to_contain_text("前面没有词可以回看")


def test_tokens_cells_and_heads_are_selected_in_every_tab(why):
    ask(why, 0)
    expect(says(why, "lens")).to_contain_text("At “It”, the final top token")
    click_cell(why, "lens", 4, 2)
    expect(says(why, "cell")).to_contain_text("In layer 2 after feed-forward")
    about(why, 4)
    choose(why, "stage", "resid_mid")
    expect(says(why, "cell")).to_contain_text("In layer 2 after attention")
    click_cell(why, "heads", 2, 7)
    expect(says(why, "head")).to_contain_text("In layer 7 (head 2)")
    click_cell(why, "roles", 1, 4)
    expect(says(why, "head")).to_contain_text("In layer 4 (head 1)")
    open_tab(why, "playground")
    expect(why.locator(f"#strip {CHIPS}").nth(4)).to_have_attribute("aria-selected", "true")
    expect(why.locator("#layer select")).to_have_value("4")
    expect(why.locator("#head select")).to_have_value("1")
    expect(why.locator("#heatmap .gb-says")).to_contain_text("In layer 4 (head 1)")
    why.locator(f"#strip {CHIPS}").nth(7).click()
    open_why(why)
    about(why, 7)
