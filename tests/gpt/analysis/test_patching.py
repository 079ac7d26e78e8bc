"""Activation patching of a copying model with known circuits, and of random models."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis import patching
from gpt.analysis.patching import patch_sweep
from gpt.analysis.tracing import trace_text
from gpt.edits import PATCHABLE, Edits, Patch
from tests.gpt.analysis.copying_model import copying_model

CLEAN, CORRUPTED = [3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 8, 1, 5, 9, 2, 6]  # they differ at position 2


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("resid_pre", [[1, 0, 0, 0], [0, 1, 0, 0]]),  # at the position of "a", then of "b"
        # The previous-token head at "b", then the induction head at the last token.
        ("attn_out", [[0, 1, 0, 0], [0, 0, 0, 1]]),
        ("resid_mid", [[0, 1, 0, 0], [0, 0, 0, 1]]),
        ("mlp_out", [[0, 0, 0, 0], [0, 0, 0, 0]]),  # this model has no feed-forward part
    ],
)
def test_patching_a_copying_model_recovers_the_answer_along_its_circuit(name, answer):
    a, b, c, x = 1, 2, 3, 4
    sweep = patch_sweep(copying_model(), [a, b, c, a], [x, b, c, a], b, c, name=name)
    assert sweep.clean > 5
    assert sweep.corrupted == pytest.approx(0, abs=1e-4)  # without "a b", the logits of "b" and "c" are equal
    assert_close(sweep.recovered, torch.tensor(answer, dtype=torch.float32), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", PATCHABLE)
@torch.inference_mode()
def test_a_sweep_is_one_pass_with_one_patch_for_each_cell(model, name, monkeypatch):
    model.double()
    # Six positions from the first difference on: batches of four and two.
    monkeypatch.setattr(patching, "MAX_BATCH_TOKENS", 4 * 8)
    done: list[tuple[int, int]] = []
    sweep = patch_sweep(model, CLEAN, CORRUPTED, 7, 9, name=name, progress=lambda *counts: done.append(counts))
    assert done == [(count, 6) for count in range(1, 7)]
    idx, trace = torch.tensor([CORRUPTED]), trace_text(model, CLEAN)
    clean, corrupted = ((model(torch.tensor([ids]))[0, -1]) for ids in (CLEAN, CORRUPTED))
    best, worst = (logits[7] - logits[9] for logits in (clean, corrupted))
    assert (sweep.clean, sweep.corrupted) == pytest.approx((best.item(), worst.item()), abs=1e-9)
    for layer in range(3):
        for position in range(8):
            value = getattr(trace.layers[layer], name)[0, position]
            logits = model(idx, edits=Edits(patches=(Patch(name, layer, position, value),)))[0, -1]
            expected = (logits[7] - logits[9] - worst) / (best - worst)
            assert_close(sweep.recovered[layer, position], expected, atol=1e-9, rtol=0)
