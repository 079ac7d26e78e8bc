"""Panels: properties of all, their numbers and pictures, and models of other families."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

from components.figures.style import DARK_PARTNERS
from components.i18n import t
from components.kit import Tab, card
from components.panels import (
    feed_forward,
    initialisation,
    kv_cache,
    layer_norm,
    masks,
    norm_placement,
    notebook,
    positions,
    shortcuts,
    skeleton,
    tokenizer,
    tying,
)
from components.panels.layer_norm import Chosen, rows
from components.panels.tokenizer import Typed, type_word
from components.state.example import example
from components.state.jobs import run_results, stop
from components.state.session import Session
from gpt import Trace, get_model
from gpt.models.memory import format_bytes
from tests.components.drawing import Drawn, as_read
from tests.gpt.fake_models import family_model


@pytest.fixture
def session() -> Session:
    return Session(example(get_model()))


PANELS = {
    module.panel.name: module.SECTION
    for module in (
        *(feed_forward, initialisation, layer_norm, masks, norm_placement, notebook),
        *(positions, shortcuts, skeleton, tokenizer, tying),
    )
} | {"prefill": kv_cache.PREFILL, "kernels": kv_cache.KERNELS}


def drawn(session: Session, name: str) -> Drawn:
    """Return a panel on a page."""
    tab = Tab("lessons")
    tab.cards(card("panel", PANELS[name]))
    return Drawn(session, tab)


def said(views: dict[str, dict[str, Any]], view: str) -> str:
    return str(views.get(view, {}).get("text", ""))


def colours(node: Any, meant: bool = False) -> set[str]:
    if isinstance(node, str):
        return {node} if meant and node.startswith("#") else set()
    if isinstance(node, dict):
        return {c for key, value in node.items() for c in colours(value, "color" in key)}
    return {c for item in node for c in colours(item, meant)} if isinstance(node, list | tuple) else set()


def values(curve: dict[str, Any], axis: str = "y") -> np.ndarray:
    """Return the numbers of a trace. Arrays are sent as base64."""
    numbers = curve[axis]
    if isinstance(numbers, dict):
        return np.frombuffer(base64.b64decode(numbers["bdata"]), numbers["dtype"])
    return np.asarray(numbers)


def y_of(picture: dict[str, Any]) -> list[np.ndarray]:
    return [values(curve) for curve in picture["figure"]["data"]]


OF_A_TEXT = ("norm", "masks", "skeleton", "ff", "kernels", "prefill")


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_has_an_answer_and_pictures_that_both_themes_can_draw(session: Session, name: str) -> None:
    panel, answers = drawn(session, name), []
    for session.language in ("en", "zh"):
        views = panel.update()
        assert said(views, f"{name}-notice") == ""
        assert not any(view.get("failed") for view in views.values())
        answers.append(said(views, f"{name}-answer"))
        charts = [data for data in views.values() if data.get("figure")]
        assert charts or name in ("notebook", "kernels", "skeleton")  # which have no chart
        for picture in charts:
            assert picture["text"]
            assert colours(picture["figure"]) <= set(DARK_PARTNERS) | {"#000"}
    assert all(answers)
    assert answers[0] != answers[1]


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_without_a_text_says_so_or_needs_none(name: str) -> None:
    session = Session(None)
    Chosen.source.set(session, "model")
    views = drawn(session, name).update()
    assert bool(said(views, f"{name}-notice")) == (name in OF_A_TEXT) != bool(said(views, f"{name}-answer"))


@pytest.mark.parametrize(
    ("module", "chart"),
    [(masks, "masks-losses"), pytest.param(positions, "positions-beyond", marks=pytest.mark.thorough)],
)
def test_an_experiment_is_shown_while_it_runs_and_what_it_found_stays_when_it_is_stopped(
    session: Session, module: Any, chart: str
) -> None:
    ended = Event()

    def endless(s: Any) -> Iterator[Any]:
        """Yield the first result repeatedly, so that the run cannot end by itself."""
        first = next(module.train(s))
        while not ended.wait(0.01):
            yield first

    state, panel = module.Chosen, drawn(session, module.panel.name)
    running = run_results(state, endless, session)
    next(running)
    assert session.busy
    while session.state(state).latest is None:
        next(running)
    stop(state, session)
    assert list(running) == []
    ended.set()
    assert not session.busy
    for session.language in ("en", "zh"):
        assert panel.update()[chart]["figure"] is not None


def test_the_notebook_s_values_appear_one_after_another_beside_the_printed_ones(session: Session) -> None:
    panel = drawn(session, "notebook")
    rows = panel.update()["notebook-values"]["rows"]
    assert rows[-1][1:] == ["27018  24086  47843  30961  42348  7267", ""]
    values = notebook.steps(session.snapshot())
    for _ in range(7):
        found = next(values)
    values.close()  # before the model is built
    session.change(notebook.Notebook, latest=found | {"parameters": (163_009_537,)})
    views = panel.update()
    rows = views["notebook-values"]["rows"]
    assert rows[3][1:] == ["0.1324  0.217", "✓ 0.1324  0.217"]
    assert rows[7][1:] == ["163,009,536", "✗ 163,009,537"]
    assert "7 of 12 values have been computed; 6 match" in said(views, "notebook-answer")


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


def session_of(family: str) -> Session:
    session = Session(as_read(family_model(family), "the cat sat"))
    session.select(position=3, layer=1)
    return session


def trace_of(session: Session) -> Trace:
    document, trace = session.document, Trace()
    with torch.no_grad():
        document.loaded.model(torch.tensor([document.ids]), trace=trace)
    return trace


NORMS = ("ln_1", "ln_2", "ln_f")


@pytest.mark.parametrize(("family", "norm"), [(family, norm) for family in ("llama", "gpt_neox") for norm in NORMS])
def test_the_rows_of_a_norm_are_normalised_as_the_model_does(family: str, norm: str) -> None:
    session = session_of(family)
    panel = drawn(session, "norm")
    Chosen.source.set(session, "model")
    Chosen.which.set(session, norm)
    kind = "rms" if family == "llama" else "layer"
    assert panel.update()["norm-note"]["text"] == t(f"norm.note.{kind}")
    model, trace = session.document.loaded.model, trace_of(session)
    layer = trace.layers[1]
    inputs = {"ln_1": layer.resid_pre, "ln_2": layer.resid_pre if family == "gpt_neox" else layer.resid_mid}
    x = inputs.get(norm, trace.layers[-1].resid_post)[0, 2:4]
    module = model.ln_f if norm == "ln_f" else getattr(model.h[1], norm)
    torch.testing.assert_close(rows(session.snapshot()).numbers["after"], module(x).detach(), atol=1e-4, rtol=1e-4)
    Chosen.source.set(session, "example")
    assert panel.update()["norm-note"]["text"] == t("norm.note.layer")
