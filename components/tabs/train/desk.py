"""The training runs of each visitor: the newest, and earlier ones whose models are in the visitor's list."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

from components.errors import PageError
from gpt.training.live_run import ENDED, LiveRun, RunSnapshot
from gpt.training.run_queue import RunQueue

MAX_MODELS = 4  # opened models per visitor; one more replaces the oldest
MAX_VISITORS = 64  # visitors who have runs; one more replaces the one whose run ended first


class Desk:
    """One for each page; owners are the sessions of the browser. All methods can be called from any thread."""

    def __init__(self, queue: RunQueue | None = None) -> None:
        self.queue = queue or RunQueue()
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, list[LiveRun]] = OrderedDict()  # by owner, each one's newest last

    def run(self, owner: str) -> LiveRun | None:
        """The owner's newest run."""
        with self._lock:
            return self._runs[owner][-1] if owner in self._runs else None

    def snapshot(self, owner: str) -> RunSnapshot | None:
        """The owner's newest run at this moment, with its place among those that wait."""
        run = self.run(owner)
        return None if run is None else replace(run.snapshot, queue_position=self.queue.position(run))

    def submit(self, owner: str, run: LiveRun) -> None:
        """Start a run, or let it wait; of the owner's earlier ones those stay whose models were opened.

        Raises PageError if the owner's newest run has not ended, QueueFull if too many wait already.
        """
        with self._lock:
            runs = self._runs.get(owner, [])
            if runs and runs[-1].state not in ENDED:
                raise PageError("train.error.busy")
            self.queue.submit(run)
            closed = [each for each in runs if each.registered_name is None]
            self._runs[owner] = [*(each for each in runs if each not in closed), run]
            self._runs.move_to_end(owner)
            ended = [each for each, (*_, newest) in self._runs.items() if newest.state in ENDED]
            for each in ended[: max(0, len(self._runs) - MAX_VISITORS)]:
                closed += self._runs.pop(each)
        for each in closed:
            each.close()

    def open(self, owner: str, run: LiveRun, *, used: str = "") -> list[str]:
        """Let every tab know the model of a run; returns the names of the owner's models, this one last.

        used: the name of a model that is not to be forgotten. Raises ValueError if the run has not finished.
        """
        name = run.register()
        with self._lock:
            runs = self._runs.get(owner, [])
            others = [each for each in runs if each.registered_name is not None and each is not run]
            closed = [each for each in others if each.registered_name != used][: max(0, len(others) + 1 - MAX_MODELS)]
            self._runs[owner] = [each for each in runs if each not in closed]
            names = [str(each.registered_name) for each in others if each not in closed]
        for each in closed:
            each.close()
        return [*names, name]

    def leave(self, owner: str) -> None:
        """The visitor has gone: end the runs, forget the models, delete the files."""
        with self._lock:
            runs = self._runs.pop(owner, [])
        for run in runs:
            run.close()
