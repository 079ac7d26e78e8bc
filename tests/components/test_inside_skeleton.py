"""The skeleton in the machine's place, against embedding and head multiplied by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from components.labels import token_text, visible
from components.state.selection import Selection
from components.tabs.inside.machine import MODELS, shows_skeleton
from components.tabs.inside.part import Scene
from components.tabs.inside.record import BINS, Record, pooled
from components.tabs.inside.skeleton import STREAM, skeleton_flow, skeleton_pass
from components.tabs.inside.views import flow
from gpt import Generation, LoadedModel
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.tokenizer import Tokenizer
from tests.components.test_inside import document_of, unpacked
from tests.conftest import randomized

TEXT = "the <b>cat</b> sat there"
LOOK = Selection(position=7, layer=1, head=2)


@pytest.fixture(params=[("learned", True), ("learned", False), ("rotary", True)])
def document(request: pytest.FixtureRequest, byte_tokenizer: Tokenizer) -> Generation:
    position, tied = request.param
    shape = {"n_layer": 3, "n_head": 3, "n_embd": 36, "position": position, "tie_weights": tied}
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=96, **shape)
    return document_of(randomized(GPT(config), 0.2).eval(), byte_tokenizer, TEXT)


@pytest.fixture
def record(document: Generation) -> Record:
    made = Record(document)
    made.extend()
    return made


def by_hand(document: Generation) -> torch.Tensor:
    """(T, n_embd): what is embedded of the text."""
    model = document.loaded.model
    x = model.wte.weight[torch.tensor(document.ids)]
    return (x if model.wpe is None else x + model.wpe.weight[: len(x)]).detach()


def test_the_bars_are_the_head_s_answer_to_the_embedding_alone(record: Record) -> None:
    document = record.document
    expected = F.linear(by_hand(document)[LOOK.position], document.loaded.model.lm_head.weight).detach()
    _, logits = skeleton_pass(record, LOOK.position)
    torch.testing.assert_close(logits, expected, atol=1e-6, rtol=1e-6)
    best = expected.softmax(0).topk(8)
    shown = json.loads(skeleton_flow(record, LOOK, "en"))["next"]
    assert [p for _, p in shown] == pytest.approx(best.values.tolist(), rel=1e-3)
    names = [visible(token_text(document.loaded.tokenizer, i)) for i in best.indices.tolist()]
    assert [name for name, _ in shown] == names


def test_one_vector_goes_through_all_columns(record: Record) -> None:
    content = json.loads(skeleton_flow(record, LOOK, "en"))
    expected = pooled(by_hand(record.document).numpy(), BINS)
    for name in STREAM:
        strip = content["strips"][name]
        scale = float(strip["scale"])
        np.testing.assert_allclose(
            unpacked(strip, record.length), expected.clip(-scale, scale), atol=scale / 255 + 1e-6
        )
    learned = record.config.position == "learned"
    assert set(content["strips"]) == {"tok", *STREAM} | ({"pos"} if learned else set())
    assert not any(content["row"])


def test_what_stands_before_the_last_token_changes_nothing(document: Generation) -> None:
    other = Generation(document.loaded, [5] * (len(document.ids) - 1) + document.ids[-1:])
    other.read()
    bars = []
    for each in (document, other):
        record = Record(each)
        record.extend()
        bars.append([json.loads(draw(record, Selection(), "en"))["next"] for draw in (skeleton_flow, flow)])
    assert bars[0][0] == bars[1][0]
    assert bars[0][1] != bars[1][1]


def test_the_shared_model_keeps_its_parts(record: Record) -> None:
    before, parts = flow(record, LOOK, "en"), list(record.document.loaded.model.named_modules())
    skeleton_flow(record, LOOK, "en")
    assert flow(record, LOOK, "en") == before
    assert list(record.document.loaded.model.named_modules()) == parts


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_part_has_three_lines_and_a_place_beside_the_whole_model_s(record: Record, language: str) -> None:
    bare, whole = (json.loads(draw(record, LOOK, language)) for draw in (skeleton_flow, flow))
    assert all(text.count("\n") == 2 for text in bare["words"].values())
    kept = ("doc", "start", "total", "selected", "layer", "head", "n_layer", "n_head", "tokens")
    assert [bare[name] for name in kept] == [whole[name] for name in kept]


def test_the_skeleton_stays_until_it_is_left_or_another_model_comes(record: Record) -> None:
    switch, kept = object(), {}

    def shown(record: Record, chosen: str, *, moved: bool) -> bool:
        scene = Scene(record, LOOK, 7, None, "en", {switch: chosen}, kept, switch if moved else None)
        return shows_skeleton(scene, switch)

    whole, skeleton = MODELS
    assert not shown(record, whole, moved=False)
    assert shown(record, skeleton, moved=True)
    assert shown(record, whole, moved=False)  # sent before the switch was moved
    loaded = record.document.loaded
    other = document_of(loaded.model, loaded.tokenizer, TEXT)
    other.loaded = replace(loaded, name="another")
    assert isinstance(other.loaded, LoadedModel)
    assert not shown(Record(other), skeleton, moved=False)
    assert shown(Record(other), skeleton, moved=True)
    assert not shown(Record(other), whole, moved=True)
