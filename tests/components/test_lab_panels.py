"""Panels: each fills what it says it fills, in both languages, from nothing but the values of its inputs."""

from __future__ import annotations

import base64
import json
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import gradio as gr
import numpy as np
import pytest
import torch

from components.figures.palette import DARK_PARTNERS
from components.frame import build_frame
from components.labels import percent
from components.localized import Words
from components.panels.feed_forward import hidden
from components.panels.panel import Panel
from components.panels.skeleton import TEXT, small_pair
from components.state.example import example
from components.state.session import Session
from components.tabs.activations.tab import exact_value, swap_value
from gpt import GPT, Generation, GPTConfig, LoadedModel, get_model
from gpt.experiments.activations import pre_activations
from gpt.model import ACTIVATIONS
from gpt.models.checkpoints.vocabularies import Characters

PANELS = (
    "layer_norm",
    "shortcuts",
    "tokenizer",
    "masks",
    "initialisation",
    "tying",
    "kernels",
    "positions",
    "skeleton",
    "feed_forward",
)


@pytest.fixture(scope="module")
def place() -> Any:
    """A page with every panel on it: the blocks, the frame, the playground, and each panel by its name."""
    words = Words()
    with gr.Blocks():
        frame = build_frame(words, example(get_model()))
        playground = SimpleNamespace(frame=frame, session=gr.State(Session(frame.example)))
        modules = {name: import_module(f"components.panels.{name}") for name in PANELS}
        panels = {name: getattr(module, f"build_{name}")(words, frame, playground) for name, module in modules.items()}
    return SimpleNamespace(frame=frame, playground=playground, panels=panels)


def values_of(place: Any, panel: Panel, language: str = "en", **moved: Any) -> dict[Any, Any]:
    """What a visitor's page would send: every component as it was built, but those named by the end of their id."""
    found = {component: component.value for component in panel.inputs}
    found |= {place.frame.language: language, place.playground.session: Session(place.frame.example)}
    for name, value in moved.items():
        (component,) = [c for c in found if (c.elem_id or "").endswith(f"-{name.replace('_', '-')}")]
        found[component] = value
    return found


def shown(place: Any, name: str, language: str = "en", **moved: Any) -> dict[str, Any]:
    """What the panel shows then, by the id of its components."""
    panel = place.panels[name]
    update = panel.show(values_of(place, panel, language, **moved))
    assert set(update) <= set(panel.outputs)
    return {component.elem_id: value for component, value in update.items() if component.elem_id}


def notice(found: dict[str, Any]) -> str:
    return next(value for name, value in found.items() if name.endswith("-notice"))


def colours(node: Any, meant: bool = False) -> set[str]:
    if isinstance(node, str):
        return {node} if meant and node.startswith("#") else set()
    if isinstance(node, dict):
        return {c for key, value in node.items() for c in colours(value, "color" in key)}
    return {c for item in node for c in colours(item, meant)} if isinstance(node, list | tuple) else set()


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_has_an_answer_and_pictures_that_both_themes_can_draw(place: Any, name: str) -> None:
    told = {}
    for language in ("en", "zh"):
        found = shown(place, name, language)
        assert notice(found) == ""
        told[language] = next(value for key, value in found.items() if key.endswith("-answer"))
        figures = [json.loads(v) for v in found.values() if isinstance(v, str) and v.startswith('{"figure"')]
        assert figures
        for picture in figures:
            assert picture["text"]
            assert colours(picture["figure"]) <= set(DARK_PARTNERS) | {"#000"}
    assert told["en"]
    assert told["zh"]
    assert told["en"] != told["zh"]


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_computes_nothing_before_it_is_shown(place: Any, name: str) -> None:
    untouched = [c for c in place.panels[name].outputs if (c.elem_id or "").endswith("-answer")]
    assert [component.value for component in untouched] == [""]


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_without_a_text_says_so_or_needs_none(place: Any, name: str) -> None:
    panel = place.panels[name]
    values = values_of(place, panel) | {place.playground.session: Session(None)}
    found = {component.elem_id: value for component, value in panel.show(values).items() if component.elem_id}
    assert notice(found) or any(value for key, value in found.items() if key.endswith("-answer"))


