"""The Activations tab in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import CHIPS, open_playground, open_tab, says, set_slider


@pytest.mark.thorough
def test_the_functions_follow_x_the_histogram_the_layer_and_the_swap_the_choice_and_the_selected_token(stay, site):
    page = stay(lambda page: open_playground(page, site))
    page.locator(CHIPS).first.click()
    name = page.locator(CHIPS).first.text_content().strip()
    open_tab(page, "activations")
    expect(says(page, "curves")).to_contain_text("GELU (tanh) is 0.8412")
    set_slider(page, "activations-x", -1)
    expect(says(page, "curves")).to_contain_text("GELU (tanh) is −0.1588")
    page.locator("#activations-layer").get_by_role("combobox").select_option("2")
    expect(says(page, "pre-activations")).to_contain_text("Layer 2")
    swapped = says(page, "activation-swapped")
    expect(swapped).to_contain_text(name)
    page.get_by_role("radio", name="SiLU").check()
    expect(swapped).to_contain_text("SiLU")


def test_of_several_quick_actions_in_a_card_none_is_lost(stay, site):
    page = stay(lambda page: open_playground(page, site))
    open_tab(page, "activations")
    expect(says(page, "activation-swapped")).not_to_be_empty()
    page.evaluate(
        """() => {
          const set = (box, value) => {
            box.value = value;
            box.dispatchEvent(new Event(box.localName === "select" ? "change" : "input"));
          };
          for (const x of [0.5, 3, -2]) set(document.querySelector("#activations-x input[type=number]"), x);
          document.querySelectorAll("#activations-swap input")[1].click();
          set(document.querySelector("#activations-layer select"), "1");
          set(document.querySelector("#activations-x input[type=number]"), 2);
        }"""
    )
    expect(says(page, "curves")).to_contain_text("x = 2.00")
    expect(says(page, "pre-activations")).to_contain_text("Layer 1")
    expect(page.locator("#activations-x input[type=range]")).to_have_value("2")
