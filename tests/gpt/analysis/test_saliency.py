"""Input x gradient and leave-one-out, compared with transformers and finite differences."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis import saliency
from gpt.analysis.saliency import input_x_gradient, leave_one_out
from gpt.analysis.tracing import trace_text
from gpt.edits import Edits, Patch
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
SHAPE = {"vocab_size": 61, "n_positions": 16, "n_layer": 3, "n_head": 3, "n_embd": 24}


def test_input_x_gradient_is_that_of_transformers(twins):
    reference, ours = (model.double() for model in twins(**SHAPE))
    embedded = reference.transformer.wte(torch.tensor([IDS])).detach().requires_grad_()
    reference(inputs_embeds=embedded).logits[0, -1].log_softmax(dim=-1)[7].backward()
    expected = (embedded * embedded.grad).sum(dim=-1)[0]
    assert expected.abs().max() > 1e-3
    assert_close(input_x_gradient(ours, IDS, 7), expected.detach(), atol=1e-12, rtol=0)


def test_input_x_gradient_is_the_finite_difference_of_scaling_an_embedding(model):
    model.double()
    with torch.inference_mode():  # gradients are computed anyway
        found = input_x_gradient(model, IDS, 7)
    start = trace_text(model, IDS)

    def log_p(position: int, growth: float) -> torch.Tensor:
        value = start.layers[0].resid_pre[0, position] + growth * start.token_embedding[0, position]
        edits = Edits(patches=(Patch("resid_pre", 0, position, value),))
        return model(torch.tensor([IDS]), edits=edits)[0, -1].log_softmax(dim=-1)[7]

    with torch.no_grad():
        slopes = [(log_p(position, 1e-5) - log_p(position, -1e-5)) / 2e-5 for position in range(8)]
    assert_close(found, torch.stack(slopes), atol=1e-7, rtol=0)


@torch.inference_mode()
def test_leave_one_out_equals_transformers_on_the_shorter_text(twins, monkeypatch):
    reference, ours = (model.double() for model in twins(**SHAPE))
    monkeypatch.setattr(saliency, "MAX_BATCH_TOKENS", 3 * 8)
    batches = list(leave_one_out(ours, IDS, 7, range(8)))
    assert [len(batch) for batch in batches] == [3, 3, 2]

    def log_p(ids: list[int]) -> float:
        return reference(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1)[7].item()

    expected = [log_p(IDS) - log_p(IDS[:position] + IDS[position + 1 :]) for position in range(8)]
    assert torch.cat(batches).tolist() == pytest.approx(expected, abs=1e-12)
    (two,) = leave_one_out(ours, IDS, 7, [6, 2])
    assert two.tolist() == pytest.approx([expected[6], expected[2]], abs=1e-12)
    both = [log_p(IDS[:2]) - log_p(IDS[1:2]), log_p(IDS[:2]) - log_p(IDS[:1])]
    (found,) = leave_one_out(ours, IDS[:2], 7, range(2))
    assert found.tolist() == pytest.approx(both, abs=1e-12)


def test_the_prediction_of_a_copying_model_depends_on_the_copied_tokens():
    a, b, c = 1, 2, 3
    (found,) = leave_one_out(copying_model(), [a, b, c, a], b, range(4))
    first, answer, unneeded, _ = found.tolist()
    assert first > 0.5  # without the first "a" there is no induction
    assert answer > 5  # "a c a" predicts "c"
    assert unneeded == pytest.approx(0, abs=1e-4)  # "a b a" still predicts "b"