def test_layer_norm_shows_the_curriculum_s_rows(place: Any) -> None:
    rows = json.loads(shown(place, "layer_norm")["norm-numbers"])
    assert [row[1:] for row in rows[1::3]] == [["0.1324", "0.0192", "0.0231"], ["0.2170", "0.0332", "0.0398"]]
    before = json.loads(shown(place, "layer_norm")["norm-before"])["figure"]["data"]
    assert [bars["text"] for bars in before] == [
        ["0.2260", "0.3470", "0.0000", "0.2216", "0.0000", "0.0000"],
        ["0.2133", "0.2394", "0.0000", "0.5198", "0.3297", "0.0000"],
    ]


def test_scale_and_shift_make_the_spread_and_the_mean(place: Any) -> None:
    rows = json.loads(shown(place, "layer_norm", scale=2, shift=0.5)["norm-numbers"])
    assert [float(cell) for cell in rows[3][1:3]] == pytest.approx([0.5, 4], abs=0.01)


def test_layer_norm_of_the_model_is_of_the_selected_token(place: Any) -> None:
    document: Generation = place.frame.example
    for norm in ("ln_1", "ln_2", "ln_f"):
        found = shown(place, "layer_norm", source="model", which=norm)
        rows = json.loads(found["norm-numbers"])
        assert str(document.n_read - 1) in rows[-1][0]
        assert [float(cell) for cell in rows[-2][1:3]] == pytest.approx([0, 1], abs=0.01)


def test_shortcuts_show_the_curriculum_s_ten_numbers(place: Any) -> None:
    rows = json.loads(shown(place, "shortcuts")["shortcuts-numbers"])[1:]
    assert [row[1:] for row in rows] == [
        ["0.000201736", "0.221698"],
        ["0.000120112", "0.206941"],
        ["0.000715204", "0.32897"],
        ["0.00139887", "0.266573"],
        ["0.00504965", "1.32585"],
    ]


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, None])
def test_a_seed_that_is_none_is_refused(place: Any, seed: Any) -> None:
    assert "seed" in notice(shown(place, "shortcuts", seed=seed))


