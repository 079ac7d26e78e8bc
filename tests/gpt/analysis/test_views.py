"""Views of one pass: norms of the stream, attention rollout, nearest embeddings, logit lens."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.embeddings import nearest_tokens, position_similarity
from gpt.analysis.heads import rollout
from gpt.analysis.lens import LENS_POINTS, lens_top_tokens, logit_lens
from gpt.analysis.residual import strongest_neurons
from gpt.analysis.tracing import trace_text
from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.layers import ACTIVATIONS
from gpt.model import GPT
from gpt.trace import Trace
from tests.gpt.analysis.copying_model import copying_model
from tests.gpt.analysis.test_heads import trace_of

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


@torch.inference_mode()
def test_strongest_neurons_are_ordered_by_the_norm_of_what_they_add(model):
    trace, block = trace_text(model, IDS), model.h[1]
    traced = trace.layers[1]
    neurons = strongest_neurons(model, trace, 1, 5, k=7, n_tokens=3)
    written = traced.mlp_post[0, 5, :, None] * block.mlp.c_proj.weight.T  # (n_ff, C)
    if (norm := block.ln_2_post) is not None:
        written = norm.contribution(written, norm.scale(block.mlp.c_proj(traced.mlp_post[0, 5])))
    order = written.norm(dim=1).argsort(descending=True)
    assert torch.equal(neurons.index, order[:7])
    assert_close(neurons.norm, written.norm(dim=1)[order[:7]])
    assert torch.equal(neurons.pre, traced.mlp_pre[0, 5, order[:7]])
    assert torch.equal(neurons.post, traced.mlp_post[0, 5, order[:7]])
    activated = ACTIVATIONS[model.config.activation](neurons.pre)
    assert (neurons.mlp_up is None) == (not model.config.gated)
    assert_close(neurons.post, activated if neurons.mlp_up is None else activated * neurons.mlp_up)
    assert neurons.up.shape == neurons.down_logit.shape == (7, 3)
    every = strongest_neurons(model, trace, 1, 5, k=7, n_tokens=61)
    assert_close(every.up.flip(1), every.down)  # the whole vocabulary in both orders
    assert (neurons.up_logit.min(dim=1).values > neurons.down_logit.max(dim=1).values).all()


def test_rollout_of_two_previous_token_layers_is_on_the_token_two_before():
    before = torch.eye(4).roll(-1, dims=1).tril()
    before[0, 0] = 1
    flow = rollout(trace_of(before[None], before[None]))
    assert_close(flow[3], torch.tensor([0, 0.25, 0.5, 0.25]))
    assert_close(flow[1], torch.tensor([0.75, 0.25, 0, 0]))  # the first token attends only to itself
    assert_close(flow[0], torch.tensor([1.0, 0, 0, 0]))


def test_a_trace_of_a_pass_with_cached_tokens_is_refused(model):
    cache, trace = KVCache(model.config), Trace()
    idx = torch.randint(61, (1, 9))
    with torch.inference_mode():
        model(idx[:, :4], cache=cache)
        model(idx[:, 4:], cache=cache, trace=trace)
    with pytest.raises(ValueError, match="has 5 of 9 positions"):
        rollout(trace)


@pytest.fixture
def plane() -> GPT:
    """Embeddings in a plane, for tokens and positions: at 0, 90, 10, 180 and 30 degrees, with different norms."""
    model = GPT(GPTConfig(vocab_size=5, block_size=3, n_layer=1, n_head=1, n_embd=2))
    angle = torch.deg2rad(torch.tensor([0.0, 90, 10, 180, 30]))
    norms = torch.tensor([[1.0], [2], [9], [1], [3]])
    with torch.no_grad():
        model.wte.weight.copy_(torch.stack((angle.cos(), angle.sin()), dim=1) * norms)
        model.wpe.weight.copy_(torch.tensor([[1.0, 0], [0, 3], [-2, 0]]))
    return model


def test_nearest_tokens_are_ordered_by_angle_without_the_token_itself(plane):
    nearest = nearest_tokens(plane, 0, k=10)
    assert nearest.token.tolist() == [2, 4, 1, 3]
    assert_close(nearest.cosine, torch.tensor([10.0, 30, 90, 180]).deg2rad().cos(), atol=1e-6, rtol=0)
    assert nearest_tokens(plane, 0, k=2).token.tolist() == [2, 4]


def test_similarity_of_positions_is_their_cosine(plane):
    assert_close(position_similarity(plane), torch.tensor([[1.0, 0, -1], [0, 1, 0], [-1, 0, 1]]))


T = 11


@pytest.fixture
def ids() -> list[int]:
    return torch.randint(61, (T,)).tolist()


@torch.inference_mode()
def test_the_lens_at_the_last_layer_is_the_models_prediction(model, ids):
    p = model(torch.tensor([ids]))[0].softmax(dim=-1)  # (T, vocab_size)
    targets = [*ids[1:], 17]
    lens = logit_lens(model, trace_text(model, ids), chosen=targets)
    last = [values[-1, -1] for values in (lens.token, lens.probability, lens.chosen_probability, lens.chosen_rank)]
    token, probability, chosen, rank = last
    assert torch.equal(token, p.argmax(dim=-1))
    assert_close(probability, p.max(dim=-1).values, atol=1e-5, rtol=0)
    assert_close(lens.entropy[-1, -1], -(p * p.log2()).sum(dim=-1), atol=1e-4, rtol=0)
    order = p.argsort(dim=-1, descending=True).tolist()
    for position, target in enumerate(targets):
        assert chosen[position].item() == pytest.approx(p[position, target].item(), abs=1e-5)
        assert rank[position] == 1 + order[position].index(target)


def test_the_answer_of_a_copying_model_appears_in_the_layer_that_copies_it():
    model = copying_model()
    lens = logit_lens(model, trace_text(model, [1, 2, 3, 1]), positions=[3], chosen=2)
    assert_close(lens.probability[0], torch.full((2, 1), 1 / 8))  # uniform over eight tokens before the copying layer
    assert_close(lens.entropy[0], torch.full((2, 1), 3.0))
    assert (lens.token[1] == 2).all()
    assert (lens.chosen_rank[1] == 1).all()
    assert (lens.chosen_probability[1] > 0.99).all()


@torch.inference_mode()
def test_top_tokens_agree_with_the_token_and_ranks_of_the_lens(model, ids):
    trace = trace_text(model, ids)
    lens = logit_lens(model, trace, chosen=9)
    for layer, stage, position in ((0, 0, 4), (2, 1, 10)):
        tokens, probabilities = lens_top_tokens(model, trace, layer, LENS_POINTS[stage], position, k=100)
        assert len(set(tokens.tolist())) == len(tokens) == 61
        assert (probabilities.diff() <= 0).all()
        assert probabilities.sum().item() == pytest.approx(1, abs=1e-5)
        assert tokens[0] == lens.token[layer, stage, position]
        assert tokens[lens.chosen_rank[layer, stage, position] - 1] == 9
    assert [len(values) for values in lens_top_tokens(model, trace, 1, "resid_mid", 3, k=4)] == [4, 4]
