"""The Shapes tab without a browser: the sentences of its controls."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from components.errors import localize_error
from components.panels.shape_settings import RANGES, SWITCHES
from components.tabs.shapes import size, tab
from components.tabs.shapes.building import can_build
from components.tabs.shapes.size import (
    OWN,
    PICKED,
    UNTIED,
    Shape,
    choice_of,
    control_value,
    cost_sentence,
    preset_of,
    slider_end,
)
from gpt import GPT, PRESETS, GPTConfig, LoadedModel, get_model
from gpt.models.checkpoints.vocabularies import PlainIds
from tests.components.drawing import spoken_in
from tests.components.tabs.shapes_session import TINY, drawn, new_session


@pytest.fixture
def session():
    return new_session()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_attention_in_a_skeleton_costs_nothing(language):
    assert " 0 FLOP" in spoken_in(language, cost_sentence, Shape(TINY, True))


@pytest.mark.parametrize("name", [*RANGES, "dropout"])
@pytest.mark.parametrize("value", [None, "12", 1.5, float("nan"), float("inf"), -1, True, [3]])
def test_what_no_control_can_say_is_refused_and_changes_nothing(session, name: str, value: object) -> None:
    said = r"must be a number from 0 to 0\.99\." if name == "dropout" else "must be a whole number of at least"
    with pytest.raises(ValueError, match=said) as refused:
        size.set_value(name, session, value)
    assert "必须是" in spoken_in("zh", localize_error, refused.value)
    assert preset_of(session) == PICKED


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


def test_a_preset_that_is_said_again_leaves_what_was_moved_and_an_unknown_one_all(session):
    size.set_value("n_layer", session, 2)
    for said in (OWN, "none", None, ["gpt2"]):
        size.choose_preset(session, said)
        assert choice_of(session).shape.config.n_layer == 2


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
    assert control_value("n_head", session.snapshot()) == 13
    assert not can_build(session.snapshot())
    size.set_value("n_head", session, 16)
    assert drawn(session)["notice"]["text"] == ""
    assert can_build(session.snapshot())


def test_the_sliders_reach_as_far_as_the_model_that_they_were_set_to(session):
    size.set_shape(session, replace(TINY, n_embd=6, n_layer=120))
    size.set_value("n_layer", session, 5)
    assert slider_end("n_layer", 1, session.snapshot()) == 120
    assert slider_end("n_embd", 0, session.snapshot()) == 6
    size.set_shape(session, TINY)
    assert slider_end("n_layer", 1, session.snapshot()) == 96


def test_a_shape_can_be_set_whole_or_as_a_skeleton(session):
    size.set_shape(session, PRESETS["gpt2"], skeleton=True)
    assert preset_of(session) == OWN
    assert {name: control_value(name, session.snapshot()) for name in SWITCHES} == {
        "tie_weights": True,
        "bias": True,
        "qkv_bias": True,
        "rotary": False,
        "rms": False,
        "gated": False,
        "skeleton": True,
    }
    size.set_shape(session, PRESETS["gpt2"])
    assert preset_of(session) == "gpt2"


def test_the_picked_model_is_followed_until_another_shape_is_chosen_and_loaded_where_it_is_not(session):
    def picks(name):
        """Pick a model and open the tab. Returns how often the page is updated."""
        session.model = name
        return len([*tab.open_tab(session)])

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


def test_a_picked_model_that_cannot_be_loaded_is_said_elsewhere_and_changes_nothing(session):
    session.model = "none"
    [*tab.open_tab(session)]
    assert choice_of(session).shape.config == get_model().model.config
