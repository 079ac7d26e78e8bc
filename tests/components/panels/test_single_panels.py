"""Individual panels: their numbers and pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components.labels import percent
from components.panels import initialisation, layer_norm, masks, norm_placement, notebook, positions, shortcuts, tying
from components.panels.tokenizer import Typed, type_word
from components.state.session import Session
from gpt.models.memory import format_bytes
from tests.components.panels.panel_session import drawn, said, y_of


@pytest.mark.parametrize(
    ("panel", "setting", "value", "says"),
    [
        ("placement", norm_placement.Chosen.layers, 3, "path through 3 layers"),
        ("start", initialisation.Chosen.std, 0.5, "confident about random tokens"),
        ("positions", positions.Chosen.distance, 0, "100%"),
        ("shortcuts", shortcuts.Chosen.depth, 1, "1 times"),
    ],
)
def test_an_answer_follows_the_controls(session: Session, panel: str, setting: Any, value: Any, says: str) -> None:
    page = drawn(session, panel)
    before = said(page.update(), f"{panel}-answer")
    setting.set(session, value)
    assert says in said(page.update(), f"{panel}-answer").replace(before, "")


def test_the_notebook_s_values_appear_one_after_another_beside_the_printed_ones(session: Session) -> None:
    panel = drawn(session, "notebook")
    rows = panel.update()["notebook-values"]["rows"]
    assert rows[-1][1:] == ["27018  24086  47843  30961  42348  7267", ""]
    values = notebook.steps(session.snapshot())
    for _ in range(7):
        found = next(values)
    values.close()  # before the model is built
    session.change(notebook.Notebook, latest=(*found[:6], replace(found[6], computed=(163_009_537,))))
    views = panel.update()
    rows = views["notebook-values"]["rows"]
    assert rows[3][1:] == ["0.1324  0.217", "✓ 0.1324  0.217"]
    assert rows[7][1:] == ["163,009,536", "✗ 163,009,537"]
    assert "7 of 12 values have been computed; 6 match" in said(views, "notebook-answer")


def test_layer_norm_shows_the_curriculum_s_rows_which_scale_and_shift_change(session: Session) -> None:
    panel = drawn(session, "norm")
    views = panel.update()
    rows = views["norm-numbers"]["rows"]
    assert [row[1:] for row in rows[1::3]] == [["0.1324", "0.0192", "0.0231"], ["0.2170", "0.0332", "0.0398"]]
    (bars, _) = views["norm-before"]["figure"]["data"]
    assert bars["text"] == ["0.2260", "0.3470", "0.0000", "0.2216", "0.0000", "0.0000"]
    layer_norm.Chosen.scale.set(session, 2.0)
    layer_norm.Chosen.shift.set(session, 0.5)
    rows = panel.update()["norm-numbers"]["rows"]
    assert [float(cell) for cell in rows[3][1:3]] == pytest.approx([0.5, 4], abs=0.01)


@pytest.mark.parametrize("norm", ["ln_1", "ln_2", "ln_f"])
def test_layer_norm_of_the_model_is_of_the_selected_token(session: Session, norm: str) -> None:
    layer_norm.Chosen.source.set(session, "model")
    layer_norm.Chosen.which.set(session, norm)
    session.select(position=3)
    rows = drawn(session, "norm").update()["norm-numbers"]["rows"]
    assert "· 3," in rows[-1][0]
    assert [float(cell) for cell in rows[-2][1:3]] == pytest.approx([0, 1], abs=0.01)


def test_an_invalid_seed_is_refused_until_a_valid_one_arrives(session: Session) -> None:
    panel = drawn(session, "shortcuts")
    assert panel.update()["shortcuts-numbers"]["rows"][1] == ["0", "0.000201736", "0.221698"]
    for seed in (-1, 2**31, 1.5, None):
        shortcuts.type_seed(session, seed)
        assert "seed" in said(panel.update(), "shortcuts-notice")
    shortcuts.type_seed(session, 7)
    assert said(panel.update(), "shortcuts-notice") == ""
    assert session.state(shortcuts.Chosen).seed == 7


def test_a_word_is_shown_merge_by_merge_in_both_vocabularies(session: Session) -> None:
    panel = drawn(session, "bpe")
    type_word(session, "小")
    views = panel.update()
    (bars,) = views["bpe-ladder-own"]["figure"]["data"]
    assert bars["text"] == ["E5", "B0", "8F"]
    (bars,) = views["bpe-ladder-gpt2"]["figure"]["data"]
    assert bars["text"] == ["E5", "B0", "8F", "E5 B0", "8F"]
    assert ["小", "U+5C0F", "E5 B0 8F"] in views["bpe-bytes"]["rows"]
    assert len(views["bpe-languages"]["figure"]["data"]) == 2
    Typed.text.set(session, "Hello, I am")
    assert panel.update()["bpe-cost"]["text"].endswith("with GPT-2's, they become 4.")
    type_word(session, "\ud83d")  # half of a surrogate pair
    Typed.text.set(session, "a\ud83d<b>")
    assert not any(view.get("failed") for view in panel.update().values())


@pytest.mark.parametrize(
    ("word", "why"), [("", "Type a word first"), ("two words", "split into 2 words"), ("x" * 25, "25 bytes")]
)
def test_an_invalid_word_is_refused_with_a_sentence_and_the_last_word_stays(
    session: Session, word: str, why: str
) -> None:
    panel = drawn(session, "bpe")
    before = said(panel.update(), "bpe-answer")
    type_word(session, word)
    views = panel.update()
    assert why in said(views, "bpe-notice")
    assert said(views, "bpe-answer") == before


def test_a_token_is_replaced_at_the_selected_place_and_padding_is_on_the_chosen_side(session: Session) -> None:
    panel = drawn(session, "masks")
    session.select(position=10)
    views = panel.update()
    without, with_mask = y_of(views["masks-causal"])
    assert with_mask[:10].max() < 1e-4
    assert without[:10].min() > 0
    without, with_mask = y_of(views["masks-padding"])
    assert with_mask.max() < 1e-3 < without.max()
    masks.Chosen.side.set(session, "right")
    assert np.max(y_of(panel.update()["masks-padding"])) < 1e-3


def test_tying_shows_the_curriculum_s_two_counts_on_either_side_of_the_switch(session: Session) -> None:
    panel = drawn(session, "tying")
    for tied, now, rows in (
        (True, "With tied weights, the model has 124,412,160 parameters; with untied weights, 163,009,536", "100"),
        (False, "With untied weights, the model has 163,009,536 parameters; with tied weights, 124,412,160", ""),
    ):
        tying.Chosen.tied.set(session, tied)
        views = panel.update()
        assert now in said(views, "tying-answer").replace("it has ", "")
        assert (rows or percent(32 / 512)) in said(views, "tying-taught").split("changes")[1]
        assert len(views["tying-neighbours"]["rows"]) == 1 + tying.N_NEIGHBOURS


def test_without_a_cache_the_next_token_costs_more_the_longer_the_text_is(session: Session) -> None:
    views = drawn(session, "kernels").update()
    cached, plain = y_of(views["kernels-counted"])
    assert (np.diff(plain / cached) > 0).all()
    config = session.document.loaded.model.config
    assert f"{config.n_layer * config.n_embd * 2 * 4 / 1024:.2f} KiB per token" in said(views, "kernels-answer")


def test_prefill_reads_the_prompt_and_decode_one_token_that_the_cache_completes(session: Session) -> None:
    panel, document = drawn(session, "prefill"), session.document
    n, length, config = document.n_prompt, document.n_read, document.loaded.model.config
    session.select(position=n + 1)
    views = panel.update()
    computed, from_cache = y_of(views["prefill-cached"])
    assert computed.tolist() == [n] + [1] * (length - n)
    assert (computed + from_cache).tolist() == list(range(n, length + 1))
    again, nothing = y_of(views["prefill-plain"])
    assert again.tolist() == list(range(n, length + 1))
    assert not nothing.any()
    rows = views["prefill-passes"]["rows"]
    assert [row[1:3] for row in rows[1:5]] == [[f"{n}", "0"], ["1", f"{n}"], ["1", f"{n + 1}"], ["1", f"{length - 1}"]]
    assert rows[4][3] == format_bytes(2 * 4 * config.n_layer * config.n_embd * (length - 1))
    assert rows[5] == ["all passes", f"{length}", "", "", f"{sum(range(n, length + 1)):,}"]
    document.go_back(n - 1)
    assert "Nothing has been generated yet" in said(panel.update(), "prefill-answer")
