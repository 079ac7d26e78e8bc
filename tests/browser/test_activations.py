"""The Activations tab in a browser."""

from playwright.sync_api import expect

from tests.browser.playground_page import CHIPS, open_playground, pick, says, set_slider


def test_the_functions_follow_x_the_histogram_the_layer_and_the_swap_the_choice_and_the_selected_token(stay, site):
    page = stay(lambda page: open_playground(page, site))
    page.locator(CHIPS).first.click()
    name = page.locator(CHIPS).first.text_content().strip()
    page.get_by_role("tab", name="Activations").click()
    expect(says(page, "curves")).to_contain_text("GELU (tanh) 0.8412")
    set_slider(page, "activation-x", -1)
    expect(says(page, "curves")).to_contain_text("GELU (tanh) −0.1588")
    pick(page, "activation-layer", "2")
    expect(says(page, "pre-activations")).to_contain_text("Layer 2")
    swapped = says(page, "activation-swapped")
    expect(swapped).to_contain_text(name)
    page.locator("#activation-swap").get_by_text("SiLU").click()
    expect(swapped).to_contain_text("SiLU")
