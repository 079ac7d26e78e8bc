"""Who may train now: a few runs at a time, one for each person, the others in the order they came."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import replace
from functools import partial

from gpt.errors import GPTError
from gpt.training.live_run import OVER, LiveRun, Progress


class QueueFull(GPTError):
    """As many runs wait already as may."""


class LiveQueue:
    """The runs of everybody.

    at_once: runs that train at the same time, a paused one included; None is one for every two cores.
    longest: runs that may wait. kept: runs that are over and can still be looked at; the oldest are forgotten first.
    """

    def __init__(self, *, at_once: int | None = None, longest: int = 16, kept: int = 16) -> None:
        self.at_once = max(1, (os.cpu_count() or 1) // 2) if at_once is None else at_once
        self.longest, self.kept = longest, kept
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()  # by owner, the first to come first
        self._active: set[LiveRun] = set()  # their threads are at work

    def submit(self, owner: str, run: LiveRun) -> None:
        """Begin a run, or let it wait for its turn; it takes the place of the owner's last one, if that is over.

        Raises ValueError if the owner has a run that is not over, QueueFull if too many wait already.
        """
        with self._lock:
            last = self._runs.get(owner)
            if last is not None and last.state not in OVER:
                raise GPTError("training.one_at_a_time")
            if (waiting := len(self._waiting())) >= self.longest:
                raise QueueFull("training.queue_full", n=waiting)
            self._runs.pop(owner, None)
            self._runs[owner] = run
            self._begin()
            over = [owner for owner, run in self._runs.items() if run.state in OVER]
            for owner in over[: max(0, len(over) - self.kept)]:
                del self._runs[owner]

    def run(self, owner: str) -> LiveRun | None:
        """The owner's run, the present or the last one."""
        with self._lock:
            return self._runs.get(owner)

    def progress(self, owner: str) -> Progress | None:
        """How the owner's run is, with its place among those that wait."""
        with self._lock:
            run = self._runs.get(owner)
            if run is None:
                return None
            waiting = self._waiting()
            return replace(run.progress, place=waiting.index(run) + 1 if run in waiting else 0)

    def leave(self, owner: str) -> None:
        """Call the owner's run off, if it is not over, and forget it."""
        with self._lock:
            run = self._runs.pop(owner, None)
        if run is not None:
            run.cancel()

    def _waiting(self) -> list[LiveRun]:
        return [run for run in self._runs.values() if run.state == "waiting"]

    def _begin(self) -> None:
        """Start those whose turn it is."""
        for run in self._waiting():
            if len(self._active) < self.at_once and run.start(partial(self._ended, run)):
                self._active.add(run)

    def _ended(self, run: LiveRun) -> None:
        """A run's thread is at its end: the next one may begin."""
        with self._lock:
            self._active.discard(run)
            self._begin()
