"""The example of the first screen, and prompts that a vocabulary can encode."""

from __future__ import annotations

import pytest
import torch

from components.state.example import (
    EXAMPLES,
    encodable_text,
    example,
    first_prompt,
    initial_prompt,
    opening,
    sharpest_head,
)
from gpt import GPT, Generation, GPTConfig, LoadedModel, load_model
from gpt.models.checkpoints.vocabularies import Characters, PlainIds, Vocabulary
from tests.gpt.fake_models import tiny_model

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
    assert opening(document).prompt == initial_prompt(document) == first_prompt(loaded)
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


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("text", ["", "日本", "x", "5 5"])
def test_what_is_spelled_can_be_read_and_is_left_as_it_is_then(vocabulary: Vocabulary, text: str) -> None:
    loaded = tiny(vocabulary)
    known = encodable_text(loaded, text)
    assert vocabulary.encode(known)
    assert encodable_text(loaded, known) == known


def test_no_text_is_one_where_there_is_an_end_of_text_to_start_from() -> None:
    assert encodable_text(load_model("stories", device="cpu"), "") == ""


def test_the_opening_head_has_the_sharpest_attention_of_its_layer() -> None:
    document = Generation(tiny_model(n_layer=4), "the cat sat on the mat")
    document.read()
    layer, head = sharpest_head(document)

    def sharpness(n: int) -> float:
        weights = document.attn_weights(layer, n).tril(-1)[1:, 1:]
        return float(weights.max(dim=1).values.mean())

    assert head == int(torch.tensor([sharpness(n) for n in range(2)]).argmax())
