"""Input x gradient and leave-one-out, compared with transformers and finite differences."""

from __future__ import annotations

import pytest
import torch

from gpt.analysis import saliency
from gpt.analysis.saliency import leave_one_out
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
SHAPE = {"vocab_size": 61, "n_positions": 16, "n_layer": 3, "n_head": 3, "n_embd": 24}


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
