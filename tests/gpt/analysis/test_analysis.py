"""What the analyses share: predictions in portions, the divergence of two, one text at a time, float32 at least."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from gpt import GPT, GPTConfig, analysis
from gpt.analysis import kl_bits, kl_bits_from, log_probabilities, saliency, states_from, trace_text
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.heads import head_roles, mean_weights, rollout, value_weighted
from gpt.analysis.lens import lens_cell, logit_lens
from gpt.analysis.patching import patch_sweep
from gpt.analysis.residual import nearest_tokens, stream_lengths, strongest_neurons
from gpt.analysis.saliency import input_x_gradient, leave_one_out
from gpt.edits import Edits
from gpt.inference.packed import PackedLinear, pack
from gpt.trace import Trace
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


@torch.inference_mode()
def test_predictions_come_in_portions_that_add_up_to_the_logits(model, monkeypatch):
    monkeypatch.setattr(analysis, "PORTION", 4 * 61)
    states = model.hidden_states(torch.tensor([IDS]))[0]
    portions = list(log_probabilities(model, states))
    assert [len(range(*rows.indices(11))) for rows, _ in portions] == [4, 4, 3]
    assert all(log_p.numel() <= 4 * 61 for _, log_p in portions)
    expected = model(torch.tensor([IDS]))[0].log_softmax(dim=-1)
    assert_close(torch.cat([log_p for _, log_p in portions]), expected, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_divergence_of_an_edited_pass_is_that_of_torch(model):
    model.double()
    idx = torch.tensor([IDS])
    edits = Edits(head_scale={(1, 1): 0.0})
    before, after = (trace_text(model, IDS, edits=e).final_norm[0] for e in (None, edits))
    p, q = (model(idx, edits=e)[0].log_softmax(dim=-1) for e in (None, edits))
    expected = F.kl_div(q, p, reduction="none", log_target=True).sum(dim=-1) / math.log(2)
    assert expected.max() > 0.01
    assert_close(kl_bits(model, before, after), expected, atol=1e-12, rtol=0)
    assert (kl_bits(model, before, before) == 0).all()


@pytest.mark.parametrize("position", ["learned", "rotary"])
@pytest.mark.parametrize(
    "edits", [None, Edits(head_scale={(1, 1): 0.0}), Edits(mlp_scale={1: 0.5}, drop_positions=True)]
)
@torch.inference_mode()
def test_a_pass_can_begin_at_a_layer(position, edits):
    torch.manual_seed(0)
    model = GPT(GPTConfig(61, 16, n_layer=3, n_head=2, n_embd=24, position=position)).eval()
    below = None if edits is None else Edits(drop_positions=edits.drop_positions)
    trace, whole = trace_text(model, IDS, edits=below), trace_text(model, IDS, edits=edits).final_norm
    for layer in range(2 if edits else 3):
        assert_close(states_from(model, trace.layers[layer].resid_pre, layer, edits), whole, atol=1e-6, rtol=1e-5)


@torch.inference_mode()
def test_one_pass_against_many_diverges_as_two_do(model, monkeypatch):
    monkeypatch.setattr(analysis, "PORTION", 4 * 61)
    states = torch.randn(3, 11, 24).unbind()
    against = kl_bits_from(model, states[0])
    for others in states:
        assert torch.equal(against(others), kl_bits(model, states[0], others))
    assert (against(states[0]) == 0).all()


@torch.inference_mode()
def test_believing_a_fair_choice_of_eight_loses_three_bits_less_the_entropy():
    model = copying_model(torch.float64)
    lost = Edits(attn_scale={1: 0.0})  # nothing is copied: all eight tokens are equally likely
    ids = [1, 2, 3, 1]
    sure, unsure = (trace_text(model, ids, edits=e).final_norm[0, -1:] for e in (None, lost))
    p = model(torch.tensor([ids]))[0, -1].softmax(dim=-1)
    expected = 3 + (p * p.log2()).sum()
    assert expected > 2.9
    assert_close(kl_bits(model, sure, unsure)[0], expected, atol=1e-9, rtol=0)


def test_states_of_two_texts_of_different_lengths_cannot_be_compared(model):
    with pytest.raises(ValueError, match=r"states of shape \(3, 24\) cannot be compared with \(4, 24\)"):
        kl_bits(model, torch.zeros(3, 24), torch.zeros(4, 24))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64, torch.float64)],
    ids=str,
)
def test_results_are_float32_or_float64_where_the_model_is(model, dtype, expected):
    model.to(dtype)
    trace = trace_text(model, IDS)
    assert trace.final_norm.dtype == dtype
    lens, roles, stream = logit_lens(model, trace, chosen=7), head_roles(trace, IDS), stream_lengths(trace)
    neurons = strongest_neurons(model, trace, 1, 4)
    results = {
        "mean": mean_weights(trace),
        "value": value_weighted(model, trace, 1),
        "rollout": rollout(trace),
        "roles": roles.induction,
        "lens": lens.probability,
        "entropy": lens.entropy,
        "chosen": lens.chosen_probability,
        "cell": lens_cell(model, trace, 1, "resid_mid", 4).probability,
        "attribution": direct_logit_attribution(model, trace, 4, 7).heads,
        "lengths": stream.resid_mid,
        "share": stream.attn_share,
        "neurons": neurons.length,
        "pushed": neurons.up_logit,
        "nearest": nearest_tokens(model, 3).cosine,
        "patching": patch_sweep(model, IDS, [8, *IDS[1:]], 7, 9).recovered,
        "gradient": input_x_gradient(model, IDS, 7),
        "left out": leave_one_out(model, IDS, 7),
        "divergence": kl_bits(model, trace.final_norm[0], trace.final_norm[0].flip(0)),
    }
    assert {name: value.dtype for name, value in results.items()} == dict.fromkeys(results, expected)
    assert all(value.isfinite().all() for value in results.values())


def test_the_head_of_a_packed_model_is_unpacked_once(model, monkeypatch):
    pack(model, "bf16")
    trace = trace_text(model, IDS)
    states, unpacked, weight = trace.final_norm[0], [], PackedLinear.weight.fget
    monkeypatch.setattr(PackedLinear, "weight", property(lambda self: unpacked.append(self) or weight(self)))
    monkeypatch.setattr(saliency, "BATCH_TOKENS", 2 * len(IDS))
    for analyse in (
        lambda: logit_lens(model, trace, chosen=7),
        lambda: kl_bits(model, states, states.flip(0)),
        lambda: kl_bits_from(model, states)(states.flip(0)),
        lambda: leave_one_out(model, IDS, 7),
    ):
        unpacked.clear()
        analyse()
        assert unpacked == [model.lm_head]


def test_a_batch_of_texts_is_refused(model):
    trace = Trace()
    model(torch.randint(61, (3, 5)), trace=trace)
    for analyse in (mean_weights, rollout, stream_lengths, lambda trace: logit_lens(model, trace)):
        with pytest.raises(ValueError, match="an analysis is of one text: this trace holds 3"):
            analyse(trace)


def test_what_does_not_exist_is_refused_by_name(model):
    trace = trace_text(model, IDS)
    for call, sentence in (
        (lambda: mean_weights(trace, 3), "layer 3 does not exist: the model has layers 0 to 2"),
        (lambda: rollout(trace, -1), "layer -1 does not exist"),
        (lambda: value_weighted(model, trace, 3), "layer 3 does not exist"),
        (lambda: lens_cell(model, trace, 3, "resid_mid", 0), "layer 3 does not exist"),
        (lambda: lens_cell(model, trace, 0, "resid_mid", 11), "position 11 was not traced: .* positions 0 to 10"),
        (lambda: lens_cell(model, trace, 0, "resid_pre", 0), "stage must be one of .*, not 'resid_pre'"),
        (lambda: logit_lens(model, trace, positions=[-1]), "position -1 was not traced"),
        (lambda: logit_lens(model, trace, chosen=61), "token id 61 does not exist: the vocabulary has ids 0 to 60"),
        (lambda: logit_lens(model, trace, chosen=[1, 2]), "11 positions need as many chosen tokens, not 2"),
        (lambda: direct_logit_attribution(model, trace, 11, 0), "position 11 was not traced"),
        (lambda: direct_logit_attribution(model, trace, 0, 0, against=-1), "token id -1 does not exist"),
        (lambda: strongest_neurons(model, trace, 5, 0), "layer 5 does not exist"),
        (lambda: nearest_tokens(model, 61), "token id 61 does not exist"),
        (lambda: patch_sweep(model, IDS, IDS[1:], 1, 2), "equally many tokens, not 11 and 10"),
        (lambda: patch_sweep(model, IDS, IDS[::-1], 1, 2, name="attn_q"), "can be patched, not 'attn_q'"),
        (lambda: patch_sweep(model, IDS, IDS, 1, 2), "there is nothing to recover"),
        (lambda: input_x_gradient(model, IDS, 61), "token id 61 does not exist"),
        (lambda: leave_one_out(model, [1], 2), "needs a text of at least 2 tokens, not 1"),
        (lambda: leave_one_out(model, IDS, 2, positions=[11]), "position 11 does not exist"),
        (lambda: head_roles(trace, IDS[1:]), "10 ids need a trace of the whole text"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
