"""The strongest causes of a prediction, compared with passes that lack the token or the head."""

from __future__ import annotations

import copy

import pytest
import torch

from gpt import Edits, load_model
from gpt.analysis.causes import N_HEADS, Ablation, measure_causes, predict_without
from gpt.model import GPT

MODEL = load_model("stories", device="cpu", trainable=True)
IDS = MODEL.tokenizer.encode("Lily saw a dog. The dog saw Lily. Then Lily and the")
TOKEN = MODEL.tokenizer.encode(" dog")[0]


@torch.inference_mode()
def probability(model: GPT, ids: list[int]) -> float:
    return model(torch.tensor([ids]))[0, -1].softmax(dim=-1)[TOKEN].item()


def without_head(layer: int, head: int) -> GPT:
    """Return a copy whose head adds nothing: its columns of c_proj are zero."""
    model = copy.deepcopy(MODEL.model)
    size = model.config.head_size
    with torch.no_grad():
        model.blocks[layer].attn.c_proj.weight[:, head * size : (head + 1) * size] = 0
    return model


def p_of(logits: torch.Tensor) -> float:
    return logits.softmax(dim=-1)[TOKEN].item()


def test_each_word_and_each_head_is_measured_without_it() -> None:
    words = [(0,), (2, 3), (4,)]
    found = measure_causes(MODEL.model, IDS, TOKEN, words)
    assert p_of(found.logits) == pytest.approx(probability(MODEL.model, IDS), rel=1e-4)
    assert [cause.place for cause in found.words] == words
    for cause in found.words:
        rest = [token for i, token in enumerate(IDS) if i not in cause.place]
        assert p_of(cause.logits) == pytest.approx(probability(MODEL.model, rest), rel=1e-3)
    assert len(found.heads) == N_HEADS
    for cause in found.heads[:2]:
        assert p_of(cause.logits) == pytest.approx(probability(without_head(*cause.place), IDS), rel=1e-3)


def test_edits_hold_in_every_pass_and_one_token_alone_has_no_other() -> None:
    config = MODEL.model.config
    off = Edits(head_scale={(layer, head): 0.0 for layer in range(config.n_layer) for head in range(config.n_head)})
    found = measure_causes(MODEL.model, IDS, TOKEN, [], off)
    for cause in found.heads:  # all of them are off already
        assert p_of(cause.logits) == pytest.approx(p_of(found.logits), rel=1e-4)
    assert measure_causes(MODEL.model, IDS[:1], TOKEN, []).words == ()
    with pytest.raises(ValueError, match="at least 2"):
        measure_causes(MODEL.model, IDS[:1], TOKEN, [(0,)])


def predicted(tokens=(), heads=(), reads=(), edits: Edits | None = None) -> float:
    ablation = Ablation(frozenset(tokens), frozenset(heads), frozenset(reads))
    return p_of(predict_without(MODEL.model, IDS, ablation, edits))


def test_a_prediction_without_tokens_and_heads_is_that_of_passes_that_lack_them() -> None:
    assert predicted() == pytest.approx(probability(MODEL.model, IDS), rel=1e-4)
    rest = [token for i, token in enumerate(IDS) if i not in (3, 5)]
    assert predicted(tokens=(3, 5)) == pytest.approx(probability(MODEL.model, rest), rel=1e-3)
    both = predicted(tokens=(3, 5), heads=[(3, 1)])
    assert both == pytest.approx(probability(without_head(3, 1), rest), rel=1e-3)


@pytest.mark.parametrize("edits", [None, Edits(head_scale={(2, 1): 0.5}, attn_scale={2: 1.5})])
def test_without_all_its_reads_a_head_adds_nothing_at_the_last_position(edits: Edits | None) -> None:
    """Nothing else in the last layer depends on a head, so there this equals switching it off."""
    last = MODEL.model.config.n_layer - 1
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
