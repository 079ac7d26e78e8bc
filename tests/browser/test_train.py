"""The Train tab in a browser: a run from its start to its text in Write, and rejected inputs."""

import re

import pytest
from playwright.sync_api import expect

from gpt.training.data import TASKS, TaskDataset
from tests.browser.playground_page import open_playground, open_tab, picked

pytestmark = pytest.mark.thorough

PATIENT = 120_000  # milliseconds
CHIPS = "#strip .gb-strip [role=option]"
EXAMPLE = TaskDataset(TASKS["reverse"]).test_examples[0]


@pytest.fixture(scope="module", autouse=True)
def hurry():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpt.training.live_run.N_EVALUATIONS", 5)
        yield


@pytest.fixture
def train(stay, site):
    page = stay(lambda page: begin(page, site))
    open_tab(page, "train")
    expect(page.locator("#scaling-tokens .main-svg").first).to_be_visible()
    return page


def begin(page, address):
    open_playground(page, address)
    open_tab(page, "train")
    page.locator("#train-settings > summary").click()


def choose(page, name, value):
    page.locator(f"#train-{name}").get_by_text(value, exact=True).click()


def set_number(page, name, value):
    box = page.locator(f"#train-{name} input[type=number]")
    box.fill(str(value))
    box.press("Tab")


def test_a_model_learns_is_looked_back_at_and_opens_in_the_playground(train):
    choose(train, "task", "Reverse")
    expect(train.locator("#train-about")).to_contain_text("in reverse")
    choose(train, "n-embd", "32")
    set_number(train, "steps", 50)
    train.locator("#train-start").click()
    expect(train.locator("#train-curve .main-svg").first).to_be_in_viewport(ratio=1)
    expect(train.locator("#train-status")).to_contain_text("Finished after 50 steps", timeout=PATIENT)
    says, samples = train.locator("#train-curve .gb-says"), train.locator("#train-samples tr")
    expect(says).to_contain_text("At step 50, the loss is")
    expect(samples).to_have_count(5)
    expect(samples.nth(1)).to_contain_text(re.compile(f"{EXAMPLE.prompt}.*{EXAMPLE.answer.strip()}.*(✓ right|✗ wrong)"))
    expect(train.locator("#train-heatmap .gb-says")).to_contain_text("At step 50, ")
    assert train.locator("#train-player output").text_content() == "step 50 of 50"
    train.locator("#train-player input").press("Home")
    expect(says).to_contain_text("At step 0, the loss is")
    expect(train.locator("#train-samples-says")).to_contain_text("At step 0, 0 of these 4")
    expect(train.locator("#train-flow .gb-says")).to_contain_text("In layer ")
    train.locator("#train-heads .gb-heads-grid").press("End")  # a key that the grid does not handle
    train.locator("#train-heads .gb-heads-grid").press("Enter")
    expect(train.locator("#train-heatmap .gb-says")).to_contain_text("At step 0, ")
    train.locator("#train-player button").click()
    expect(says).to_contain_text("At step 50, the loss is")
    with train.expect_download() as download:
        train.locator("#train-download").click()
    assert download.value.suggested_filename == "reverse.zip"
    train.locator("#train-open").click()
    expect(picked(train, "model")).to_have_text("Reverse · trained by you")
    expect(train.locator("#status")).to_contain_text(re.compile("length reached|context is full"))
    assert "".join(train.locator(CHIPS).all_text_contents()).startswith(EXAMPLE.prompt)
