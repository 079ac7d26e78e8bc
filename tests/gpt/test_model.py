"""Behaviour of the model. Parity with transformers is in tests/parity."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.trace import Trace

ROOT = Path(__file__).parents[2]
EXACT = {"atol": 1e-5, "rtol": 0}


def tiny(**kwargs) -> GPT:
    return GPT(GPTConfig(**{"vocab_size": 61, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 12} | kwargs))


@torch.inference_mode()
def test_later_tokens_do_not_change_earlier_logits(model):
    idx = torch.randint(61, (1, 16))
    changed = idx.clone()
    changed[0, 9] = (idx[0, 9] + 1) % 61
    before, after = model(idx), model(changed)
    assert_close(after[:, :9], before[:, :9], **EXACT)
    assert (after[:, 9:] - before[:, 9:]).abs().amax(dim=-1).min() > 1e-3


@torch.inference_mode()
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_equals_unpadded(model, side, traced):
    texts = [torch.randint(61, (n,)) for n in (16, 9, 1)]
    idx, mask = torch.full((3, 16), 60), torch.zeros(3, 16, dtype=torch.long)
    for row, text in enumerate(texts):
        where = slice(16 - len(text), 16) if side == "left" else slice(len(text))
        idx[row, where], mask[row, where] = text, 1
    logits = model(idx, attention_mask=mask, trace=Trace() if traced else None)
    assert logits.isfinite().all()
    for row, text in enumerate(texts):
        assert_close(logits[row, mask[row].bool()], model(text[None])[0], **EXACT)


@torch.inference_mode()
def test_a_fully_masked_row_gives_zeros_in_eager_and_sdpa_attention(model):
    idx = torch.randint(61, (2, 6))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    trace = Trace()
    open_logits, fused_logits = model(idx, attention_mask=mask, trace=trace), model(idx, attention_mask=mask)
    assert_close(open_logits, fused_logits, **EXACT)
    for block, layer in zip(model.h, trace.layers, strict=True):
        blind = ~mask.bool()
        assert (layer.attn_weights.transpose(1, 2)[blind] == 0).all()
        nothing = block.attn.c_proj(torch.zeros(8, block.attn.c_proj.in_features))
        nothing = nothing if block.ln_1_post is None else block.ln_1_post(nothing)
        assert_close(layer.attn_out[blind], nothing, atol=1e-6, rtol=0)
        seen = mask[:, None, None, :].bool().expand_as(layer.attn_weights)
        assert (layer.attn_weights[~seen] == 0).all()


@pytest.mark.parametrize("T", [0, 17])
def test_a_text_that_does_not_fit_the_context_is_refused(T):
    with pytest.raises(ValueError, match=f"{T} tokens do not fit a context of 1 to 16"):
        tiny()(torch.zeros(1, T, dtype=torch.long))


def test_ids_without_a_batch_are_refused_with_what_to_write():
    with pytest.raises(ValueError, match=r"\(batch, tokens\), not \(3,\); pass idx\[None\]"):
        tiny()(torch.tensor([1, 2, 3]))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"attention_mask must have shape \(2, 5\), not \(2, 4\)"):
        tiny()(torch.zeros(2, 5, dtype=torch.long), attention_mask=torch.ones(2, 4))


def test_loss_is_the_mean_cross_entropy_over_targets_that_are_not_ignored(model):
    idx, targets = torch.randint(61, (2, 8)), torch.randint(61, (2, 8))
    targets[0, :5] = -100
    p = model(idx).detach().softmax(dim=-1)
    counted = [-math.log(p[b, t, targets[b, t]]) for b in range(2) for t in range(8) if targets[b, t] != -100]
    assert len(counted) == 11
    assert model.loss(idx, targets).item() == pytest.approx(sum(counted) / 11, rel=1e-5)


def test_dropout_applies_in_training_mode_only():
    model, idx = tiny(dropout=0.5), torch.randint(61, (1, 16))
    torch.manual_seed(1)
    twin = tiny(dropout=0.0)
    twin.load_state_dict(model.state_dict())
    for trace in (None, Trace()):
        assert_close(model.eval()(idx, trace=trace), twin(idx), **EXACT)
    model.train()
    assert (model(idx) - model(idx)).abs().max() > 1e-3
    assert (model(idx, trace=Trace()) - model(idx, trace=Trace())).abs().max() > 1e-3


def test_the_head_is_applied_in_one_place_which_caps_the_logits():
    """Only `GPT.logits` applies the head; the shortest code of the lessons has no caps."""
    sources = [path for name in ("gpt", "components") for path in (ROOT / name).rglob("*.py")]
    callers = {path.relative_to(ROOT).as_posix() for path in sources if "lm_head(" in path.read_text(encoding="utf-8")}
    lessons = {f"gpt/experiments/minimal/{name}.py" for name in ("model", "skeleton")}
    assert callers == {"gpt/model.py", "gpt/course/steps/model.py", *lessons}
