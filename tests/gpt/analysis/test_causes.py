"""What a prediction depends on: words, heads, embeddings, activations."""

from __future__ import annotations

import copy
import itertools
from functools import cache

import pytest
import torch
from torch.testing import assert_close

from gpt import load_model
from gpt.analysis import patching, saliency
from gpt.analysis.patching import attribution_patching, patch_from, patch_sweep, path_sweep
from gpt.analysis.saliency import N_HEADS, Ablation, leave_one_out, measure_causes, predict_without
from gpt.analysis.tracing import trace_text
from gpt.edits import Edits, Hook
from gpt.model import GPT
from gpt.models.sources import BUNDLED
from gpt.tokenizer import load_vocabulary
from gpt.trace import Trace
from tests.gpt.analysis.copying_model import copying_model

TOKENIZER = load_vocabulary(BUNDLED / "vocab.tiktoken")

IDS = TOKENIZER.encode("Lily saw a dog. The dog saw Lily. Then Lily and the")

TOKEN = TOKENIZER.encode(" dog")[0]


@cache
def stories() -> GPT:
    """Return the bundled model."""
    return load_model("stories", device="cpu", trainable=True).model


@torch.inference_mode()
def probability(model: GPT, ids: list[int]) -> float:
    return model(torch.tensor([ids]))[0, -1].softmax(dim=-1)[TOKEN].item()


def without_head(layer: int, head: int) -> GPT:
    """Return a copy whose head adds nothing: its columns of c_proj are zero."""
    model = copy.deepcopy(stories())
    size = model.config.head_size
    with torch.no_grad():
        model.blocks[layer].attn.c_proj.weight[:, head * size : (head + 1) * size] = 0
    return model


def p_of(logits: torch.Tensor) -> float:
    return logits.softmax(dim=-1)[TOKEN].item()


def test_each_word_and_each_head_is_measured_without_it() -> None:
    words = [(0,), (2, 3), (4,)]
    found = measure_causes(stories(), IDS, TOKEN, words)
    assert p_of(found.logits) == pytest.approx(probability(stories(), IDS), rel=1e-4)
    assert list(found.words) == words
    for word, logits in found.words.items():
        rest = [token for i, token in enumerate(IDS) if i not in word]
        assert p_of(logits) == pytest.approx(probability(stories(), rest), rel=1e-3)
    assert len(found.heads) == N_HEADS
    for head, logits in [*found.heads.items()][:2]:
        assert p_of(logits) == pytest.approx(probability(without_head(*head), IDS), rel=1e-3)


def test_edits_hold_in_every_pass_and_one_token_alone_has_no_other() -> None:
    config = stories().config
    off = Edits(head_scale={(layer, head): 0.0 for layer in range(config.n_layer) for head in range(config.n_head)})
    found = measure_causes(stories(), IDS, TOKEN, [], off)
    for logits in found.heads.values():  # all of them are off already
        assert p_of(logits) == pytest.approx(p_of(found.logits), rel=1e-4)
    assert measure_causes(stories(), IDS[:1], TOKEN, []).words == {}
    with pytest.raises(ValueError, match="at least 2"):
        measure_causes(stories(), IDS[:1], TOKEN, [(0,)])


def predicted(tokens=(), heads=(), reads=(), edits: Edits | None = None) -> float:
    ablation = Ablation(frozenset(tokens), frozenset(heads), frozenset(reads))
    return p_of(predict_without(stories(), IDS, ablation, edits))


def test_a_prediction_without_tokens_and_heads_is_that_of_passes_that_lack_them() -> None:
    assert predicted() == pytest.approx(probability(stories(), IDS), rel=1e-4)
    rest = [token for i, token in enumerate(IDS) if i not in (3, 5)]
    assert predicted(tokens=(3, 5)) == pytest.approx(probability(stories(), rest), rel=1e-3)
    both = predicted(tokens=(3, 5), heads=[(3, 1)])
    assert both == pytest.approx(probability(without_head(3, 1), rest), rel=1e-3)


