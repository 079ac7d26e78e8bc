"""The Why tab in a browser: one selection for every tab, and every card answers about it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import forget_status, open_playground, written
from tests.browser.playground_page import pick as choose_model

CHIPS = ".gb-strip [role=option]"


@pytest.fixture
def why(stay, site):
    """One page for most tests, with this tab open: each begins with a token of its own (`ask`) and ends in this tab."""

    def begin(page):
        open_playground(page, site)
        open_tab(page)

    return stay(begin)


def open_tab(page, name="Why?"):
    page.get_by_role("tab", name=name, exact=True).click()
    if name == "Why?":
        expect(page.locator("#why-roles .main-svg").first).to_be_visible()
        expect(says(page, "head")).to_contain_text("looked most at")


def ask(page, position):
    """Choose a token, and wait until every card is about it."""
    page.locator(f"#why-strip {CHIPS}").nth(position).click()
    about(page, position)


def about(page, position):
    expect(page.locator("#why-lead")).to_contain_text(f"position {position},")
    chip = page.locator(f"#why-strip {CHIPS}").nth(position)
    expect(chip).to_have_attribute("aria-selected", "true")
    expect(says(page, "head")).to_contain_text(f"“{chip.text_content().replace(' ', '·')}” looked most at")


def back(page, position):
    """From the Playground, after another choice there."""
    page.locator(f"#strip {CHIPS}").nth(position).click()
    open_tab(page)
    about(page, position)


def says(page, name):
    return page.locator(f"#why-{name} .gb-says")


def choose(page, name, value):
    page.locator(f"#why-{name} input[value={value}]").click()


def pick(page, name, n):
    """The n-th choice of a list."""
    page.locator(f"#why-{name} input").click()
    page.locator(f"#why-{name} [role=option]").nth(n).click()


def click_cell(page, name, column, row):
    """The middle of a cell of a map."""
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
    y = (row - rows[1]) / (rows[0] - rows[1]) * box["height"]  # the range begins at the bottom
    area.hover(position={"x": x, "y": y})
    expect(page.locator(f"#why-{name} .hoverlayer > *").first).to_be_attached()
    page.mouse.down()
    page.mouse.up()


def test_the_tab_answers_about_the_example_as_soon_as_it_opens_and_follows_model_and_language(page, site):
    why = page
    open_playground(page, site)
    open_tab(page)
    expect(why.locator("#why-lead")).to_contain_text(re.compile(r"the model gave .* rank 1 of 4,096"))
    for name in ("influence", "lens", "cell", "path", "parts", "heads"):
        expect(says(why, name)).not_to_be_empty()
    expect(says(why, "parts")).to_contain_text(", the logit of “")
    expect(why.locator("#why-parts .gb-note")).to_contain_text("frozen")
    assert why.locator(f"#why-strip {CHIPS}").count() == why.locator(f"#strip {CHIPS}").count()
    forget_status(why)
    choose_model(why, "model", re.compile("^Untrained"))
    expect(why.locator("#why-lead")).to_contain_text(re.compile(r"gave .* 0\.\d+\s%"))
    written(why)
    why.get_by_text("中文", exact=True).click()
    expect(says(why, "parts")).to_contain_text("合计")
    expect(why.locator("#why-lead")).to_contain_text("名")
    expect(says(why, "head")).not_to_contain_text("looked most at")
    open_tab(why, "试验台")
    why.locator("#clear").click()
    expect(why.locator(f"#strip {CHIPS}")).to_have_count(0)
    open_tab(why, "为什么")
    expect(why.locator("#why-lead")).to_contain_text("还没有文本")
    expect(why.locator("#why-lens .gb-chart")).to_be_hidden()
    expect(why.locator(".gb-card:visible")).to_have_count(1)  # none that has only a title


def test_a_token_clicked_here_is_selected_in_the_playground_and_the_other_way_round(why):
    ask(why, 12)
    expect(why.locator("#why-lead")).to_contain_text("what the text goes on with")
    expect(says(why, "lens")).to_contain_text("Shown: positions")
    open_tab(why, "Playground")
    expect(why.locator(f"#strip {CHIPS}").nth(12)).to_have_attribute("aria-selected", "true")
    expect(why.locator("#bars .gb-says")).to_contain_text("Entropy")
    before = why.locator("#bars .gb-says").text_content()
    why.locator(f"#strip {CHIPS}").nth(5).click()
    expect(why.locator("#bars .gb-says")).not_to_have_text(before)
    open_tab(why)
    about(why, 5)


def test_a_cell_of_the_lens_opens_and_selects_its_position(why):
    ask(why, 0)
    expect(says(why, "lens")).to_contain_text("positions 0 to 15")
    click_cell(why, "lens", 4, 2)
    expect(says(why, "cell")).to_contain_text("In layer 2 after feed-forward")
    about(why, 4)
    choose(why, "stage", "resid_mid")
    expect(says(why, "cell")).to_contain_text("In layer 2 after attention")
    choose(why, "stage", "resid_post")
    expect(says(why, "cell")).to_contain_text("In layer 2 after feed-forward")


def test_a_head_clicked_in_a_map_is_open_in_every_tab(why):
    click_cell(why, "heads", 2, 7)
    expect(says(why, "head")).to_contain_text("Layer 7, head 2:")
    click_cell(why, "roles", 1, 4)
    expect(says(why, "head")).to_contain_text("Layer 4, head 1:")
    open_tab(why, "Playground")
    expect(why.locator("#layer input")).to_have_value("4")
    expect(why.locator("#head input")).to_have_value("1")
    expect(why.locator("#heatmap .gb-says")).to_contain_text("Layer 4, head 1:")
    back(why, 7)


def test_another_token_and_one_against_it_change_the_sum(why):
    ask(why, 9)
    expect(says(why, "parts")).not_to_contain_text(" less that of ")
    pick(why, "against", 1)
    expect(says(why, "parts")).to_contain_text(" less that of ")
    of_the_best = says(why, "parts").text_content()
    pick(why, "token", 4)
    expect(why.locator("#why-lead")).to_contain_text("rank 5 of")
    expect(why.locator("#why-lead")).to_contain_text("Its best guess was")
    expect(says(why, "parts")).not_to_have_text(of_the_best)
    ask(why, 3)
    expect(says(why, "parts")).not_to_contain_text(" less that of ")


def test_leaving_tokens_out_and_the_switches_answer_in_place(why):
    ask(why, 6)
    gradient = says(why, "influence").text_content()
    choose(why, "method", "left_out")
    expect(why.locator("#why-method-says")).to_contain_text("really falls")
    expect(says(why, "influence")).not_to_have_text(gradient)
    expect(says(why, "influence")).to_contain_text("nats")
    ask(why, 0)
    expect(why.locator("#why-trouble")).to_contain_text("nothing can be left out")
    choose(why, "method", "gradient")
    expect(why.locator("#why-method-says")).to_contain_text("would fall")
    choose(why, "order", "layer")
    expect(why.locator("#why-parts")).to_contain_text("heads together")
    choose(why, "order", "size")
    expect(why.locator("#why-parts")).not_to_contain_text("heads together")
    choose(why, "sample", "noise")
    choose(why, "role", "induction")
    expect(says(why, "roles")).to_contain_text("Measured on 101 tokens")
    expect(why.locator("#why-role-says")).to_contain_text("looks at B")
    choose(why, "sample", "text")
    choose(why, "role", "previous_token")
    expect(why.locator("#why-role-says")).to_contain_text("the token just before")
    expect(says(why, "roles")).not_to_contain_text("Measured on 101 tokens")


def test_nothing_scrolls_sideways_on_a_phone_in_either_theme(why):
    why.set_viewport_size({"width": 390, "height": 844})
    for _ in range(2):
        why.wait_for_function("document.documentElement.scrollWidth <= 390")
        why.locator("#theme").click()
    why.set_viewport_size({"width": 1280, "height": 900})
