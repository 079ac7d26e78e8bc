"""Analyses for both training runs: they load the recorded run and run the displayed model on the example."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial

from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.train.handlers import pass_over_example
from components.tabs.train.shown import RECORDED, Film
from components.tabs.train.state import LearnedState, Machine
from gpt.training.recorded_run import bundled_recording


def analysis(film: Film, machine: Machine) -> Analysis:
    """Return the analysis for one training run. `machine` runs the forward pass over the example."""

    def run(session: Session) -> Iterator[None]:
        if film is RECORDED and not session.state(LearnedState).looked_for_recorded:
            session.change(LearnedState, recorded=bundled_recording(), looked_for_recorded=True)
        pass_over_example(film, machine, session)
        yield

    return Analysis(partial(wanted, film), run)


def wanted(film: Film, s: Snapshot) -> Hashable:
    """Return a key if the recording or the displayed step's forward pass is missing, else None."""
    if film is RECORDED and not s.state(LearnedState).looked_for_recorded:
        return "recording"
    shown = film.shown(s)
    if shown is None or film.of(s).is_passed(shown.run, shown.evaluation.step):
        return None
    return shown.run, shown.evaluation.step
