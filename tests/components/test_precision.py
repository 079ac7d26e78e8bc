"""What the page says of a reduced precision."""

import pytest

from components.page import build_app
from components.precision import build_precision, note
from gpt import get_model
from gpt.models.precision_error import precision_error
from gpt.models.registry import configure


@pytest.fixture
def reduced():
    configure(precision="bf16")
    yield
    configure()


def test_exact_numbers_need_no_word(built_page):
    assert build_precision(get_model()) is None
    assert note("stories", "en") == ""
    assert not [block for block in built_page.blocks.values() if getattr(block, "elem_id", None) == "precision"]


def test_numbers_that_are_not_exact_say_by_how_much(reduced):
    line = build_precision(get_model())
    error = precision_error(get_model())
    assert "bf16" in line.value
    assert f"{error.kl:.2g} bits" in line.value
    assert f"{error.logit:.2g}" in note("stories", "zh")
    assert note("no such model", "en") == ""
    assert [block for block in build_app().blocks.values() if getattr(block, "elem_id", None) == "precision"]


def test_what_cannot_be_measured_is_said(reduced, monkeypatch):
    get_model()
    monkeypatch.setattr("gpt.models.checkpoints.checkpoint.free_memory", lambda: 1000)
    assert "could not be measured" in note("stories", "en")
