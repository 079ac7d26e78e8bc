"""Two documents generated in lockstep, and the divergence of their predictions."""

from __future__ import annotations

import math

import pytest
import torch

from gpt import GPT, Edits, Generation, GPTConfig, LoadedModel, SamplingParams
from gpt.documents.comparison import Comparison, Divergence, divergence_index, same_vocabulary
from gpt.documents.generation import together
from gpt.inference import engine
from gpt.tokenizer import PlainIds
from tests.gpt.fake_models import forced_model, tiny_model

GREEDY = SamplingParams(temperature=0, seed=0)
WARM = SamplingParams(temperature=2.0, seed=5)


def divergences(left, right, left_params, right_params) -> list[Divergence]:
    comparison = Comparison(left, right, left_params, right_params)
    comparison.measure()
    return comparison.divergences


def pair(left=None, right=None):
    left = left or tiny_model()
    documents = Generation(left, "the cat"), Generation(right or left, "the cat")
    for document in documents:
        document.read()
    return documents


def test_two_documents_of_one_model_share_their_passes(monkeypatch):
    left, right = pair()
    right.append(99)
    alone = [[step.token_id for step in each.copy().steps(WARM, n)] for each, n in ((left, 4), (right, 4))]
    passes, batched = [], engine.batched_hidden_states
    monkeypatch.setattr(engine, "batched_hidden_states", lambda *what: passes.append(len(what[1])) or batched(*what))
    both = list(together([(left, WARM), (right, WARM)], 4))
    assert [list(ids) for ids in zip(*([a.token_id, b.token_id] for a, b in both), strict=True)] == alone
    assert passes == [2, 2, 2]  # the first token of each was read before
    changed = Generation(left.loaded, "the cat", edits=Edits(mlp_scale={0: 0.0}))
    list(together([(left, WARM), (changed, WARM)], 2))  # an edited text has its own passes
    assert passes == [2, 2, 2]


def test_steps_are_none_after_the_shorter_document_and_errors_and_close_are_passed_on():
    model = forced_model([97, 97, 259] + [97] * 21)
    # Of this model and of another one.
    for long in (Generation(model, "abcd"), Generation(forced_model([97] * 24), "ab")):
        both = list(together([(Generation(model, "ab"), GREEDY), (long, GREEDY)], 4))
        assert [a and a.finish_reason for a, _ in both] == [None, "end_of_text", None, None]
        assert [a is None for a, _ in both] == [False, False, True, True]
        assert [b.token_id for _, b in both] == [97] * 4
    full = Generation(model, [97] * model.model.config.block_size)
    full.step(GREEDY)
    with pytest.raises(ValueError, match="is full"):
        list(together([(Generation(model, "ab"), GREEDY), (full, GREEDY)], 4))
    left = together([(document, GREEDY) for document in pair()], 4)
    next(left)
    left.close()


@pytest.mark.parametrize(
    ("left", "right", "where"),
    [([1, 2, 3], [1, 5, 3], 1), ([1, 2], [1, 2], None), ([1, 2], [1, 2, 3], None), ([4], [5], 0)],
)
def test_divergence_index_is_the_first_position_that_differs(left, right, where):
    assert divergence_index(left, right) == where


def test_divergence_of_two_models_is_as_calculated_by_hand():
    left, right = pair(tiny_model(), tiny_model(n_layer=1, seed=8))
    found = divergences(left, right, SamplingParams(), SamplingParams())
    assert len(found) == 5
    for position, d in enumerate(found):
        p = left.logits(position).double().softmax(dim=0)
        q = right.logits(position).double().softmax(dim=0)
        by_hand = (p * (p / q).log2()).sum().item()
        assert d.raw == pytest.approx(by_hand, abs=1e-5)
        assert d.final == pytest.approx(by_hand, abs=1e-5)
        assert by_hand > 0.001


def test_settings_change_only_the_final_divergence_which_is_infinite_where_right_removes_tokens():
    left, right = pair()
    found = divergences(left, right, SamplingParams(0.5), SamplingParams(2.0))
    assert all(d.raw == 0 and 0 < d.final < math.inf for d in found)
    assert all(d.final == math.inf for d in divergences(left, right, SamplingParams(), SamplingParams(top_k=3)))
    assert all(0 < d.final < math.inf for d in divergences(left, right, SamplingParams(top_k=3), SamplingParams()))


def test_measuring_while_both_grow_equals_measuring_at_once_and_ends_where_they_differ():
    left, right = pair()
    comparison = Comparison(left, right, WARM, GREEDY)
    assert [comparison.measure(2), comparison.measure(2)] == [2, 2]
    for _ in together([(left, WARM), (right, GREEDY)], 8):
        comparison.measure()
    assert comparison.divergence_index == divergence_index(left.ids, right.ids) < len(left.ids) - 1
    assert len(comparison.divergences) == comparison.divergence_index
    assert comparison.divergences == divergences(left, right, WARM, GREEDY)
    assert comparison.measure() == 0


def test_models_with_different_vocabularies_are_not_comparable():
    model = GPT(GPTConfig(vocab_size=12, block_size=24, n_layer=1, n_head=1, n_embd=8)).eval()
    other = LoadedModel("other", model, PlainIds(12), torch.device("cpu"), "fp32")
    left, right = Generation(tiny_model(), "the cat"), Generation(other, [3, 4])
    assert same_vocabulary(tiny_model(), tiny_model(seed=2))
    assert not same_vocabulary(left.loaded, other)
    apart = Comparison(left, right, GREEDY, GREEDY)
    assert (apart.comparable, apart.measure(), apart.divergence_index) == (False, 0, None)
