"""Models of every family: logits, hidden states, attention weights and greedy text are those of transformers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2LMHeadModel

from gpt import SamplingParams, generate, generate_batch, load_model
from gpt.cache import KVCache
from gpt.models.checkpoints import convert, open_checkpoint
from gpt.trace import Trace
from tests.parity.family_models import CASES, VOCAB_SIZE, Twins, family_twins

T = 20
IDX = torch.arange(2 * T).view(2, T) * 11 % VOCAB_SIZE
LIKE_GPT2 = ("gpt2", "gpt_bigcode", "opt")  # whose models can be written as GPT-2
PROMPTS = [[7], [3, 1, 4, 1, 5, 9, 2, 6], [60, 0, 60, 0]]


@pytest.fixture(params=CASES, ids=" - ".join, scope="module")
def twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    with torch.inference_mode():
        yield family_twins(*request.param)


def test_every_activation_is_that_of_transformers(twins: Twins) -> None:
    expected = twins.reference(IDX, output_attentions=True, output_hidden_states=True)
    trace = Trace()
    traced = twins.ours(IDX, trace=trace)
    assert_close(traced, expected.logits, atol=1e-5, rtol=0)
    assert_close(twins.ours(IDX), expected.logits, atol=1e-5, rtol=0)
    for layer, weights, state in zip(trace.layers, expected.attentions, expected.hidden_states[:-1], strict=True):
        assert_close(layer.attn_weights, weights, atol=1e-5, rtol=0)
        assert_close(layer.resid_pre, state, atol=1e-5, rtol=0)
    assert_close(trace.final_norm, expected.hidden_states[-1], atol=1e-5, rtol=0)


def test_left_padding_and_a_cache_filled_in_chunks_change_nothing(twins: Twins) -> None:
    mask = (torch.arange(T) >= torch.tensor([[0], [7]])).long()
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    expected = twins.reference(IDX, attention_mask=mask, position_ids=positions).logits
    real = mask.bool()
    assert_close(twins.ours(IDX, attention_mask=mask)[real], expected[real], atol=1e-5, rtol=0)
    cache, chunks = KVCache(twins.ours.config, batch_size=2), []
    for chunk in IDX.split([9, 1, 6, 1, 3], dim=1):
        seen = mask[:, : cache.length + chunk.shape[1]]
        chunks.append(twins.ours(chunk, attention_mask=seen, cache=cache))
    assert_close(torch.cat(chunks, dim=1)[real], expected[real], atol=1e-5, rtol=0)


def test_a_cache_filled_in_chunks_without_a_mask_changes_nothing(twins: Twins) -> None:
    expected = twins.reference(IDX).logits
    cache = KVCache(twins.ours.config, batch_size=2)
    chunks = [twins.ours(chunk, cache=cache) for chunk in IDX.split([6, 1, 1, 8, 4], dim=1)]
    assert_close(torch.cat(chunks, dim=1), expected, atol=1e-5, rtol=0)


def test_greedy_text_is_that_of_transformers_alone_and_among_others(twins: Twins) -> None:
    loaded, greedy, n = load_model(twins.folder, device="cpu"), SamplingParams(temperature=0), 10
    expected = []
    for ids in PROMPTS:
        idx = torch.tensor([ids])
        mask = torch.ones_like(idx)
        text = twins.reference.generate(idx, attention_mask=mask, max_new_tokens=n, do_sample=False, pad_token_id=0)
        expected.append(text[0, len(ids) :].tolist())
    assert [[step.token_id for step in generate(loaded, ids, greedy, n)] for ids in PROMPTS] == expected
    assert generate_batch(loaded, PROMPTS, greedy, n) == expected


def test_converted_to_our_own_format_it_is_the_same_model(twins: Twins, tmp_path: Path) -> None:
    convert(twins.folder, tmp_path / "ours")
    ours = open_checkpoint(tmp_path / "ours")
    assert ours.layout == "Glassbox GPT"
    assert ours.config == twins.ours.config
    assert_close(ours.build().state_dict(), twins.ours.state_dict(), atol=0, rtol=0)
    theirs = twins.reference.config
    n_kv_head = getattr(theirs, "num_key_value_heads", theirs.num_attention_heads)
    if theirs.model_type in LIKE_GPT2 and n_kv_head == theirs.num_attention_heads:
        convert(twins.folder, tmp_path / "hf", to="hf")
        gpt2 = GPT2LMHeadModel.from_pretrained(tmp_path / "hf").eval()
        assert_close(gpt2(IDX).logits, twins.reference(IDX).logits, atol=1e-5, rtol=0)
    else:
        with pytest.raises(ValueError, match="GPT-2 cannot express"):
            convert(twins.folder, tmp_path / "hf", to="hf")
