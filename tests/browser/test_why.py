"""The Why tab in a browser: one selection for every tab, and every card answers about it."""

import re

import pytest
from playwright.sync_api import expect

from components.layout import build_app, launch_options

CHIPS = ".gb-strip [role=option]"


@pytest.fixture(scope="module")
def url(serve):
    return serve(build_app(), **launch_options())


@pytest.fixture
def why(page, url):
    page.goto(url)
    expect(page.locator("#bars .main-svg").first).to_be_visible()
    open_tab(page)
    return page


def open_tab(page, name="Why?"):
    page.get_by_role("tab", name=name, exact=True).click()
    if name == "Why?":
        expect(page.locator("#why-roles .main-svg").first).to_be_visible()
        expect(says(page, "head")).to_contain_text("looked most at")


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
    columns, rows = (
        page.locator(f"#why-{name} .gb-plot").evaluate("(plot, axis) => plot._fullLayout[axis].range", axis)
        for axis in ("xaxis", "yaxis")
    )
    area = page.locator(f"#why-{name} .nsewdrag").last
    box = area.bounding_box()
    x = (column - columns[0]) / (columns[1] - columns[0]) * box["width"]
    y = (row - rows[1]) / (rows[0] - rows[1]) * box["height"]  # the range begins at the bottom
    area.click(position={"x": x, "y": y})


def selected(page, strip):
    chip = page.locator(f"#{strip} [aria-selected=true]")
    return chip.evaluate("chip => [...chip.parentNode.children].indexOf(chip)")


def test_the_tab_answers_about_the_example_as_soon_as_it_opens(why):
    expect(why.locator("#why-lead")).to_contain_text(re.compile(r"the model gave .* rank 1 of 4,096"))
    for name in ("influence", "lens", "cell", "path", "parts", "heads"):
        expect(says(why, name)).not_to_be_empty()
    expect(says(why, "parts")).to_contain_text(", the logit of “")
    expect(why.locator("#why-parts .gb-note")).to_contain_text("frozen")
    assert why.locator(f"#why-strip {CHIPS}").count() == why.locator(f"#strip {CHIPS}").count()


def test_a_token_clicked_here_is_selected_in_the_playground_and_the_other_way_round(why):
    why.locator(f"#why-strip {CHIPS}").nth(12).click()
    expect(why.locator("#why-lead")).to_contain_text("position 12,")
    expect(why.locator("#why-lead")).to_contain_text("what the text goes on with")
    expect(says(why, "lens")).to_contain_text("Shown: positions")
    open_tab(why, "Playground")
    expect(why.locator(f"#strip {CHIPS}").nth(12)).to_have_attribute("aria-selected", "true")
    expect(why.locator("#bars .gb-says")).to_contain_text("Entropy")
    before = why.locator("#bars .gb-says").text_content()
    why.locator(f"#strip {CHIPS}").nth(5).click()
    expect(why.locator("#bars .gb-says")).not_to_have_text(before)
    open_tab(why)
    expect(why.locator("#why-lead")).to_contain_text("position 5,")
    assert selected(why, "why-strip") == 5


def test_a_cell_of_the_lens_opens_and_selects_its_position(why):
    why.locator(f"#why-strip {CHIPS}").nth(8).click()
    expect(says(why, "lens")).to_contain_text("positions 0 to 15")
    click_cell(why, "lens", 4, 2)
    expect(says(why, "cell")).to_contain_text("In layer 2 after feed-forward")
    expect(why.locator("#why-lead")).to_contain_text("position 4,")
    assert selected(why, "why-strip") == 4
    choose(why, "stage", "resid_mid")
    expect(says(why, "cell")).to_contain_text("In layer 2 after attention")


def test_a_head_clicked_in_a_map_is_open_in_every_tab(why):
    click_cell(why, "heads", 2, 7)
    expect(says(why, "head")).to_contain_text("Layer 7, head 2:")
    click_cell(why, "roles", 1, 4)
    expect(says(why, "head")).to_contain_text("Layer 4, head 1:")
    open_tab(why, "Playground")
    expect(why.locator("#layer input")).to_have_value("4")
    expect(why.locator("#head input")).to_have_value("1")
    expect(why.locator("#heatmap .gb-says")).to_contain_text("Layer 4, head 1:")


def test_another_token_and_one_against_it_change_the_sum(why):
    logit = says(why, "parts").text_content()
    pick(why, "against", 1)
    expect(says(why, "parts")).to_contain_text(" less that of ")
    pick(why, "token", 4)
    expect(why.locator("#why-lead")).to_contain_text("rank 5 of")
    expect(why.locator("#why-lead")).to_contain_text("Its best guess was")
    assert says(why, "parts").text_content() != logit
    why.locator(f"#why-strip {CHIPS}").nth(3).click()
    expect(says(why, "parts")).not_to_contain_text(" less that of ")


def test_leaving_tokens_out_and_the_switches_answer_in_place(why):
    why.locator(f"#why-strip {CHIPS}").nth(6).click()
    expect(why.locator("#why-lead")).to_contain_text("position 6,")
    gradient = says(why, "influence").text_content()
    choose(why, "method", "left_out")
    expect(why.locator("#why-method-says")).to_contain_text("really falls")
    expect(says(why, "influence")).not_to_have_text(gradient)
    expect(says(why, "influence")).to_contain_text("nats")
    why.locator(f"#why-strip {CHIPS}").first.click()
    expect(why.locator("#why-trouble")).to_contain_text("nothing can be left out")
    choose(why, "order", "layer")
    expect(why.locator("#why-parts")).to_contain_text("heads together")
    choose(why, "sample", "noise")
    choose(why, "role", "induction")
    expect(says(why, "roles")).to_contain_text("Measured on 101 tokens")
    expect(why.locator("#why-role-says")).to_contain_text("looks at B")


def test_the_tab_follows_language_and_model_and_an_empty_page(why):
    why.get_by_text("中文", exact=True).click()
    expect(says(why, "parts")).to_contain_text("合计")
    expect(why.locator("#why-lead")).to_contain_text("名")
    why.get_by_text("EN", exact=True).click()
    expect(why.locator("#why-lead")).to_contain_text("the model gave")
    why.locator("#model input").click()
    why.get_by_role("option", name=re.compile("^Untrained")).click()
    expect(why.locator("#why-status p")).to_be_hidden(timeout=60_000)
    expect(why.locator("#why-lead")).to_contain_text(re.compile(r"gave .* 0\.\d+\s%"), timeout=60_000)
    open_tab(why, "Playground")
    why.locator("#clear").click()
    expect(why.locator(f"#strip {CHIPS}")).to_have_count(0)
    why.get_by_role("tab", name="Why?", exact=True).click()
    expect(why.locator("#why-lead")).to_contain_text("no text to look at")
    expect(why.locator("#why-lens .gb-chart")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_scrolls_sideways_on_a_phone(page, url, theme):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{url}?__theme={theme}&lang=en")
    open_tab(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
