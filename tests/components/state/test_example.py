"""The example of the first screen, prompts that a vocabulary can encode, and what models know."""

from __future__ import annotations

import pytest
import torch

from components.state.example import (
    EXAMPLES,
    encodable_text,
    example,
    first_prompt,
    opening,
    shown_prompt,
)
from components.state.knowledge import fitting_model, is_about_facts, is_known_to, language_of
from gpt import GPT, GPTConfig, LoadedModel, load_model
from gpt.models.checkpoints.vocabularies import Characters, Vocabulary
from gpt.models.sources import HUB_MODELS, MODELS, Corpus, HubModel
from gpt.tokenizer import PlainIds

EXAMPLE_PROMPT = EXAMPLES["en"]["example.story"]
VOCABULARIES = {
    "letters": Characters(sorted(set(EXAMPLE_PROMPT))),
    "some-letters": Characters(list(" acegimnoprtu")),
    "digits": Characters(list("0123456789+=\n")),
    "one-character": Characters(["x"]),
    "ids": PlainIds(61),
}


def tiny(vocabulary: Vocabulary, block_size: int = 8) -> LoadedModel:
    config = GPTConfig(vocabulary.n_vocab, block_size, n_layer=1, n_head=1, n_embd=4)
    return LoadedModel("mine", GPT(config).eval(), vocabulary, torch.device("cpu"), "fp32")


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("block_size", [1, 8, 1024])
def test_every_model_has_an_example_to_open_with(vocabulary: Vocabulary, block_size: int) -> None:
    loaded = tiny(vocabulary, block_size)
    document = example(loaded)
    assert opening(document).prompt == shown_prompt(document) == first_prompt(loaded)
    assert len(document.ids) > document.n_prompt > 0


def test_a_model_that_knows_the_example_opens_with_it_and_a_short_one_with_its_beginning() -> None:
    stories = load_model("stories", device="cpu")
    assert first_prompt(stories) == encodable_text(stories, EXAMPLE_PROMPT) == EXAMPLE_PROMPT
    assert first_prompt(tiny(VOCABULARIES["letters"], 8)) == EXAMPLE_PROMPT[:4]
    alphabet = tiny(Characters(["\n", *"abcdefgh"]), 64)
    assert len(own := first_prompt(alphabet)) > 8
    assert own == first_prompt(alphabet) != encodable_text(alphabet, EXAMPLE_PROMPT)


def test_of_a_text_the_words_stay_that_can_be_spelled() -> None:
    assert encodable_text(tiny(VOCABULARIES["some-letters"]), "Once upon a time, Tom hid") == "upon a"
    assert encodable_text(tiny(VOCABULARIES["ids"]), "give 3 or 60, no 7 99") == "3 7"


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
    for odd in ("Жила-была девочка", "😀😀 😀", "    ", "1 + 1 = 2", "def f(x):\n    return x", "if (a == b) {"):
        assert not is_known_to("stories", odd)
    assert is_known_to("stories", 'Tom had two dogs (and a cat); "Look!" he said')
    assert is_known_to("distilgpt2", "def f(x):")
    assert is_known_to("untrained", "从前有一个小女孩")  # its training texts are unknown
    hebrew = "היה היה פעם ילד"
    assert fitting_model(MODELS, hebrew) is None
    monkeypatch.setitem(HUB_MODELS, "new", HubModel("New", 1, Corpus(("he",))))
    assert fitting_model([*MODELS, "new"], hebrew) == "new"
    assert fitting_model(MODELS, "The capital of France is") == "distilgpt2"
