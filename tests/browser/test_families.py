"""Pictures that depend on a model's blocks appear without errors, for a model with everything that GPT-2 lacks."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from components.page import build_app, launch_options
from gpt import GPT, get_model
from gpt.models.checkpoints.writing import save_model
from tests.browser.playground_page import open_more_controls, open_tab, says, show_step
from tests.gpt.family_configs import FAMILIES, randomized

pytestmark = pytest.mark.thorough

PICTURES = {
    "playground": ("bars [role=option]",),
    "inside": ("path svg",),
    "why": ("why-flow svg",),
    "change": ("change-switches [role=gridcell]",),
    "activations": ("curves .main-svg", "pre-activations .main-svg", "stream-norms .main-svg", "neurons-examples li"),
    "embeddings": ("nearest-tokens .main-svg",),
}


@pytest.fixture(scope="module")
def family_site(serve, tmp_path_factory):
    """Serve a tiny random model with Gemma 3's architecture and the bundled vocabulary."""
    folder, tokenizer = tmp_path_factory.mktemp("gemma"), get_model().tokenizer
    config = replace(FAMILIES["gemma3"], vocab_size=tokenizer.n_vocab, block_size=64)
    save_model(folder, randomized(GPT(config)), tokenizer)
    return serve(build_app(str(folder)), **launch_options())


def test_every_picture_of_the_model_is_drawn(page, family_site):
    def see(pictures):
        for picture in pictures:
            expect(page.locator(f"#{picture}").first).to_be_visible()

    page.goto(family_site)
    open_more_controls(page)
    for name, pictures in PICTURES.items():
        open_tab(page, name)
        see(pictures)
        if name == "inside":
            show_step(page, "All heads")
            see(("flow canvas", "heads canvas", "stages canvas"))
            expect(page.locator("#flow-family")).to_contain_text("each neuron has a gate")
            expect(says(page, "flow")).not_to_be_empty()
            page.locator("#follow").click()
            film = page.locator("dialog.gb-film")
            for _ in range(12):
                film.get_by_role("button", name="Next", exact=True).click()
            page.keyboard.press("Escape")
            expect(film).to_be_hidden()
    expect(page.locator(".toast-body")).to_have_count(0)
