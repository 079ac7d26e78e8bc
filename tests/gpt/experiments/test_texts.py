"""Loss and tokens of a text, compared with transformers and tiktoken."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product

import pytest
import torch

from gpt.config import GPTConfig
from gpt.experiments.tokens import SAMPLES, MergeStep, merge_steps, split_words, tokens_per_character
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Tokenizer
from gpt.training.evaluation import score_text

BLOCK = 16


def wrapped(model: GPT, tokenizer: Tokenizer) -> LoadedModel:
    return LoadedModel("tiny", model, tokenizer, torch.device("cpu"), "fp32")


@pytest.fixture
def pair(
    twins: Callable[..., tuple[torch.nn.Module, GPT]], byte_tokenizer: Tokenizer
) -> tuple[torch.nn.Module, LoadedModel]:
    """Return a random transformers model, and ours with the same weights."""
    reference, ours = twins(vocab_size=261, n_positions=BLOCK, n_layer=2, n_head=2, n_embd=16)
    return reference, wrapped(ours, byte_tokenizer)


def some_ids(length: int) -> list[int]:
    return [random.Random(length).randrange(260) for _ in range(length)]


@pytest.mark.parametrize("length", [2, BLOCK])
def test_a_text_that_fits_has_the_loss_of_transformers(pair: tuple[torch.nn.Module, LoadedModel], length: int) -> None:
    reference, ours = pair
    ids = torch.tensor([some_ids(length)])
    with torch.inference_mode():
        expected = reference(ids, labels=ids).loss.item()
    result = score_text(ours, ids[0].tolist())
    assert result.score.loss == pytest.approx(expected, abs=1e-5)
    assert result.n_windows == 1


@pytest.mark.parametrize(("length", "stride"), [(BLOCK + 1, None), (3 * BLOCK + 5, 1), (3 * BLOCK + 5, 5)])
def test_a_longer_text_has_the_loss_of_the_guide_s_sliding_window(
    pair: tuple[torch.nn.Module, LoadedModel], length: int, stride: int | None
) -> None:
    reference, ours = pair
    ids = torch.tensor([some_ids(length)])
    step, end, nats, windows = stride or BLOCK // 2, 0, [], 0
    for begin in range(0, length, step):  # the guide's loop, with every token's loss listed separately
        previous, end, windows = end, min(begin + BLOCK, length), windows + 1
        labels = ids[:, begin:end].clone()
        labels[:, : previous - begin] = -100
        with torch.inference_mode():
            logits = reference(ids[:, begin:end]).logits
        losses = torch.nn.functional.cross_entropy(logits[0, :-1], labels[0, 1:], reduction="none")
        nats += losses[labels[0, 1:] != -100].tolist()
        if end == length:
            break
    result = score_text(ours, ids[0].tolist(), stride=stride)
    assert [loss.nats for loss in result.losses] == pytest.approx(nats, abs=1e-4)
    assert result.score.loss == pytest.approx(sum(nats) / (length - 1), abs=1e-5)
    assert (result.n_windows, result.stride) == (windows, step)


def test_ranks_and_top_tokens_are_those_of_the_sorted_logits(
    pair: tuple[torch.nn.Module, LoadedModel],
) -> None:
    reference, ours = pair
    ids = some_ids(BLOCK)
    with torch.inference_mode():
        probabilities = reference(torch.tensor([ids])).logits[0].softmax(dim=-1)
    for position, loss in enumerate(score_text(ours, ids).losses, start=1):
        order = probabilities[position - 1].argsort(descending=True).tolist()
        assert loss.rank == 1 + order.index(ids[position])
        assert [token_id for token_id, _ in loss.top] == order[:3]
        best = [probabilities[position - 1, i].item() for i in order[:3]]
        assert [p for _, p in loss.top] == pytest.approx(best, abs=1e-6)
        assert loss.surprisal == pytest.approx(-math.log2(probabilities[position - 1, ids[position]].item()), abs=1e-4)


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary_size(byte_tokenizer: Tokenizer) -> None:
    model = GPT(GPTConfig(vocab_size=261, block_size=4, n_layer=1, n_head=1, n_embd=4)).eval()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    ids = byte_tokenizer.encode("x the ä")  # x, " the", " " and two bytes: 5 tokens, 8 bytes
    result = score_text(wrapped(model, byte_tokenizer), ids)
    assert (result.score.n_tokens, result.score.n_bytes) == (4, 7)
    assert result.score.perplexity == pytest.approx(261)
    assert result.score.bits_per_byte == pytest.approx(4 * math.log2(261) / 7)
    assert {loss.rank for loss in result.losses} == {1}


TEXTS = [*SAMPLES.values(), "Every effort moves you", "  two  spaces\n\n", "naïve café 123456", "half \ud83d a pair"]


def test_merges_of_a_word_by_hand(byte_tokenizer: Tokenizer) -> None:
    """The vocabulary merges " t" (256), " th" (257), " the" (258), and the first half of an emoji (259)."""
    steps = merge_steps(byte_tokenizer, " them")
    assert steps == [
        MergeStep((b" ", b"t", b"h", b"e", b"m"), 0, 256),
        MergeStep((b" t", b"h", b"e", b"m"), 0, 257),
        MergeStep((b" th", b"e", b"m"), 0, 258),
        MergeStep((b" the", b"m")),
    ]


def test_of_equal_pairs_the_leftmost_is_merged_first(gpt2: Tokenizer) -> None:
    steps = merge_steps(gpt2, "aaaa")
    assert [step.at for step in steps[:2]] == [0, 1]
    assert [step.parts for step in steps[:3]] == [(b"a",) * 4, (b"aa", b"a", b"a"), (b"aa", b"aa")]


def test_the_merges_end_in_the_tokens_that_tiktoken_gives(gpt2: Tokenizer, byte_tokenizer: Tokenizer) -> None:
    for tokenizer, text in product((gpt2, byte_tokenizer), TEXTS):
        joined = [part for word in split_words(tokenizer, text) for part in merge_steps(tokenizer, word)[-1].parts]
        assert joined == [tokenizer.token_bytes(token_id) for token_id in tokenizer.encode(text)]


def test_other_languages_than_english_need_more_tokens(gpt2: Tokenizer) -> None:
    costs = tokens_per_character(gpt2)
    assert costs.keys() == SAMPLES.keys()
    assert min(costs, key=costs.__getitem__) == "en"
    assert costs["zh"] > 1 > costs["de"]
