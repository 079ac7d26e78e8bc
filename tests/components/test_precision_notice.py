"""The page's notice about reduced precision."""

from dataclasses import replace

import pytest

from components.page import build_app
from components.precision_notice import measured, notice
from components.render import Renderer
from components.state.session import Session
from gpt import Generation, get_model
from gpt.errors import GPTError
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.precision_error import precision_error
from gpt.models.registry import configure
from tests.components.drawing import compute_now, spoken_in


@pytest.fixture
def reduced():
    configure(precision="half")
    yield
    configure()


def said(model: str, language: str = "en") -> str:
    session = Session(None, language=language)
    session.loaded = get_model(model)
    compute_now(session, measured)
    return spoken_in(language, notice, session.snapshot())


def test_exact_numbers_need_no_word():
    assert said("stories") == ""


def test_a_vocabulary_that_cannot_be_read_is_said():
    loaded = get_model()
    problem = GPTError("vocabulary.parts", "{file} lacks parts", file="a.json")
    loaded = replace(loaded, tokenizer=PlainIds(loaded.tokenizer.n_vocab, problem))
    session = Session(Generation(loaded, [1, 2]), language="en")
    assert "shown as ids: a.json lacks parts." in notice(session.snapshot())


def test_the_bits_of_quantised_weights_are_said():
    session = Session(Generation(replace(get_model(), stored_as="Q4_K"), [1, 2]), language="en")
    assert notice(session.snapshot()) == (
        "Most weights of this model were stored in 4 bits (Q4_K); they are computed in fp32."
    )


@pytest.mark.thorough
def test_numbers_that_are_not_exact_say_by_how_much(reduced, monkeypatch):
    error = precision_error(get_model())
    assert any(f"half ({name})" in said("stories") for name in ("bfloat16", "float16"))
    assert f"{error.kl:.2g} bits" in said("stories")
    assert f"{error.logit:.2g}" in said("stories", "zh")
    frames = []
    build = Renderer.build
    monkeypatch.setattr(Renderer, "build", lambda self, session: frames.append(build(self, session)) or frames[0])
    build_app()
    assert f"{error.kl:.2g} bits" in frames[0]  # part of the initial page


def test_what_cannot_be_measured_is_said(reduced, monkeypatch):
    get_model()
    monkeypatch.setattr("gpt.models.checkpoints.checkpoint.free_memory", lambda: 1000)
    assert "could not be measured" in said("stories")
