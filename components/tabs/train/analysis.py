"""The analysis of the Train tab: reads the recorded training, and runs the displayed model over the example."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.train.handlers import pass_over_example
from components.tabs.train.state import Machine, TrainState
from components.tabs.train.views import shown_of
from gpt.training.recorded_run import bundled_recording


def analysis(machine: Machine) -> Analysis:
    """The analysis; machine: makes the forward pass over the example."""

    def run(session: Session) -> Iterator[None]:
        if not session.state(TrainState).looked_for_recorded:
            session.change(TrainState, recorded=bundled_recording(), looked_for_recorded=True)
        pass_over_example(machine, session)
        yield

    return Analysis(wanted, run)


def wanted(s: Snapshot) -> Hashable:
    """What is missing: the recording, or the forward pass of the displayed step."""
    state, shown = s.state(TrainState), shown_of(s)
    if not state.looked_for_recorded:
        return "recording"
    if shown is None or state.is_passed(shown.run, shown.evaluation.step):
        return None
    return shown.run, shown.evaluation.step
