"""The upload panel for checkpoints in a browser."""

import re

import pytest
import torch
from playwright.sync_api import expect

from tests.browser.playground_page import ONE_MORE, forget_status, open_more_controls, pick, picked, written
from tests.gpt.family_configs import randomized
from tests.parity.reference_models import NanoGPT


@pytest.fixture
def opened(page, site):
    page.goto(site)
    page.locator("#upload button").first.click()
    return page


def choose(page, *files):
    page.locator("#upload-files input[type=file]").set_input_files([str(file) for file in files])
    # The name is there while the file is still sent; the list is there once it has arrived.
    expect(page.locator("#upload-files .file-preview")).to_contain_text(files[0].stem)
    page.locator("#upload-open").click()


def test_what_is_no_checkpoint_is_a_sentence_and_a_bare_state_dict_asks_for_its_heads_then_opens_and_writes(
    opened, tmp_path
):
    broken = tmp_path / "bad.safetensors"
    broken.write_bytes(b"<script>alert(1)</script>" * 10)
    choose(opened, broken)
    expect(opened.locator("#upload-message p")).to_contain_text("bad.safetensors")
    expect(opened.get_by_test_id("toast-body")).to_be_visible()
    expect(picked(opened, "model")).to_have_text(re.compile("Stories"))
    open_more_controls(opened)
    opened.locator("#step").click()
    expect(opened.locator("#status")).to_contain_text(ONE_MORE)
    weights = tmp_path / "mine.pt"
    torch.save(randomized(NanoGPT()).state_dict(), weights)
    opened.locator("#upload-files [aria-label=Clear]").click()
    choose(opened, weights)
    expect(opened.locator("#upload-message")).to_contain_text("neither the number of heads")
    pick(opened, "upload-heads", "2")
    opened.locator("#prompt textarea").fill("3 5 7")
    forget_status(opened)
    opened.locator("#upload-open").click()
    expect(opened.locator("#upload-message")).to_contain_text("2 heads")
    written(opened)
    expect(picked(opened, "model")).to_have_text(re.compile("mine.pt"))
