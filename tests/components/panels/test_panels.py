"""Panels: what each shows of a session, in both languages, and what its controls may do."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from components.figures.palette import DARK_PARTNERS
from components.labels import percent
from components.panels import kernels, layer_times, masks, notebook, positions
from components.panels.feed_forward import hidden
from components.panels.initialisation import InitialisationState
from components.panels.kernels import KernelsState
from components.panels.layer_norm import CHECKS, LayerNormState
from components.panels.layer_times import LayerTimesState, Measured
from components.panels.masks import MasksState
from components.panels.norm_placement import NormPlacementState
from components.panels.panel import add_panel, select_layer, select_position, store_value
from components.panels.positions import PositionsState
from components.panels.run import Run, run_steps, stop_run
from components.panels.shortcuts import ShortcutsState, type_seed
from components.panels.skeleton import TEXT, small_pair
from components.panels.tokenizer import type_text, type_word
from components.panels.tying import TyingState
from components.render import Renderer
from components.state.example import example
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt import GPT, GPTConfig, LoadedModel, get_model
from gpt.experiments.activations import pre_activations
from gpt.experiments.layer_times import LayerTimes
from gpt.model import ACTIVATIONS
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.memory import format_bytes

PANELS = {
    "layer_norm": "norm",
    "shortcuts": "shortcuts",
    "tokenizer": "bpe",
    "masks": "masks",
    "initialisation": "start",
    "tying": "tying",
    "kernels": "kernels",
    "prefill": "prefill",
    "positions": "positions",
    "norm_placement": "placement",
    "skeleton": "skeleton",
    "feed_forward": "ff",
}


@pytest.fixture
def session() -> Session:
    return Session(example(get_model()))


def shown(session: Session, name: str) -> dict[str, Any]:
    """What the views of a panel show once its analysis has nothing more to do."""
    module = import_module(f"components.panels.{name}")
    analysis = getattr(module, "ANALYSIS", None)
    if analysis is not None:
        list(analysis.run(session))
        assert analysis.wanted(session.snapshot()) is None
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in module.VIEWS}


def notice(found: dict[str, Any], name: str) -> str:
    return found[f"{PANELS[name]}-notice"]["text"]


def answer(found: dict[str, Any], name: str) -> str:
    return found[f"{PANELS[name]}-answer"]["text"]


def colours(node: Any, meant: bool = False) -> set[str]:
    if isinstance(node, str):
        return {node} if meant and node.startswith("#") else set()
    if isinstance(node, dict):
        return {c for key, value in node.items() for c in colours(value, "color" in key)}
    return {c for item in node for c in colours(item, meant)} if isinstance(node, list | tuple) else set()


def values(curve: dict[str, Any], axis: str = "y") -> np.ndarray:
    """The numbers of a trace; arrays travel as base64."""
    numbers = curve[axis]
    if isinstance(numbers, dict):
        return np.frombuffer(base64.b64decode(numbers["bdata"]), numbers["dtype"])
    return np.asarray(numbers)


def y_of(picture: dict[str, Any]) -> list[np.ndarray]:
    return [values(curve) for curve in picture["figure"]["data"]]


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_has_an_answer_and_pictures_that_both_themes_can_draw(session: Session, name: str) -> None:
    told = []
    for session.language in ("en", "zh"):
        found = shown(session, name)
        assert notice(found, name) == ""
        told.append(answer(found, name))
        charts = [data for data in found.values() if data.get("figure")]
        assert charts
        for picture in charts:
            assert picture["text"]
            assert colours(picture["figure"]) <= set(DARK_PARTNERS) | {"#000"}
    assert all(told)
    assert told[0] != told[1]


@pytest.mark.parametrize("name", PANELS)
def test_a_closed_panel_draws_and_computes_nothing(session: Session, name: str) -> None:
    module = import_module(f"components.panels.{name}")

    class Page:
        renderer = Renderer()

    session.tab = "lessons"
    add_panel(Page, "lessons", lambda s: False, module.VIEWS, analysis=getattr(module, "ANALYSIS", None))  # type: ignore
    snapshot = session.snapshot()
    assert Page.renderer.wanted(snapshot) == ("lessons", None)
    views = Page.renderer.views["lessons"]
    assert {view.name for view in views} == {view.name for view in module.VIEWS}
    assert all(view.inputs(snapshot) is None and view.draw(snapshot) == {} for view in views)


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_without_a_text_says_so_or_needs_none(name: str) -> None:
    session = Session(None)
    if name == "layer_norm":
        session.change(LayerNormState, source="model")
    found = shown(session, name)
    assert bool(notice(found, name)) != bool(answer(found, name))


@pytest.mark.parametrize("name", ["layer_norm", "masks", "skeleton", "feed_forward"])
def test_a_result_of_another_text_is_not_shown(session: Session, name: str) -> None:
    if name == "layer_norm":
        session.change(LayerNormState, source="model")
    before = answer(shown(session, name), name)
    session.document.go_back(session.document.n_read - 3)
    snapshot = session.snapshot()
    module = import_module(f"components.panels.{name}")
    assert module.ANALYSIS.wanted(snapshot) is not None
    assert {view.name: view.draw(snapshot) for view in module.VIEWS}[f"{PANELS[name]}-answer"]["text"] != before


def test_the_norm_placement_follows_its_controls(session: Session) -> None:
    session.change(NormPlacementState, layers=3)
    found = shown(session, "norm_placement")
    assert "Through 3 layers" in answer(found, "norm_placement")
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
    values.close()  # before the model is made
    session.change(notebook.NotebookState, run=Run((*found[:6], replace(found[6], computed=(163_009_537,)))))
    assert rows()[3][1:] == ["0.1324  0.217", "✓ 0.1324  0.217"]
    assert rows()[7][1:] == ["163,009,536", "✗ 163,009,537"]
    assert "7 of 12 values computed, 6 of them" in notebook.answer(session.snapshot())["text"]


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
def test_what_a_control_cannot_send_changes_nothing(session: Session, name: str, sent: object) -> None:
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
def test_a_seed_that_is_none_is_refused_until_another_comes(session: Session, seed: Any) -> None:
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
    assert shown(session, "tokenizer")["bpe-cost"]["text"].endswith("GPT-2's needs 4.")


@pytest.mark.parametrize(("word", "why"), [("", "no word"), ("two words", "cut into 2 words"), ("x" * 25, "25 bytes")])
def test_what_is_no_word_is_refused_with_a_sentence_and_the_last_word_stays(
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
    select_position(session, 20)
    without, with_mask = y_of(shown(session, "masks")["masks-causal"])
    assert with_mask[:20].max() < 1e-4
    assert without[:20].min() > 0


def test_padding_moves_nothing_with_its_mask_nor_on_the_right(session: Session) -> None:
    without, with_mask = y_of(shown(session, "masks")["masks-padding"])
    assert with_mask.max() < 1e-3 < without.max()
    session.change(MasksState, side="right")
    without, with_mask = y_of(shown(session, "masks")["masks-padding"])
    assert max(with_mask.max(), without.max()) < 1e-3


def test_an_untrained_model_knows_nothing_unless_its_weights_are_large(session: Session) -> None:
    session.change(InitialisationState, layers=16)
    found = shown(session, "initialisation")
    assert "without opinions" in answer(found, "initialisation")
    scaled, unscaled = y_of(found["start-norms"])
    assert scaled[0] == unscaled[0]
    assert scaled[-1] < unscaled[-1] / 2
    session.change(InitialisationState, std=0.5)
    assert "nonsense" in answer(shown(session, "initialisation"), "initialisation")


def test_tying_shows_the_curriculum_s_two_counts_on_either_side_of_the_switch(session: Session) -> None:
    tied = shown(session, "tying")
    session.change(TyingState, tied=False)
    untied = shown(session, "tying")
    assert answer(tied, "tying").startswith("124,412,160 parameters tied; 163,009,536 untied")
    assert answer(untied, "tying").startswith("163,009,536 parameters untied; 124,412,160 tied")
    assert "100" in tied["tying-taught"]["text"].split("teaches")[1]
    assert percent(32 / 512) in untied["tying-taught"]["text"].split("teaches")[1]


def test_without_a_cache_the_next_token_costs_more_the_longer_the_text_is(session: Session) -> None:
    found = shown(session, "kernels")
    cached, plain = y_of(found["kernels-counted"])
    assert (np.diff(plain / cached) > 0).all()
    config = session.document.loaded.model.config
    assert f"{config.n_layer * config.n_embd * 2 * 4 / 1024:.2f} KiB for each token" in answer(found, "kernels")


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
    assert "Nothing is generated yet" in answer(shown(session, "prefill"), "prefill")


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


@pytest.mark.parametrize("name", PANELS)
def test_panels_show_the_smallest_models_too(name: str) -> None:
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    session = Session(example(LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")))
    if name == "layer_norm":
        session.change(LayerNormState, source="model")
    found = shown(session, name)
    assert answer(found, name) or notice(found, name)


RUNS = [
    (KernelsState, kernels),
    (LayerTimesState, layer_times),
    (MasksState, masks),
    (PositionsState, positions),
]


@pytest.mark.parametrize(("state", "module"), RUNS, ids=["kernels", "layer_times", "masks", "positions"])
def test_an_experiment_is_shown_while_it_runs_and_what_it_found_stays_when_it_is_stopped(
    session: Session, state: Any, module: Any
) -> None:
    steps = getattr(module, "measure", None) or module.train
    stopped = Event()

    def endless(s: Snapshot) -> Iterator[Any]:
        """The first result again and again, so that the run cannot end by itself."""
        first = next(steps(s))
        while not stopped.wait(0.01):
            yield first

    running = run_steps(state, endless, True, session)
    next(running)
    assert session.state(state).run.running
    while session.state(state).run.latest is None:
        next(running)
    stop_run(state, session)
    assert list(running) == []
    stopped.set()
    run = session.state(state).run
    assert not run.running
    assert run.latest is not None
    for session.language in ("en", "zh"):
        views = {view.name: view.draw(session.snapshot()) for view in module.VIEWS}
        (chart,) = (views[name] for name in views if name.rpartition("-")[2] in ("measured", "losses", "beyond"))
        assert chart["figure"] is not None


def test_layer_times_are_medians_of_the_passes_and_their_quartiles(session: Session) -> None:
    usual = LayerTimes(0.001, (0.002, 0.003), (0.004, 0.006), 0.004)
    slow = LayerTimes(0.001, (0.102, 0.003), (0.004, 0.006), 0.004)
    session.change(LayerTimesState, run=Run(Measured(12, (usual, usual, slow, usual, usual))))
    found = {view.name: view.draw(session.snapshot()) for view in layer_times.VIEWS}
    attention, feed_forward, ends, quartiles = y_of(found["layers-measured"])
    assert attention.tolist() == pytest.approx([0, 2, 3, 0])
    assert feed_forward.tolist() == pytest.approx([0, 4, 6, 0])
    assert ends.tolist() == pytest.approx([1, 0, 0, 4])
    for end in quartiles.reshape(4, 3)[:, :2].T:
        assert end.tolist() == pytest.approx([1, 6, 9, 4])
    says = found["layers-answer"]["text"]
    assert "(length 12)" in says
    assert "takes 20 ms" in says
    assert "(5), the fastest 20 ms, the slowest 120 ms" in says
    assert "feed-forward takes 50\u00a0%, attention 25\u00a0%, the head 20\u00a0%, the embedding 5.0\u00a0%" in says


def test_an_experiment_that_fails_says_why_and_may_be_started_again() -> None:
    session = Session(None)
    list(run_steps(KernelsState, kernels.measure, True, session))
    assert not session.state(KernelsState).busy
    assert notice(shown(session, "kernels"), "kernels")


def test_an_older_run_ends_without_touching_the_one_that_was_started_after_it(session: Session) -> None:
    older = run_steps(MasksState, masks.train, True, session)
    next(older)
    newer = Run(id=object())
    session.change(MasksState, run=newer)
    assert list(older) == []
    assert session.state(MasksState).run is newer
