"""The Activations tab in a browser."""

from playwright.sync_api import expect

from tests.browser.playground_page import CHIPS, generate, open_playground, pick, says, set_slider


def test_the_functions_follow_x_and_the_histogram_follows_the_text_and_the_layer(stay, site):
    page = stay(lambda page: open_playground(page, site))
    generate(page, "The dog ran", length=2)
    page.get_by_role("tab", name="Activations").click()
    expect(says(page, "curves")).to_contain_text("GELU (tanh) 0.8412")
    set_slider(page, "activation-x", -1)
    expect(says(page, "curves")).to_contain_text("GELU (tanh) −0.1588")
    expect(says(page, "pre-activations")).to_contain_text("from 5 tokens")
    pick(page, "activation-layer", "2")
    expect(says(page, "pre-activations")).to_contain_text("Layer 2")


def test_the_swapped_activation_follows_the_choice_and_the_selected_token(stay, site):
    page = stay(lambda page: open_playground(page, site))
    page.get_by_role("tab", name="Playground").click()
    page.locator(CHIPS).first.click()
    name = page.locator(CHIPS).first.text_content().strip()
    page.get_by_role("tab", name="Activations").click()
    swapped = says(page, "activation-swapped")
    expect(swapped).to_contain_text(name)
    page.locator("#activation-swap").get_by_text("SiLU").click()
    expect(swapped).to_contain_text("SiLU")
