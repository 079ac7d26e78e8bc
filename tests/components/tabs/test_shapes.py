"""The Shapes tab without a browser: settings, their sentences, and building a shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from components.panels.shape_settings import shape_of, values_of
from components.state.session import Session
from components.tabs.shapes import building, size
from components.tabs.shapes.building import Building, can_build, open_tab, shapes_card
from components.tabs.shapes.size import (
    OWN,
    PICKED,
    UNTIED,
    choice_of,
    preset_of,
)
from gpt import GPT, Generation, GPTConfig, LoadedModel, get_model
from gpt.experiments.random_models import RandomModels
from gpt.tokenizer import PlainIds
from tests.components.drawing import Drawn
from tests.gpt.family_configs import FAMILIES

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)
SMALL = replace(TINY, vocab_size=5000, block_size=64)
PROMPT = "The <b>dog</b> and"


def drawn(session: Session, models: RandomModels | None = None, example: Generation | None = None) -> dict[str, Any]:
    """Return the data of each view of a newly opened page."""
    session.sent.clear()
    views = Drawn(session, size.tab, shapes_card(models or RandomModels(), example)).update()
    return {name.removeprefix("shape-"): data for name, data in views.items() if name.startswith("shape-")}


@pytest.fixture
def session():
    return Session(Generation(get_model(), PROMPT), PROMPT)


def test_a_preset_shows_its_numbers_and_moving_a_control_makes_it_one_s_own(session):
    size.choose_preset(session, UNTIED)
    shown = drawn(session)
    assert shown["headline"]["text"] == "163,009,536 parameters"
    assert "124,412,160 with a tied head" in shown["parts"]["text"]
    assert shown["sizes"]["rows"][1][1] == "621.83 MiB"
    assert ["h.N.attn.c_attn.weight", "[2304, 768]", "× 12", "21,233,664"] in shown["weights"]["rows"]
    assert sum(int(row[3].replace(",", "")) for row in shown["weights"]["rows"][1:]) == 163_009_536
    size.set_value("tie_weights", session, True)
    assert drawn(session)["headline"]["text"] == "124,412,160 parameters"
    assert preset_of(session) == OWN
    size.set_value("qkv_bias", session, True)
    assert preset_of(session) == "gpt2"
    size.set_value("dropout", session, 0.2)
    size.set_value("n_layer", session, 13)
    assert choice_of(session).shape.config.dropout == 0.2
    assert drawn(session)["headline"]["text"] == "131,527,680 parameters"  # one more block: 7,087,872


def test_a_wrong_combination_says_why_and_all_else_stays(session):
    size.choose_preset(session, "gpt2")
    before = drawn(session)
    size.set_value("n_head", session, 13)
    session.language = "zh"
    assert "宽度 768 不能被头数 13 整除" in drawn(session)["notice"]["text"]
    session.language = "en"
    shown = drawn(session)
    assert "Width 768 is not divisible by 13 heads" in shown["notice"]["text"]
    assert shown | {"notice": None} == before | {"notice": None}
    assert preset_of(session) == OWN
    assert choice_of(session).values["n_head"] == 13
    assert not can_build(session.snapshot())
    size.set_value("n_head", session, 16)
    assert drawn(session)["notice"]["text"] == ""
    assert can_build(session.snapshot())


def test_the_picked_model_is_followed_until_another_shape_is_chosen_and_loaded_where_it_is_not(session):
    def picks(name):
        """Pick a model and open the tab. Returns how often the page is updated."""
        session.model = name
        return len([*open_tab(session)])

    config = GPTConfig(vocab_size=12, block_size=24, n_layer=1, n_head=1, n_embd=8)
    session.loaded = LoadedModel("other", GPT(config).eval(), PlainIds(12), torch.device("cpu"), "fp32")
    assert picks("other") == 0
    assert choice_of(session).shape.config == config
    picks("stories")
    assert picks("stories") == 0
    assert choice_of(session).shape.config == get_model().model.config
    assert preset_of(session) == PICKED
    size.choose_preset(session, OWN)
    assert picks("other") == 0
    session.loaded = replace(session.loaded, name="other", model=GPT(config))
    assert choice_of(session).shape.config == get_model().model.config
    size.choose_preset(session, PICKED)
    assert choice_of(session).shape.config == config


def built(session, models=None):
    list(building.build(models or RandomModels(), session))
    return drawn(session)


def test_both_models_go_on_with_the_prompt_in_turn_and_its_shapes_are_shown(session):
    size.set_shape(session, SMALL)
    session.settings = session.settings.with_value("seed", "1")
    n_prompt = len(get_model().tokenizer.encode(PROMPT))
    lengths = []
    for _ in building.build(RandomModels(), session):
        assert session.state(Building).job is not None
        shown = drawn(session)
        lengths.append((len(shown["random"]["lines"]), len(shown["trained"]["lines"])))
    shown = drawn(session)
    grown = [pair for pair in lengths if pair != (0, 0)]
    assert grown[0] == (n_prompt, n_prompt)
    assert grown == sorted(grown)
    assert all(abs(random - trained) <= 1 for random, trained in grown[:-1])
    assert len(shown["trained"]["lines"]) == n_prompt + building.LENGTH
    assert shown["status"]["text"].endswith("40 tokens")
    assert "random weights drawn in" in shown["status"]["text"]
    assert shown["trained-name"]["text"] == "Trained: Stories"
    assert f"turns [1, {n_prompt}] token ids into [1, {n_prompt}, 5000]" in shown["stages"]["text"]
    assert session.state(Building).job is None


def test_a_shape_over_the_limit_is_counted_and_not_built(session):
    size.choose_preset(session, "gpt2-xl")
    shown = drawn(session)
    assert shown["headline"]["text"] == "1,557,611,200 parameters"
    assert "would need 6.69 GiB" in shown["room"]["text"]
    assert not can_build(session.snapshot())
    assert "would need 6.69 GiB" in built(session)["trouble"]["text"]
    assert session.state(Building).built is None


def test_what_cannot_be_built_is_one_sentence_until_a_control_is_moved_and_the_last_texts_stay(session):
    size.set_shape(session, SMALL)
    before, settings = built(session), session.settings

    def refused(says):
        after = built(session)
        assert says in after["trouble"]["text"]
        assert all(after[view] == before[view] for view in ("random", "trained", "status", "stages"))
        assert session.state(Building).job is None

    for name, value, says in (("prompt", "word " * 300, "The prompt"), ("model", "none", "no model")):
        own = getattr(session, name)
        setattr(session, name, value)
        refused(says)
        setattr(session, name, own)
    session.settings = settings.with_value("seed", "x")
    refused("seed")
    session.settings = settings
    for name, value, says in (("n_head", 7, "not divisible by 7 heads"), ("vocab_size", 100, "257")):
        size.set_shape(session, SMALL)
        size.set_value(name, session, value)
        refused(says)
    size.set_value("n_layer", session, 2)
    assert drawn(session)["trouble"]["text"] == ""


def test_the_page_s_text_stands_beside_random_weights_until_something_is_built(session):
    written = Generation(get_model(), PROMPT)
    list(written.steps(session.settings.sampling_with_seed(), 5))
    session.sent.clear()
    drawn = Drawn(session, size.tab, shapes_card(RandomModels(), written))
    views = drawn.update()
    assert views["shape-status"]["text"].startswith("Sample: 4,394,880 random weights")
    assert len(views["shape-trained"]["lines"]) == len(written.ids)
    assert "Trained: Stories" in views["shape-trained-name"]["text"]
    size.set_shape(session, SMALL)
    list(building.build(RandomModels(), session))
    assert not drawn.update()["shape-status"]["text"].startswith("Sample")


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES)
def test_options_without_a_control_stay_as_they_were(config: GPTConfig) -> None:
    assert shape_of(values_of(config), config) == config
    moved = shape_of(values_of(config) | {"n_layer": 1, "n_kv_head": 0}, config)
    assert (moved.n_layer, moved.kv_heads, moved.qk_norm, moved.window) == (1, 4, config.qk_norm, config.window)


def test_heads_of_keys_that_cannot_be_shared_evenly_are_refused() -> None:
    given = values_of(GPTConfig())
    assert shape_of(given | {"n_kv_head": 4, "rms": True, "gated": True}) == GPTConfig(
        n_kv_head=4, norm="rms", gated=True
    )
    with pytest.raises(ValueError, match=r"12 query heads cannot share 5 .* Try 4 or 6 instead\."):
        shape_of(given | {"n_kv_head": 5})
