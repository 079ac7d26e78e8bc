"""The Change it tab in Why?: which edits are set, how they are described, and invalid browser input."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.share.address import page_values
from components.state.session import Session
from components.tabs.change.experiments import EXPERIMENTS, describe_edits, summary
from components.tabs.change.handlers import editing, generation
from components.tabs.change.handlers.measurement import ANALYSIS
from gpt import Edits, Generation
from tests.components.drawing import spoken_in
from tests.components.tabs.change_session import analysed, drawn, finish, generated, other_model, said


@pytest.fixture(scope="module")
def document() -> Generation:
    return generated()


@pytest.fixture
def session(document: Generation) -> Session:
    """A session with a measured text."""
    return analysed(Session(document.copy()))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_different_edits_are_described_differently_and_none_is_silent(document, language):
    config = document.loaded.model.config
    whole = Edits({(0, head): 0.0 for head in range(config.n_head)})
    edits = [*(make(config) for make in EXPERIMENTS.values()), whole, Edits(mlp_scale={1: 0.5}), Edits({(1, 0): 2.0})]
    described = [spoken_in(language, summary, each, config) for each in edits]
    assert all(described)
    assert len(set(described)) == len(described)
    assert spoken_in(language, summary, Edits(), config) == ""
    assert spoken_in(language, summary, Edits(activation=config.activation), config) == ""


def test_what_belongs_together_is_described_together_and_many_edits_are_counted(document):
    config = document.loaded.model.config
    every = range(config.n_layer)
    assert describe_edits(Edits({}, {1: 0.0}, {1: 0.0}), config) == ["layer 1 off"]
    assert describe_edits(Edits({}, dict.fromkeys(every, 0.0)), config) == ["attention in all layers off"]
    heads = {(0, head): 0.5 for head in range(config.n_head)}
    assert describe_edits(Edits(heads), config) == ["all heads of layer 0 × 0.5"]
    many, big = Edits({(layer, 0): 0.1 * layer for layer in range(20)}), replace(config, n_layer=20)
    assert len(describe_edits(many, big)) == 20
    assert summary(many, big).endswith("; 14 more")


@pytest.mark.parametrize(
    "sent", [{}, {"edits": None}, {"edits": "h9.0=0"}, {"edits": "nopos"}, {"edits": ["a0=0"]}, {"edits": "a0=nan"}]
)
def test_what_the_browser_sends_is_checked(session, sent):
    before = session.edits = Edits({(0, 0): 0.5})
    editing.set_switches(session, sent)
    assert session.edits is before
    assert "could not be read" in said(session, "notice")
    assert drawn(session, "switches")["edits"] == "h0.0=0.5"


@pytest.mark.parametrize("sent", [{}, {"index": "1"}, {"index": -1}, {"index": 99}, {"x": None}, {"index": True}])
def test_only_positions_that_were_read_are_selected(session, sent):
    before = session.selection
    editing.select_token(session, sent)
    editing.select_bar(session, sent)
    assert session.selection == before


def test_the_switch_of_the_selected_head_is_framed_and_a_switched_head_is_selected(session):
    session.select(layer=1, head=0)
    assert drawn(session, "switches")["selected"] == (1, 0)
    editing.set_switches(session, {"edits": "h0.1=0", "n": 1, "layer": 0, "head": 1})
    assert drawn(session, "switches")["selected"] == (0, 1)


def test_switches_replace_all_factors_and_leave_the_other_edits(session):
    session.edits = Edits({(0, 0): 0.0}, activation="relu", drop_positions=True)
    editing.set_switches(session, {"edits": "a1=0.5", "n": 7})
    assert session.edits == Edits({}, {1: 0.5}, activation="relu", drop_positions=True)
    assert "layer 1 attention × 0.5" in said(session, "lead")
    assert drawn(session, "switches")["answered"] == 7  # later clicks keep their effect, see the widget


def test_a_selection_is_that_of_every_tab_where_the_text_is_the_playgrounds(session):
    editing.select_token(session, {"index": 2})
    assert session.selection.position == drawn(session, "original")["selected"] == 2
    finish(generation.generate_both(session))
    analysed(session)
    editing.select_bar(session, {"x": 3})
    assert (session.selection.position, drawn(session, "original")["selected"]) == (2, 3)


def test_a_new_model_keeps_the_edits_that_fit_and_names_those_it_dropped(document):
    session = analysed(Session(document.copy(), edits=Edits({(0, 0): 0.0}, {1: 0.0}, drop_positions=True)))
    assert said(session, "notice") == ""
    session.document = other_model()
    analysed(session)
    assert session.edits == Edits({(0, 0): 0.0}, drop_positions=True)
    assert "layer 1 attention off" in said(session, "notice")
    session.document = None
    assert ANALYSIS.wanted(session.snapshot()) is None
    assert drawn(session, "bars")["bars"] == []
    assert drawn(session, "switches")["n_layer"] == 0
    assert drawn(session, "original")["lines"] == []
    editing.set_switches(session, {"edits": "a0=0"})
    assert session.edits == Edits({(0, 0): 0.0}, drop_positions=True)


def test_edits_of_a_link_are_taken_over_and_those_made_here_go_into_one(session):
    session.edits = Edits({(1, 0): 0.0}, {9: 0.0})
    analysed(session)
    assert "layer 1, head 0 off" in said(session, "lead")
    assert "layer 9 attention off" in said(session, "notice")
    editing.set_switches(session, {"edits": "f0=0"})
    assert session.edits == Edits(mlp_scale={0: 0.0})
    assert page_values(session.snapshot())["edits"] == "f0=0"
    editing.reset(session)
    assert "edits" not in page_values(session.snapshot())
