"""Activation patching of a copying model with known circuits, and of random models."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis import patching
from gpt.analysis.patching import attribution_patching, patch_from, patch_sweep, path_sweep
from gpt.analysis.tracing import trace_text
from gpt.edits import PATCHABLE, Edits, Hook
from gpt.trace import Trace
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


@pytest.mark.parametrize("name", [*PATCHABLE, "head_out"])
@torch.inference_mode()
def test_a_sweep_is_one_pass_with_one_patch_for_each_cell(model, name, monkeypatch):
    model.double()
    monkeypatch.setattr(patching, "MAX_BATCH_TOKENS", 4 * 8)  # batches of four cells
    done: list[tuple[int, int]] = []
    sweep = patch_sweep(model, CLEAN, CORRUPTED, 7, 9, name=name, progress=lambda *counts: done.append(counts))
    heads = range(4) if name == "head_out" else [None]
    n_passes = 3 * -(-6 * len(heads) // 4)  # six positions from the first difference on
    assert done == [(count, n_passes) for count in range(1, n_passes + 1)]
    idx = torch.tensor([CORRUPTED])
    clean, corrupted = ((model(torch.tensor([ids]))[0, -1]) for ids in (CLEAN, CORRUPTED))
    best, worst = (logits[7] - logits[9] for logits in (clean, corrupted))
    assert (sweep.clean, sweep.corrupted) == pytest.approx((best.item(), worst.item()), abs=1e-9)
    for layer, head, position in itertools.product(range(3), heads, range(8)):
        patch = patch_from(model, CLEAN, name, layer, position, head)
        logits = model(idx, edits=Edits(patches=(patch,)))[0, -1]
        expected = (logits[7] - logits[9] - worst) / (best - worst)
        found = sweep.recovered[layer] if head is None else sweep.recovered[layer, head]
        assert_close(found[position], expected, atol=1e-9, rtol=0)
    if name == "head_out":
        whole = patch_sweep(model, CLEAN, CORRUPTED, 7, 9, name=name, each_position=False).recovered
        all_of_it = tuple(patch_from(model, CLEAN, name, 1, position, 2) for position in range(8))
        logits = model(idx, edits=Edits(patches=all_of_it))[0, -1]
        assert_close(whole[1, 2], (logits[7] - logits[9] - worst) / (best - worst), atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ["resid_mid", "head_out"])
def test_attribution_patching_is_the_slope_of_each_patch(model, name):
    model.double()
    found = attribution_patching(model, CLEAN, CORRUPTED, 7, 9, name=name)
    good, bad = (getattr(trace_text(model, ids).layers[1], name)[0] for ids in (CLEAN, CORRUPTED))
    for cell in [(2, 4), (0, 7)] if name == "head_out" else [(4,), (7,)]:
        logits = []
        for step in (-1e-4, 1e-4):

            def moved(x, step=step, cell=cell):
                x[0][cell] += step * (good - bad)[cell]
                return x

            edits = Edits(hooks=(Hook(name, 1, moved),))
            with torch.inference_mode():
                logits.append(model(torch.tensor([CORRUPTED]), edits=edits)[0, -1])
        slope = (logits[1][7] - logits[1][9] - logits[0][7] + logits[0][9]) / 2e-4
        assert_close(found.recovered[1][cell], slope / (found.clean - found.corrupted), atol=1e-7, rtol=1e-4)


@pytest.mark.parametrize("receiver", [None, (2, 3, "q"), (2, 1, "k"), (1, 0, "v")])
@torch.inference_mode()
def test_a_path_is_a_patch_with_everything_else_frozen(model, receiver):
    model.double()
    found = path_sweep(model, CLEAN, CORRUPTED, 7, 9, receiver=receiver)
    idx, bad = torch.tensor([CORRUPTED]), trace_text(model, CORRUPTED)
    places = [(name, layer) for name in ("attn_out", "mlp_out") for layer in range(3)]
    frozen = [Hook(*place, lambda _, place=place: bad[f"layers.{place[1]}.{place[0]}"]) for place in places]
    sweep = patch_sweep(model, CLEAN, CORRUPTED, 7, 9)

    def recovered(sent: Hook, name: str) -> float:
        """Return what a change recovers if all other additions to the stream keep their values."""
        rest = [hook for hook in frozen if (hook.name, hook.layer) != (name, sent.layer)]
        trace = Trace(full=True)
        logits = model(idx, edits=Edits(hooks=(sent, *rest)), trace=trace)[0, -1]
        if receiver is not None:
            layer, head, part = receiver
            row = torch.tensor([head if part == "q" else head // (model.config.n_head // model.config.kv_heads)])
            value = trace[f"layers.{layer}.attn_{part}"][:, row]
            patched = Hook(f"attn_{part}", layer, lambda x: x.index_copy(1, row, value))
            logits = model(idx, edits=Edits(hooks=(patched,)))[0, -1]
        return float((logits[7] - logits[9] - sweep.corrupted) / (sweep.clean - sweep.corrupted))

    last = 3 if receiver is None else receiver[0]
    for layer, head in [(0, 1), (1, 3)]:
        patches = Edits(patches=tuple(patch_from(model, CLEAN, "head_out", layer, at, head) for at in range(8)))
        sent = Hook("head_out", layer, lambda x, layer=layer, patches=patches: patches.apply(layer, "head_out", x, 0))
        expected = recovered(sent, "attn_out") if layer < last else 0.0
        assert found.heads[layer, head].item() == pytest.approx(expected, abs=1e-9)
        good = trace_text(model, CLEAN).layers[layer].mlp_out
        expected = recovered(Hook("mlp_out", layer, lambda _, good=good: good), "mlp_out") if layer < last else 0.0
        assert found.mlp[layer].item() == pytest.approx(expected, abs=1e-9)
