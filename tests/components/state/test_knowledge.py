"""Which texts a model was trained on, and which model was trained on others."""

from __future__ import annotations

import pytest

from components.state.knowledge import fitting_model, is_about_facts, is_known_to, language_of
from gpt.models.sources import HUB_MODELS, MODELS, Corpus, HubModel


@pytest.mark.parametrize(
    ("text", "language"),
    [("Once upon a time, there was a dog", "en"), ("", "en"), ("Lily", "en"), ("从前有一个小女孩", "zh"),
     ("むかしむかし、あるところに", "ja"), ("Жила-была девочка", "ru"), ("Il était une fois un petit chat qui", "fr"),
     ("Es war einmal ein kleines Mädchen und die Katze", "de"), ("Había una vez un perro que no", "es")],
)  # fmt: skip
def test_the_language_is_told_by_its_letters_or_its_common_words(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "is_fact"),
    [("The capital of France is", True), ("Who wrote Hamlet?", True), ("How many legs has a spider?", True),
     ("Albert Einstein was born in", True), ("Once upon a time there was a girl", False),
     ('"What is that?" asked Tom. He looked at the', False), ("Where is my ball", False)],
)  # fmt: skip
def test_a_question_of_fact_is_not_a_story(text: str, is_fact: bool) -> None:
    assert is_about_facts(text) == is_fact


def test_a_model_that_is_added_with_its_languages_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_known_to("stories", "Tom had a dog")
    assert not is_known_to("stories", "The capital of France is")
    assert not is_known_to("stories", "Жила-была девочка")
    assert is_known_to("untrained", "从前有一个小女孩")  # its training texts are unknown
    hebrew = "היה היה פעם ילד"
    assert fitting_model(MODELS, hebrew) is None
    monkeypatch.setitem(HUB_MODELS, "new", HubModel("New", 1, Corpus(("he",))))
    assert fitting_model([*MODELS, "new"], hebrew) == "new"
    assert fitting_model(MODELS, "The capital of France is") == "distilgpt2"
