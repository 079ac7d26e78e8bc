"""The upload panel for checkpoints in a browser."""

import re

import pytest
import torch
from playwright.sync_api import expect

from components.page import build_app, launch_options
from gpt import get_model
from tests.browser.playground_page import ONE_MORE, forget_status, pick, picked, written
from tests.conftest import randomized
from tests.parity.reference_models import NanoGPT
from tests.parity.separate_qkv_models import LectureGPT, OldMinGPT

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def url(serve):
    return serve(build_app(uploads=True), **launch_options(uploads=True))


@pytest.fixture
def opened(page, url):
    page.goto(url)
    page.locator("#upload button").first.click()
    return page


def choose(page, *files):
    page.locator("#upload-files input[type=file]").set_input_files([str(file) for file in files])
    expect(page.locator("#upload-files")).to_contain_text(files[0].stem)  # the extension may be a separate element
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


def test_names_that_are_not_known_are_a_table_to_confirm_then_the_model_opens_with_the_chosen_activation(
    opened, tmp_path
):
    weights = tmp_path / "habit.pt"
    torch.save(randomized(OldMinGPT()).state_dict(), weights)
    choose(opened, weights)
    row = opened.locator("#upload-names tr", has_text="attn.q")
    expect(row).to_contain_text("blocks.{n}.attn.query")
    expect(opened.locator("#upload-message")).to_contain_text("If it is correct, open the files again")
    expect(opened.get_by_test_id("toast-body")).to_have_count(0)
    expect(picked(opened, "upload-activation")).to_have_text("GELU (erf)")
    pick(opened, "upload-heads", "3")
    pick(opened, "upload-activation", "ReLU")
    opened.locator("#prompt textarea").fill("3 5 7")
    forget_status(opened)
    opened.locator("#upload-open").click()
    expect(opened.locator("#upload-message")).to_contain_text("3 heads")
    expect(row).to_have_count(0)
    written(opened)
    assert get_model("habit.pt").model.config.activation == "relu"


def test_a_text_decides_between_two_scales_and_the_model_opens_with_the_chosen_one(opened, tmp_path):
    weights = tmp_path / "lecture.pt"
    torch.save(randomized(LectureGPT()).state_dict(), weights)
    choose(opened, weights)
    expect(opened.locator("#upload-message")).to_contain_text("the files do not show which")
    opened.locator("#upload-trial textarea").fill("3 5 7 3 5 7 3 5 7")
    expect(opened.locator("#upload-scale")).to_contain_text(re.compile(r"√8, .*loss \d\.\d+ nats.*√24, .*loss \d"))
    expect(opened.locator("#upload-scale input:checked")).to_have_count(1)
    opened.locator("#upload-scale").get_by_text("√24").click()
    opened.locator("#prompt textarea").fill("3 5 7")
    forget_status(opened)
    opened.locator("#upload-open").click()
    expect(opened.locator("#upload-message")).to_contain_text("3 heads")
    written(opened)
    assert get_model("lecture.pt").model.config.attn_scale == 24**-0.5
