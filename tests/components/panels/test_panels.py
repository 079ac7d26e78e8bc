"""Properties of all panels, in both languages."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

from components.figures.palette import DARK_PARTNERS
from components.panels.layer_norm import LayerNormState
from components.panels.panel import add_panel
from components.render import Renderer
from components.state.example import example
from components.state.session import Session
from gpt import GPT, GPTConfig, LoadedModel
from gpt.models.checkpoints.token_table import Characters
from tests.components.panels.panel_session import PANELS, answer, colours, notice, shown


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

    renderer = Renderer()
    session.tab = "lessons"
    add_panel(renderer, "lessons", lambda s: False, getattr(module, f"build_{name}")())
    snapshot = session.snapshot()
    assert renderer.wanted(session, snapshot) is None
    views = renderer.views["lessons"]
    assert {view.name for view in views} == {view.name for view in module.VIEWS}
    assert all(view.draw(snapshot) == {} for view in views)


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


@pytest.mark.parametrize("name", PANELS)
def test_panels_show_the_smallest_models_too(name: str) -> None:
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    session = Session(example(LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")))
    if name == "layer_norm":
        session.change(LayerNormState, source="model")
    found = shown(session, name)
    assert answer(found, name) or notice(found, name)
