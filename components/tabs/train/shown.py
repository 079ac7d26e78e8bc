"""The displayed state of a training run: one step, and the head and token that stay selected across steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.train.state import FilmState, LearnedState, Run, TrainState
from gpt.training.live_run import Evaluation, RunProgress


@dataclass(frozen=True, eq=False)
class Shown:
    """A training run at the evaluation for the displayed step.

    Attributes:
        layer, head: The chosen head, or the one with the highest `shares_of_next` in the newest evaluation.
        position: The chosen position in the example, or the first one that predicts a token in the answer.
    """

    run: Run
    progress: RunProgress
    evaluation: Evaluation
    layer: int
    head: int
    position: int


def shown_at(state: FilmState, run: Run, progress: RunProgress) -> Shown | None:
    """Return the run at the last evaluation up to the state's step, or None if there are no evaluations yet."""
    evaluations = progress.evaluations
    if not evaluations:
        return None
    until = [each for each in evaluations if state.step is None or each.step <= state.step] or evaluations
    n_layer, n_head = evaluations[-1].attn_weights.shape[:2]
    layer, head, position = state.layer, state.head, state.position
    if layer is None or head is None or layer >= n_layer or head >= n_head:
        layer, head = divmod(int(shares_of_next(evaluations[-1], run).argmax()), n_head)
    if position is None or position >= len(run.dataset.example):
        position = run.dataset.query
    return Shown(run, progress, until[-1], layer, head, position)


def shares_of_next(evaluation: Evaluation, run: Run) -> np.ndarray:
    """Return each head's attention to earlier occurrences of the next token, (n_layer, n_head), in 0..1.

    The attention is averaged over the positions in the answer.
    """
    tokens, first = np.array(run.dataset.example), run.dataset.query
    same = tokens[None, :] == tokens[1:, None]  # (T - 1, T): whether token j equals the one after token i
    weights = evaluation.attn_weights[:, :, first:-1].astype(np.float32)
    return (weights * same[first:]).sum(axis=-1).mean(axis=-1)


def progress_of(s: Snapshot) -> RunProgress | None:
    """Return the progress of the visitor's newest run, cached so that all views in one update agree."""
    return s.watch(_cached_progress)


def _cached_progress(s: Snapshot) -> RunProgress | None:
    return s.cached(_progress)


def _progress(s: Snapshot) -> RunProgress | None:
    return s.state(TrainState).progress()


def _own(s: Snapshot) -> Shown | None:
    state, progress = s.state(TrainState), progress_of(s)
    return None if state.run is None or progress is None else shown_at(state, state.run, progress)


def _recorded(s: Snapshot) -> Shown | None:
    state = s.state(LearnedState)
    return None if state.recorded is None else shown_at(state, state.recorded, state.recorded.progress)


@dataclass(frozen=True)
class Film:
    """A training run whose steps can be replayed. `name` is the name of its tab and the prefix of its views' names."""

    name: Literal["train", "learned"]
    state: type[FilmState]
    find: Callable[[Snapshot], Shown | None]

    def shown(self, s: Snapshot) -> Shown | None:
        """Return the run at the displayed step, or None before its first evaluation."""
        return s.cached(self.find)

    def of(self, s: Snapshot) -> FilmState:
        """Return the film's current state."""
        state: FilmState = s.state(self.state)
        return state

    def change(self, session: Session, **chosen: Any) -> None:
        session.change(self.state, **chosen)


OWN = Film("train", TrainState, _own)
RECORDED = Film("learned", LearnedState, _recorded)
