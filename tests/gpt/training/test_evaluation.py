from __future__ import annotations

import math

import pytest
import torch

from gpt.config import GPTConfig
from gpt.generate import generate_greedy
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Tokenizer
from gpt.training.evaluation import Score, sample, score_stories, windows


@pytest.fixture
def tiny(byte_tokenizer: Tokenizer) -> GPT:
    """A random model with weights large enough that predictions depend on every position."""
    model = GPT(GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=12, n_layer=2, n_head=2, n_embd=16))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.mark.parametrize(
    ("block_size", "length"), [(1, 1), (1, 5), (2, 3), (5, 5), (5, 6), (8, 17), (16, 18), (16, 100)]
)
def test_every_token_after_the_first_is_a_target_once_with_at_least_half_a_context_before_it(
    block_size: int, length: int
) -> None:
    counted = []
    for inputs, targets in windows(list(range(length)), block_size):
        assert 1 <= len(inputs) == len(targets) <= block_size
        assert inputs == list(range(inputs[0], inputs[0] + len(inputs)))
        for context, (before, target) in enumerate(zip(inputs, targets, strict=True), start=1):
            if target != -100:
                assert target == before + 1
                assert context >= min(target, math.ceil(block_size / 2))
                counted.append(target)
    assert counted == list(range(1, length))


def test_score_is_the_sum_over_single_tokens(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    stories = [
        "a",
        "the the",
        "Eleven the!",
        "x" * 12,
        "Longer than one context, the end.",
        "Über 🙂 and on and on and on",
    ]
    block, half = tiny.config.block_size, tiny.config.block_size // 2
    nats, n_tokens = 0.0, 0
    for story in stories:
        ids = [byte_tokenizer.eot_id, *byte_tokenizer.encode(story)]
        for at in range(1, len(ids)):
            start = half * max(0, math.ceil((at - block) / half))  # the first window that contains this token
            with torch.no_grad():
                logits = tiny(torch.tensor([ids[start:at]]))[0, -1].double()
            nats -= logits.log_softmax(dim=-1)[ids[at]].item()
            n_tokens += 1
    score = score_stories(tiny, byte_tokenizer, stories, batch_size=3)
    assert score.nats == pytest.approx(nats, rel=1e-6)
    assert score.n_tokens == n_tokens
    assert score.n_bytes == sum(len(story.encode()) for story in stories)
    assert score.bits_per_byte == pytest.approx(nats / math.log(2) / score.n_bytes, rel=1e-6)


def test_a_uniform_model_needs_log2_of_the_vocabulary_size_in_bits_per_token(
    tiny: GPT, byte_tokenizer: Tokenizer
) -> None:
    for parameter in tiny.parameters():
        torch.nn.init.zeros_(parameter)
    score = score_stories(tiny, byte_tokenizer, ["ä the"])  # two bytes and one merged token: 3 tokens, 6 bytes
    assert (score.n_tokens, score.n_bytes) == (3, 6)
    assert score.loss == pytest.approx(math.log(261))
    assert score.perplexity == pytest.approx(261)
    assert score.bits_per_byte == pytest.approx(3 * math.log2(261) / 6)


@torch.no_grad()
def test_without_end_of_text_a_text_is_scored_from_its_second_token_on(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    byte_tokenizer.eot_id = None
    score = score_stories(tiny, byte_tokenizer, ["ä the"])
    ids = torch.tensor([[*"ä".encode(), 258]])
    nats = torch.nn.functional.cross_entropy(tiny(ids[:, :-1])[0], ids[0, 1:], reduction="sum").item()
    assert score == Score(pytest.approx(nats, rel=1e-6), n_tokens=2, n_bytes=5)


def test_a_sample_starts_with_the_prompt_and_is_determined_by_its_seed(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    loaded = LoadedModel("tiny", tiny, byte_tokenizer, torch.device("cpu"), "fp32")
    texts = [sample(loaded, "Once", seed=seed, max_new_tokens=8) for seed in (0, 0, 1)]
    assert all(text.startswith("Once") for text in texts)
    assert texts[0] == texts[1] != texts[2]


def test_a_sample_goes_on_past_a_full_context(tiny: GPT, byte_tokenizer: Tokenizer) -> None:
    byte_tokenizer.eot_id = None
    loaded = LoadedModel("tiny", tiny, byte_tokenizer, torch.device("cpu"), "fp32")
    ids = generate_greedy(tiny, torch.tensor([list(b"Once")]), 30)[0].tolist()
    text = sample(loaded, "Once", seed=0, max_new_tokens=30, temperature=0)
    assert text == byte_tokenizer.decode(ids)