def test_without_all_its_reads_a_head_adds_nothing_at_the_last_position() -> None:
    """Nothing else in the last layer depends on a head, so there this equals switching it off."""
    edits = Edits(head_scale={(2, 1): 0.5}, attn_scale={2: 1.5})
    last = stories().config.n_layer - 1
    every = range(len(IDS))
    silent = predicted(reads=[(last, 2, i) for i in every], edits=edits)
    assert silent == pytest.approx(predicted(heads=[(last, 2)], edits=edits), rel=1e-3)
    assert silent != pytest.approx(predicted(edits=edits), rel=1e-3)
    lower = [(2, 1, i) for i in every]
    assert predicted(reads=lower, heads=[(2, 1)], edits=edits) == pytest.approx(
        predicted(heads=[(2, 1)], edits=edits), rel=1e-4
    )  # there is nothing left to remove
    together = predicted(reads=[*lower, *((last, 2, i) for i in every)], edits=edits)
    assert together == pytest.approx(predicted(reads=lower, heads=[(last, 2)], edits=edits), rel=1e-3)


DIGITS = [3, 1, 4, 1, 5, 9, 2, 6]

SHAPE = {"vocab_size": 61, "n_positions": 16, "n_layer": 3, "n_head": 3, "n_embd": 24}


@torch.inference_mode()
def test_leave_one_out_equals_transformers_on_the_shorter_text(twins, monkeypatch):
    reference, ours = (model.double() for model in twins(**SHAPE))
    monkeypatch.setattr(saliency, "MAX_BATCH_TOKENS", 3 * 8)
    batches = list(leave_one_out(ours, DIGITS, 7, range(8)))
    assert [len(batch) for batch in batches] == [3, 3, 2]

    def log_p(ids: list[int]) -> float:
        return reference(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1)[7].item()

    expected = [log_p(DIGITS) - log_p(DIGITS[:position] + DIGITS[position + 1 :]) for position in range(8)]
    assert torch.cat(batches).tolist() == pytest.approx(expected, abs=1e-12)
    (two,) = leave_one_out(ours, DIGITS, 7, [6, 2])
    assert two.tolist() == pytest.approx([expected[6], expected[2]], abs=1e-12)
    both = [log_p(DIGITS[:2]) - log_p(DIGITS[1:2]), log_p(DIGITS[:2]) - log_p(DIGITS[:1])]
    (found,) = leave_one_out(ours, DIGITS[:2], 7, range(2))
    assert found.tolist() == pytest.approx(both, abs=1e-12)


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


@pytest.mark.parametrize("model", ["gemma2"], indirect=True)
@pytest.mark.parametrize("name", ["resid_mid", "head_out"])
@torch.inference_mode()
def test_a_sweep_is_one_pass_with_one_patch_for_each_cell(model, name, monkeypatch):
    model.double()
    monkeypatch.setattr(patching, "MAX_BATCH_TOKENS", 4 * 8)  # batches of four cells
    done: list[tuple[int, int]] = []
    sweep = patch_sweep(model, CLEAN, CORRUPTED, 7, 9, name=name, progress=lambda *counts: done.append(counts))
    heads = [*range(4)] if name == "head_out" else [None]
    n_passes = 3 * -(-6 * len(heads) // 4)  # six positions from the first difference on
    assert done == [(count, n_passes) for count in range(1, n_passes + 1)]
    idx = torch.tensor([CORRUPTED])
    clean, corrupted = ((model(torch.tensor([ids]))[0, -1]) for ids in (CLEAN, CORRUPTED))
    best, worst = (logits[7] - logits[9] for logits in (clean, corrupted))
    assert (sweep.clean, sweep.corrupted) == pytest.approx((best.item(), worst.item()), abs=1e-9)
    for layer, head, position in itertools.product(range(3), heads[-2:], (0, 2, 5, 7)):
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


@pytest.mark.parametrize("model", ["gemma2"], indirect=True)
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


@pytest.mark.parametrize("model", ["gemma2"], indirect=True)
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
