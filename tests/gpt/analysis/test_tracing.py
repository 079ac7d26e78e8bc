"""Behaviour shared by all analyses: continued passes, dtypes, unpacking the head once, and rejected arguments."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt import GPT, GPTConfig
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.embeddings import nearest_tokens
from gpt.analysis.heads import head_roles, rollout
from gpt.analysis.lens import lens_top_tokens, logit_lens
from gpt.analysis.patching import patch_sweep
from gpt.analysis.predictions import kl_bits
from gpt.analysis.residual import stream_norms, strongest_neurons
from gpt.analysis.saliency import input_x_gradient, leave_one_out
from gpt.analysis.tracing import hidden_states_from, trace_text
from gpt.edits import Edits

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


@pytest.mark.parametrize("position", ["learned", "rotary"])
@pytest.mark.parametrize(
    "edits", [None, Edits(head_scale={(1, 1): 0.0}), Edits(mlp_scale={1: 0.5}, drop_positions=True)]
)
@torch.inference_mode()
def test_a_pass_continued_from_any_layer_equals_the_whole_pass(position, edits):
    torch.manual_seed(0)
    model = GPT(GPTConfig(61, 16, n_layer=3, n_head=2, n_embd=24, position=position)).eval()
    below = None if edits is None else Edits(drop_positions=edits.drop_positions)
    trace, whole = trace_text(model, IDS, edits=below), trace_text(model, IDS, edits=edits).final_norm
    for layer in range(2 if edits else 3):
        assert_close(
            hidden_states_from(model, trace.layers[layer].resid_pre, layer, edits), whole, atol=1e-6, rtol=1e-5
        )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)],
    ids=str,
)
@pytest.mark.parametrize("model", ["gemma2"], indirect=True)
def test_results_are_finite_and_float32_or_float64_for_a_float64_model(model, dtype, expected):
    model.to(dtype)
    trace = trace_text(model, IDS)
    assert trace.final_norm.dtype == dtype
    lens, roles, stream = logit_lens(model, trace, chosen=7), head_roles(trace, IDS), stream_norms(trace)
    neurons = strongest_neurons(model, trace, 1, 4)
    results = {
        "rollout": rollout(trace),
        "roles": roles.induction,
        "lens": lens.probability,
        "entropy": lens.entropy,
        "chosen": lens.chosen_probability,
        "top": lens_top_tokens(model, trace, 1, "resid_mid", 4)[1],
        "attribution": direct_logit_attribution(model, trace, 4, 7).heads,
        "norms": stream.resid_mid,
        "share": stream.attn_share,
        "neurons": neurons.norm,
        "pushed": neurons.up_logit,
        "nearest": nearest_tokens(model, 3).cosine,
        "patching": patch_sweep(model, IDS, [8, *IDS[1:]], 7, 9).recovered,
        "gradient": input_x_gradient(model, IDS, 7),
        "left out": next(leave_one_out(model, IDS, 7, [0])),
        "divergence": kl_bits(model, trace.final_norm[0], trace.final_norm[0].flip(0)),
    }
    assert {name: value.dtype for name, value in results.items()} == dict.fromkeys(results, expected)
    assert all(value.isfinite().all() for value in results.values())


def test_arguments_that_do_not_exist_are_refused_by_name(model):
    trace = trace_text(model, IDS)
    for call, sentence in (
        (lambda: rollout(trace, 3), "layer 3 does not exist: the model has layers 0 to 2"),
        (lambda: lens_top_tokens(model, trace, 0, "resid_mid", 11), "position 11 was not traced: .* positions 0 to 10"),
        (lambda: lens_top_tokens(model, trace, 0, "resid_pre", 0), "point must be one of .*, not 'resid_pre'"),
        (lambda: logit_lens(model, trace, chosen=61), "token id 61 does not exist: the vocabulary has ids 0 to 60"),
        (lambda: logit_lens(model, trace, chosen=[1, 2]), "11 chosen tokens are needed, one per position, not 2"),
        (lambda: direct_logit_attribution(model, trace, 0, 0, against=-1), "token id -1 does not exist"),
        (lambda: patch_sweep(model, IDS, IDS[1:], 1, 2), "same number of tokens, not 11 and 10"),
        (
            lambda: patch_sweep(model, IDS, IDS[::-1], 1, 2, name="attn_q"),
            "name must be one of resid_pre, .*, not 'attn_q'",
        ),
        (lambda: patch_sweep(model, IDS, IDS, 1, 2), "there is nothing to recover"),
        (lambda: next(leave_one_out(model, [1], 2, [0])), "needs a text of at least 2 tokens, not 1"),
        (lambda: head_roles(trace, IDS[1:]), "10 ids need a trace of the whole text"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
