"""Properties of all panels, in both languages, and experiments that run for seconds."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
import torch

from components.figures.palette import DARK_PARTNERS
from components.i18n import t
from components.panels import masks, positions
from components.panels.layer_norm import Chosen
from components.state.example import example
from components.state.jobs import run_results, stop
from components.state.session import Session
from gpt import GPT, GPTConfig, LoadedModel
from gpt.models.checkpoints.token_table import Characters
from tests.components.panels.panel_session import PANELS, colours, drawn, said

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
        assert charts or name == "notebook"
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


@pytest.mark.parametrize("name", PANELS)
def test_panels_show_the_smallest_models_too(name: str) -> None:
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    session = Session(example(LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")))
    Chosen.source.set(session, "model")
    views = drawn(session, name).update()
    assert said(views, f"{name}-answer")
    assert t("view.failed") not in [view.get("failed") for view in views.values()]


def test_a_first_answer_says_what_it_waits_for(session: Session) -> None:
    panel = drawn(session, "skeleton")
    assert said(panel.update(compute=False), "skeleton-answer") == "Computing …"
    turn = session.lock.begin()
    assert "when the model finishes writing" in said(panel.update(), "skeleton-answer")
    session.lock.end(turn)
    answer = said(panel.update(), "skeleton-answer")
    assert "blocks" in answer
    session.select(position=1)
    views = panel.update(compute=False)
    assert (said(views, "skeleton-answer"), views["skeleton-answer"]["waiting"]) == (answer, True)


@pytest.mark.parametrize(("module", "chart"), [(masks, "masks-losses"), (positions, "positions-beyond")])
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


def test_an_older_run_ends_without_touching_the_one_that_was_started_after_it(session: Session) -> None:
    older, newer = (run_results(masks.Chosen, lambda s, n=n: iter([n]), session) for n in (1, 2))
    next(older)
    next(newer)
    assert list(older) == []
    list(newer)
    assert session.state(masks.Chosen).latest == 2
