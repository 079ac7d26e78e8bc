"""Individual panels: their numbers and pictures, and the values that their controls accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from components.kit.controls import select_layer
from components.labels import percent
from components.panels import notebook
from components.panels.experiment import Experiment
from components.panels.feed_forward import hidden
from components.panels.initialisation import InitialisationState
from components.panels.layer_norm import CHECKS, LayerNormState
from components.panels.masks import MasksState
from components.panels.norm_placement import NormPlacementState
from components.panels.panel import select_position, store_value
from components.panels.positions import PositionsState
from components.panels.shortcuts import ShortcutsState, type_seed
from components.panels.skeleton import TEXT, small_pair
from components.panels.tokenizer import type_text, type_word
from components.panels.tying import TyingState
from components.state.session import Session
from gpt.experiments.activations import pre_activations
from gpt.layers import ACTIVATIONS
from gpt.models.memory import format_bytes
from tests.components.panels.panel_session import answer, notice, shown, y_of


def test_the_norm_placement_follows_its_controls(session: Session) -> None:
    session.change(NormPlacementState, layers=3)
    found = shown(session, "norm_placement")
    assert "path through 3 layers" in answer(found, "norm_placement")
    pre, post = y_of(found["placement-straight-gradients"])
    assert list(pre) == pytest.approx([1.0] * 4)
    assert post[0] < post[-1] == pytest.approx(1.0)


def test_the_notebook_s_values_appear_one_after_another_beside_the_printed_ones(session: Session) -> None:
    def rows() -> list[list[str]]:
        snapshot = session.snapshot()
        return {view.name: view.draw(snapshot) for view in notebook.VIEWS}["notebook-values"]["rows"]

    assert [row[1] for row in rows()[1:]][-1] == "27018  24086  47843  30961  42348  7267"
    assert {row[2] for row in rows()[1:]} == {""}
    values = notebook.steps(session.snapshot())
    for _ in range(7):
        found = next(values)
    values.close()  # before the model is built
    session.change(notebook.NotebookState, run=Experiment((*found[:6], replace(found[6], computed=(163_009_537,)))))
    assert rows()[3][1:] == ["0.1324  0.217", "✓ 0.1324  0.217"]
    assert rows()[7][1:] == ["163,009,536", "✗ 163,009,537"]
    assert "7 of 12 values have been computed; 6 match" in notebook.answer(session.snapshot())["text"]


def test_layer_norm_shows_the_curriculum_s_rows(session: Session) -> None:
    found = shown(session, "layer_norm")
    rows = found["norm-numbers"]["rows"]
    assert [row[1:] for row in rows[1::3]] == [["0.1324", "0.0192", "0.0231"], ["0.2170", "0.0332", "0.0398"]]
    assert [bars["text"] for bars in found["norm-before"]["figure"]["data"]] == [
        ["0.2260", "0.3470", "0.0000", "0.2216", "0.0000", "0.0000"],
        ["0.2133", "0.2394", "0.0000", "0.5198", "0.3297", "0.0000"],
    ]


def test_scale_and_shift_make_the_spread_and_the_mean(session: Session) -> None:
    session.change(LayerNormState, scale=2.0, shift=0.5)
    rows = shown(session, "layer_norm")["norm-numbers"]["rows"]
    assert [float(cell) for cell in rows[3][1:3]] == pytest.approx([0.5, 4], abs=0.01)


@pytest.mark.parametrize("norm", ["ln_1", "ln_2", "ln_f"])
def test_layer_norm_of_the_model_is_of_the_selected_token(session: Session, norm: str) -> None:
    session.change(LayerNormState, source="model", norm=norm)
    select_position(session, 3)
    rows = shown(session, "layer_norm")["norm-numbers"]["rows"]
    assert "· 3," in rows[-1][0]
    assert [float(cell) for cell in rows[-2][1:3]] == pytest.approx([0, 1], abs=0.01)


@pytest.mark.parametrize(
    ("name", "sent"), [("source", "nowhere"), ("scale", 3.1), ("scale", "2"), ("scale", None), ("eps", []), ("norm", 1)]
)
def test_invalid_values_of_a_control_change_nothing(session: Session, name: str, sent: object) -> None:
    store_value(LayerNormState, name, CHECKS[name], session, sent)
    assert session.state(LayerNormState) == LayerNormState()


@pytest.mark.parametrize("sent", [-1, 10**9, None, "x", 1.5, True])
def test_a_token_or_layer_that_is_not_there_is_not_selected(session: Session, sent: Any) -> None:
    before = session.selection
    select_layer(session, sent)
    select_position(session, None if sent == 1.5 or sent is True else sent)
    assert session.selection == before


def test_shortcuts_show_the_curriculum_s_ten_numbers(session: Session) -> None:
    rows = shown(session, "shortcuts")["shortcuts-numbers"]["rows"][1:]
    assert [row[1:] for row in rows] == [
        ["0.000201736", "0.221698"],
        ["0.000120112", "0.206941"],
        ["0.000715204", "0.32897"],
        ["0.00139887", "0.266573"],
        ["0.00504965", "1.32585"],
    ]


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, None])
def test_an_invalid_seed_is_refused_until_a_valid_one_arrives(session: Session, seed: Any) -> None:
    type_seed(session, seed)
    assert "seed" in notice(shown(session, "shortcuts"), "shortcuts")
    type_seed(session, 7)
    assert session.state(ShortcutsState) == ShortcutsState(seed=7)


def test_a_word_is_shown_merge_by_merge_in_both_vocabularies(session: Session) -> None:
    type_word(session, "小")
    found = shown(session, "tokenizer")
    (bars,) = found["bpe-ladder-own"]["figure"]["data"]
    assert bars["text"] == ["E5", "B0", "8F"]
    (bars,) = found["bpe-ladder-gpt2"]["figure"]["data"]
    assert bars["text"] == ["E5", "B0", "8F", "E5 B0", "8F"]
    assert ["小", "U+5C0F", "E5 B0 8F"] in found["bpe-bytes"]["rows"]
    assert len(found["bpe-languages"]["figure"]["data"]) == 2
    type_text(session, "Hello, I am")
    assert shown(session, "tokenizer")["bpe-cost"]["text"].endswith("with GPT-2's, they become 4.")


@pytest.mark.parametrize(
    ("word", "why"), [("", "Type a word first"), ("two words", "split into 2 words"), ("x" * 25, "25 bytes")]
)
def test_an_invalid_word_is_refused_with_a_sentence_and_the_last_word_stays(
    session: Session, word: str, why: str
) -> None:
    before = answer(shown(session, "tokenizer"), "tokenizer")
    type_word(session, word)
    found = shown(session, "tokenizer")
    assert why in notice(found, "tokenizer")
    assert answer(found, "tokenizer") == before


def test_half_a_surrogate_pair_breaks_nothing(session: Session) -> None:
    type_word(session, "\ud83d")
    type_text(session, "a\ud83d<b>")
    assert notice(shown(session, "tokenizer"), "tokenizer") == ""


def test_only_without_the_causal_mask_an_earlier_prediction_moves(session: Session) -> None:
    select_position(session, 10)
    without, with_mask = y_of(shown(session, "masks")["masks-causal"])
    assert with_mask[:10].max() < 1e-4
    assert without[:10].min() > 0


def test_padding_moves_nothing_with_its_mask_nor_on_the_right(session: Session) -> None:
    without, with_mask = y_of(shown(session, "masks")["masks-padding"])
    assert with_mask.max() < 1e-3 < without.max()
    session.change(MasksState, side="right")
    without, with_mask = y_of(shown(session, "masks")["masks-padding"])
    assert max(with_mask.max(), without.max()) < 1e-3


def test_an_untrained_model_knows_nothing_unless_its_weights_are_large(session: Session) -> None:
    session.change(InitialisationState, layers=16)
    found = shown(session, "initialisation")
    assert "almost no preferences" in answer(found, "initialisation")
    scaled, unscaled = y_of(found["start-norms"])
    assert scaled[0] == unscaled[0]
    assert scaled[-1] < unscaled[-1] / 2
    session.change(InitialisationState, std=0.5)
    assert "confident about random tokens" in answer(shown(session, "initialisation"), "initialisation")


def test_tying_shows_the_curriculum_s_two_counts_on_either_side_of_the_switch(session: Session) -> None:
    tied = shown(session, "tying")
    session.change(TyingState, tied=False)
    untied = shown(session, "tying")
    assert "With tied weights, the model has 124,412,160 parameters; with untied weights, it has 163,009,536" in answer(
        tied, "tying"
    )
    assert "With untied weights, the model has 163,009,536 parameters; with tied weights, it has 124,412,160" in answer(
        untied, "tying"
    )
    assert "100" in tied["tying-taught"]["text"].split("changes")[1]
    assert percent(32 / 512) in untied["tying-taught"]["text"].split("changes")[1]


def test_without_a_cache_the_next_token_costs_more_the_longer_the_text_is(session: Session) -> None:
    found = shown(session, "kernels")
    cached, plain = y_of(found["kernels-counted"])
    assert (np.diff(plain / cached) > 0).all()
    config = session.document.loaded.model.config
    assert f"{config.n_layer * config.n_embd * 2 * 4 / 1024:.2f} KiB per token" in answer(found, "kernels")


def test_prefill_reads_the_prompt_and_decode_one_token_that_the_cache_completes(session: Session) -> None:
    document = session.document
    n, length, config = document.n_prompt, document.n_read, document.loaded.model.config
    session.select(position=n + 1)
    found = shown(session, "prefill")
    computed, from_cache = y_of(found["prefill-cached"])
    assert computed.tolist() == [n] + [1] * (length - n)
    assert (computed + from_cache).tolist() == list(range(n, length + 1))
    again, nothing = y_of(found["prefill-plain"])
    assert again.tolist() == list(range(n, length + 1))
    assert not nothing.any()
    rows = found["prefill-passes"]["rows"]
    assert [row[1:3] for row in rows[1:5]] == [[f"{n}", "0"], ["1", f"{n}"], ["1", f"{n + 1}"], ["1", f"{length - 1}"]]
    assert rows[4][3] == format_bytes(2 * 4 * config.n_layer * config.n_embd * (length - 1))
    assert rows[5] == ["all passes", f"{length}", "", "", f"{sum(range(n, length + 1)):,}"]
    document.go_back(n - 1)
    assert "Nothing has been generated yet" in answer(shown(session, "prefill"), "prefill")


def test_equal_vectors_at_one_place_are_as_close_as_can_be(session: Session) -> None:
    session.change(PositionsState, position=37, distance=0)
    found = shown(session, "positions")
    query, key = (curve["y"] for curve in found["positions-circles"]["figure"]["data"])
    assert query == key
    assert "100" in answer(found, "positions")


def test_the_skeleton_has_the_shapes_of_the_whole_and_sees_no_earlier_token() -> None:
    pair = small_pair()
    assert pair.bare_moved == 0 < pair.whole_moved
    assert pair.whole[-1].shape == pair.bare[-1].shape == (1, len(TEXT), 10_000)
    assert [stage for stage in pair.whole if stage in pair.bare] == pair.bare


def test_the_feed_forward_part_shows_the_hidden_numbers_of_one_token(session: Session) -> None:
    model, ids, layer = session.document.loaded.model, session.document.ids[:6], 3
    before, after = hidden(model, ids, layer)
    assert len(before) == model.config.ff_size
    np.testing.assert_allclose(ACTIVATIONS["gelu_tanh"](torch.from_numpy(before)).numpy(), after, atol=1e-5)
    np.testing.assert_allclose(pre_activations(model, ids, layer)[-1].numpy(), before, atol=1e-5)
