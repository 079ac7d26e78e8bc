"""Every tab on a model with what GPT-2 has not: it opens without an error, and its pictures are there."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from components.page import build_app, launch_options
from gpt import GPT, get_model
from gpt.models.checkpoints.writing import save_model
from tests.browser.playground_page import says
from tests.conftest import randomized
from tests.gpt.family_configs import FAMILIES

PICTURES = {
    "Playground": ("heatmap .main-svg", "bars [role=option]"),
    "Inside": ("flow canvas", "heads canvas"),
    "One head": ("stages canvas", "lines canvas"),
    "Stream and neurons": ("stream-norms .main-svg", "neurons .main-svg"),
    "Embeddings": ("nearest-tokens .main-svg",),
    "Why?": ("why-flow svg",),
    "Change it": ("change-switches [role=gridcell]",),
    "Compare": ("compare-length",),
    "Activations": ("curves .main-svg", "pre-activations .main-svg"),
    "Train": ("train-heads canvas",),
    "Lessons": ("lesson-head",),
    "Challenges": ("challenge-head",),
    "Tools": ("shape-parts .main-svg", "shape-stages .main-svg"),
}


@pytest.fixture(scope="module")
def family_site(serve, tmp_path_factory):
    """The page of a tiny random model of Gemma 3's architecture, with the bundled vocabulary."""
    folder, tokenizer = tmp_path_factory.mktemp("gemma"), get_model().tokenizer
    config = replace(FAMILIES["gemma3"], vocab_size=tokenizer.n_vocab, block_size=64)
    save_model(folder, randomized(GPT(config)), tokenizer)
    return serve(build_app(str(folder)), **launch_options())


def test_every_tab_opens_with_its_pictures(page, family_site):
    page.goto(family_site)
    for name, pictures in PICTURES.items():
        page.get_by_role("tab", name=name, exact=True).click()
        for picture in pictures:
            expect(page.locator(f"#{picture}").first).to_be_visible()
        if name == "Inside":
            expect(page.locator("#flow-family")).to_contain_text("each neuron has a gate")
            expect(says(page, "flow")).not_to_be_empty()
            page.locator("#follow").click()
            for _ in range(16):
                page.locator("#film .gb-film-forward").click()
            expect(page.locator("#film output")).to_have_text("17 of 17")
            page.locator("#film .gb-film-close").click()
    expect(page.locator(".toast-body")).to_have_count(0)
