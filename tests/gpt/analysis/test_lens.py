"""The logit lens equals the model at the last layer, and transformers' head on its hidden states in other layers."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.lens import LENS_POINTS, lens_top_tokens, logit_lens
from gpt.analysis.tracing import trace_text
from tests.gpt.analysis.copying_model import copying_model

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
        cell = lens_top_tokens(model, trace, layer, LENS_POINTS[stage], position, k=100)
        assert len(set(cell.token.tolist())) == len(cell.token) == 61
        assert (cell.probability.diff() <= 0).all()
        assert cell.probability.sum().item() == pytest.approx(1, abs=1e-5)
        assert cell.token[0] == lens.token[layer, stage, position]
        assert cell.token[lens.chosen_rank[layer, stage, position] - 1] == 9
    assert len(lens_top_tokens(model, trace, 1, "resid_mid", 3, k=4).token) == 4