def test_a_word_is_shown_merge_by_merge_in_both_vocabularies(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(place, "tokenizer", word="\u5c0f")
    (bars,) = json.loads(found["bpe-ladder-own"])["figure"]["data"]
    assert bars["text"] == ["E5", "B0", "8F"]
    assert ["\u5c0f", "U+5C0F", "E5 B0 8F"] in json.loads(found["bpe-bytes"])
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    found = shown(place, "tokenizer")
    assert found["bpe-ladder-gpt2"] == ""
    assert "no copy" in found["bpe-missing"]
    assert len(json.loads(found["bpe-languages"])["figure"]["data"]) == 1


@pytest.mark.parametrize(("word", "why"), [("", "no word"), ("two words", "cut into 2 words"), ("x" * 25, "25 bytes")])
def test_what_is_no_word_is_refused_with_a_sentence(place: Any, word: str, why: str) -> None:
    assert why in notice(shown(place, "tokenizer", word=word))


def test_half_a_surrogate_pair_breaks_nothing(place: Any) -> None:
    assert notice(shown(place, "tokenizer", word="\ud83d", text="a\ud83d<b>")) == ""


def y_of(picture: str) -> list[Any]:
    """The y of every curve of a chart, in order; arrays travel as base64."""
    curves = json.loads(picture)["figure"]["data"]
    return [np.frombuffer(base64.b64decode(c["y"]["bdata"]), c["y"]["dtype"]) for c in curves]


def test_only_without_the_causal_mask_an_earlier_prediction_moves(place: Any) -> None:
    without, with_mask = y_of(shown(place, "masks", position=20)["masks-causal"])
    assert with_mask[:20].max() < 1e-4
    assert without[:20].min() > 0


def test_padding_moves_nothing_with_its_mask_nor_on_the_right(place: Any) -> None:
    without, with_mask = y_of(shown(place, "masks")["masks-padding"])
    assert with_mask.max() < 1e-3 < without.max()
    without, with_mask = y_of(shown(place, "masks", side="right")["masks-padding"])
    assert max(with_mask.max(), without.max()) < 1e-3


def test_a_fresh_model_knows_nothing_unless_its_weights_are_large(place: Any) -> None:
    assert "without opinions" in shown(place, "initialisation")["start-answer"]
    assert "nonsense" in shown(place, "initialisation", std=0.5)["start-answer"]
    scaled, unscaled = y_of(shown(place, "initialisation", layers=16)["start-norms"])
    assert scaled[0] == unscaled[0]
    assert scaled[-1] < unscaled[-1] / 2


def test_tying_shows_the_curriculum_s_two_counts_on_either_side_of_the_switch(place: Any) -> None:
    tied, untied = shown(place, "tying"), shown(place, "tying", tied=False)
    assert tied["tying-answer"].startswith("124,412,160 parameters tied; 163,009,536 untied")
    assert untied["tying-answer"].startswith("163,009,536 parameters untied; 124,412,160 tied")
    assert "100" in tied["tying-taught"].split("teaches")[1]
    assert percent(32 / 512) in untied["tying-taught"].split("teaches")[1]


def test_without_a_cache_the_next_token_costs_more_the_longer_the_text_is(place: Any) -> None:
    found = shown(place, "kernels")
    cached, plain = y_of(found["kernels-counted"])
    ratio = plain / cached
    assert (np.diff(ratio) > 0).all()
    config = place.frame.example.loaded.model.config
    assert f"{config.n_layer * config.n_embd * 2 * 4 / 1024:.2f} KiB for each token" in found["kernels-answer"]


def test_equal_vectors_at_one_place_are_as_close_as_can_be(place: Any) -> None:
    found = shown(place, "positions", position=37, distance=0)
    query, key = (curve["y"] for curve in json.loads(found["positions-circles"])["figure"]["data"])
    assert query == key
    assert "100" in found["positions-answer"]


def test_the_skeleton_has_the_shapes_of_the_whole_and_sees_no_earlier_token() -> None:
    pair = small_pair()
    assert pair.bare_moved == 0 < pair.whole_moved
    assert pair.whole[-1].shape == pair.bare[-1].shape == (1, len(TEXT), 10_000)
    assert [stage for stage in pair.whole if stage in pair.bare] == pair.bare


def test_the_feed_forward_part_shows_the_hidden_numbers_of_one_token(place: Any) -> None:
    document: Generation = place.frame.example
    ids, layer = document.ids[:6], 3
    before, after = hidden(document.loaded.model, ids, layer)
    assert len(before) == document.loaded.model.config.ff_size
    np.testing.assert_allclose(ACTIVATIONS["gelu_tanh"](torch.from_numpy(before)).numpy(), after, atol=1e-5)
    np.testing.assert_allclose(pre_activations(document.loaded.model, ids, layer)[-1].numpy(), before, atol=1e-5)


@pytest.mark.parametrize("name", PANELS)
def test_panels_show_the_smallest_models_too(place: Any, name: str) -> None:
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    document = example(LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32"))
    panel = place.panels[name]
    told = panel.show(values_of(place, panel) | {place.playground.session: Session(document)})
    assert told.keys() <= set(panel.outputs)
    assert swap_value(document, 1, "relu", "en")


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu", "silu"])
def test_only_another_activation_moves_the_prediction(place: Any, activation: Any) -> None:
    document: Generation = place.frame.example
    figure = json.loads(swap_value(document, 10, activation, "en"))["figure"]["data"]
    before, after = (np.frombuffer(base64.b64decode(bars["x"]["bdata"]), bars["x"]["dtype"]) for bars in figure[:2])
    assert (before == after).all() == (activation == "gelu_tanh")


def test_the_two_gelus_differ_by_less_than_the_width_of_a_line() -> None:
    (difference,) = y_of(exact_value(1.0, "en"))
    assert 1e-4 < np.abs(difference).max() < 5e-4
