"""The head and the token of the example that stay selected while the step changes."""

from __future__ import annotations

import numpy as np

from components.tabs.train.components import TrainState
from gpt.training.live_run import Evaluation, LiveRun, RunProgress
from gpt.training.recorded_run import RecordedRun

Run = LiveRun | RecordedRun


def pinned_head(state: TrainState, run: Run, progress: RunProgress) -> tuple[int, int]:
    """(layer, head): the chosen one, or the one that attends most to what comes next in the newest evaluation.

    progress: with at least one evaluation.
    """
    newest = progress.evaluations[-1]
    n_layer, n_head = newest.attn_weights.shape[:2]
    if state.layer is not None and state.head is not None and state.layer < n_layer and state.head < n_head:
        return state.layer, state.head
    layer, head = np.unravel_index(int(shares_of_next(newest, run).argmax()), (n_layer, n_head))
    return int(layer), int(head)


def pinned_position(state: TrainState, run: Run) -> int:
    """The chosen position of the example, or the first that predicts a token of the answer."""
    chosen = state.position
    return run.dataset.query if chosen is None or chosen >= len(run.dataset.example) else chosen


def shares_of_next(evaluation: Evaluation, run: Run) -> np.ndarray:
    """(n_layer, n_head): mean attention, in 0..1, of the answer's positions on earlier tokens that are the next one."""
    tokens, first = np.array(run.dataset.example), run.dataset.query
    same = tokens[None, :] == tokens[1:, None]  # (T - 1, T): whether token j is the one after token i
    weights = evaluation.attn_weights[:, :, first:-1].astype(np.float32)
    return (weights * same[first:]).sum(axis=-1).mean(axis=-1)  # type: ignore[no-any-return]
