"""Byte-pair encoding step by step, compared with tiktoken."""

from __future__ import annotations

import pytest

from gpt.experiments.tokens import SAMPLES, MergeStep, language_costs, merge_steps, split_words, text_cost
from gpt.tokenizer import Tokenizer

TEXTS = [*SAMPLES.values(), "Every effort moves you", "  two  spaces\n\n", "naïve café 123456", "half \ud83d a pair"]


def test_merges_of_a_word_by_hand(byte_tokenizer: Tokenizer) -> None:
    """The vocabulary merges " t" (256), " th" (257), " the" (258), and the first half of an emoji (259)."""
    steps = merge_steps(byte_tokenizer, " them")
    assert steps == [
        MergeStep((b" ", b"t", b"h", b"e", b"m"), 0, b" t", 256),
        MergeStep((b" t", b"h", b"e", b"m"), 0, b" th", 257),
        MergeStep((b" th", b"e", b"m"), 0, b" the", 258),
        MergeStep((b" the", b"m")),
    ]
    assert [step.pair for step in steps] == [(b" ", b"t"), (b" t", b"h"), (b" th", b"e"), None]


def test_of_equal_pairs_the_leftmost_is_merged_first(gpt2: Tokenizer) -> None:
    steps = merge_steps(gpt2, "aaaa")
    assert [step.at for step in steps[:2]] == [0, 1]
    assert [step.parts for step in steps[:3]] == [(b"a",) * 4, (b"aa", b"a", b"a"), (b"aa", b"aa")]


@pytest.mark.parametrize("text", TEXTS)
def test_the_merges_end_in_the_tokens_that_tiktoken_gives(
    gpt2: Tokenizer, byte_tokenizer: Tokenizer, text: str
) -> None:
    for tokenizer in (gpt2, byte_tokenizer):
        joined = [part for word in split_words(tokenizer, text) for part in merge_steps(tokenizer, word)[-1].parts]
        assert joined == [tokenizer.token_bytes(token_id) for token_id in tokenizer.encode(text)]


def test_lengths_of_the_curriculums_sentence(gpt2: Tokenizer) -> None:
    cost = text_cost(gpt2, "Every effort moves you")
    assert (cost.characters, cost.n_bytes, cost.tokens) == (22, 22, 4)
    assert cost.tokens_per_character == 4 / 22


def test_other_languages_than_english_need_more_tokens(gpt2: Tokenizer) -> None:
    costs = language_costs(gpt2)
    assert costs.keys() == SAMPLES.keys()
    assert min(costs, key=lambda language: costs[language].tokens_per_character) == "en"
    assert costs["zh"].tokens_per_character > 1 > costs["de"].tokens_per_character
    assert (costs["emoji"].characters, costs["emoji"].n_bytes) == (11, 42)
