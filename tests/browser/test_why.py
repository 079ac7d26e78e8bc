"""Causes in a browser: all tabs share one selection, and every card belongs to it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import open_playground, open_tab, set_run
from tests.browser.playground_page import pick as choose_model

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


def pick(page, name, n):
    """Pick the n-th choice of a list."""
    page.locator(f"#why-{name} select").select_option(index=n)


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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_another_token_the_method_the_order_and_the_role_answer_in_place(why):
    ask(why, 9)
    flow = why.locator("#why-flow")
    flow.get_by_role("button", name=re.compile("Switch off layer")).last.press("Enter")
    expect(flow.locator("[aria-live]")).to_contain_text(
        re.compile(r"^Without layer \d+.*, “could” (goes from|stays at) .*\d+%")
    )
    flow.get_by_role("button", name="Switch everything back on").click()
    expect(flow.locator("[aria-pressed=true]")).to_have_count(0)
    expect(says(why, "parts")).not_to_contain_text(" minus that of ")
    pick(why, "against", 1)
    expect(says(why, "parts")).to_contain_text(" minus that of ")
    pick(why, "token", 4)
    expect(why.locator("#why-lead")).to_contain_text("The most likely token is")
    hidden = says(why, "influence").text_content()
    choose(why, "method", "gradient")
    expect(why.locator("#why-method-says")).to_contain_text("would fall")
    expect(says(why, "influence")).not_to_have_text(hidden)
    choose(why, "method", "hidden")
    ask(why, 0)
    expect(says(why, "parts")).not_to_contain_text(" minus that of ")
    expect(why.locator("#why-trouble")).to_contain_text("nothing can be hidden")
    choose(why, "method", "gradient")
    expect(why.locator("#why-method-says")).to_contain_text("would fall")
    choose(why, "order", "layer")
    expect(why.locator("#why-parts")).to_contain_text("heads together")
    choose(why, "sample", "noise")
    choose(why, "role", "induction")
    expect(says(why, "roles")).to_contain_text("on 101 tokens")
    expect(why.locator("#why-role-says")).to_contain_text("“A B … A”, the second A attends to B")


@pytest.mark.thorough
def test_watched_tokens_are_chosen_or_typed_and_stay_at_another_position(why):
    ask(why, 5)
    options = why.locator("#why-watch datalist option").all_text_contents()
    likely = next(option for option in options if "was" not in option)  # the next token is plotted anyway
    for word in (likely, "girl", "boy"):
        why.locator("#why-watch input").fill(word)
        why.locator("#why-watch input").press("Enter")
    names = why.locator("#why-path .legendtext")
    why.locator("#why-path .gb-plot").scroll_into_view_if_needed()
    expect(names).to_have_count(4)
    ask(why, 6)
    why.locator("#why-path .gb-plot").scroll_into_view_if_needed()
    expect(names.filter(has_text=re.compile("girl|boy"))).to_have_count(2)
    chips = why.locator("#why-watch .gb-entry")
    expect(chips).to_have_count(3)
    for left in (2, 1, 0):
        chips.first.click()
        expect(chips).to_have_count(left)
    expect(why.locator("#why-path .gb-note")).to_be_empty()


@pytest.mark.thorough
def test_a_choice_stays_marked_while_the_server_answers_an_earlier_one(why):
    ask(why, 9)
    why.evaluate(
        """() => {
          window.unmarked = [];
          const look = () => {
            for (const name of ["method", "order", "role"]) {
              if (document.querySelectorAll(`#why-${name} .selected`).length !== 1) window.unmarked.push(name);
            }
          };
          const evidence = document.querySelector("#why-evidence");
          new MutationObserver(look).observe(evidence, { subtree: true, attributes: true });
          for (const value of ["gradient", "layer", "induction"]) evidence.querySelector(`[value=${value}]`).click();
        }"""
    )
    expect(why.locator("#why-method-says")).to_contain_text("would fall")
    expect(why.locator("#why-role-says")).to_contain_text("“A B … A”, the second A attends to B")
    assert why.evaluate("window.unmarked") == []
    for name, value in (("method", "gradient"), ("order", "layer"), ("role", "induction")):
        expect(why.locator(f"#why-{name} input[value={value}]")).to_be_checked()
    for name, value in (("method", "gradient"), ("order", "size"), ("role", "previous_token")):
        choose(why, name, value)
