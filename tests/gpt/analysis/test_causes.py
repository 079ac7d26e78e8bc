"""The strongest causes of a prediction, against passes that really lack the token or the head."""

from __future__ import annotations

import copy

import pytest
import torch

from gpt import Edits, load_model
from gpt.analysis.causes import N_HEADS, strongest_causes
from gpt.model import GPT

MODEL = load_model("stories", device="cpu", trainable=True)
IDS = MODEL.tokenizer.encode("Lily saw a dog. The dog saw Lily. Then Lily and the")
TOKEN = MODEL.tokenizer.encode(" dog")[0]


@torch.inference_mode()
def probability(model: GPT, ids: list[int]) -> float:
    return model(torch.tensor([ids]))[0, -1].softmax(dim=-1)[TOKEN].item()


def without_head(layer: int, head: int) -> GPT:
    """A copy whose head adds nothing: its columns of c_proj are zero."""
    model = copy.deepcopy(MODEL.model)
    size = model.config.head_size
    with torch.no_grad():
        model.blocks[layer].attn.c_proj.weight[:, head * size : (head + 1) * size] = 0
    return model


def test_the_causes_are_the_token_and_the_head_without_which_the_probability_is_lowest() -> None:
    found = strongest_causes(MODEL.model, IDS, TOKEN, range(len(IDS)))
    assert found.probability == pytest.approx(probability(MODEL.model, IDS), rel=1e-4)
    gaps = [probability(MODEL.model, IDS[:i] + IDS[i + 1 :]) for i in range(len(IDS))]
    assert found.token is not None
    assert found.token.probability == pytest.approx(min(gaps), rel=1e-3)
    assert found.token.place == gaps.index(min(gaps))
    assert found.head is not None
    assert isinstance(found.head.place, tuple)
    assert found.head.probability == pytest.approx(probability(without_head(*found.head.place), IDS), rel=1e-3)
    assert found.head.probability < found.probability


def test_edits_hold_in_every_pass_and_one_token_alone_has_no_earlier_one() -> None:
    config = MODEL.model.config
    others = {(layer, head): 0.0 for layer in range(config.n_layer) for head in range(config.n_head)}
    off = Edits(head_scale=others)
    found = strongest_causes(MODEL.model, IDS, TOKEN, range(len(IDS)), off)
    assert found.head is None  # all are off already
    assert strongest_causes(MODEL.model, IDS[:1], TOKEN, range(1)).token is None
    assert N_HEADS < config.n_layer * config.n_head
