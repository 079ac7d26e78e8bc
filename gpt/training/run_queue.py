"""A queue that limits how many live runs train at the same time. Owners without a run go first."""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter
from functools import partial

from gpt.errors import GPTError
from gpt.training.live_run import LiveRun

MAX_WAITING, MAX_WAITING_OF_OWNER = 16, 8


class QueueFull(GPTError):
    """Raised when the limit on waiting runs is reached."""


class RunQueue:
    """Starts queued runs: each owner's first run before anyone's second, then earlier ones.

    max_running: maximum number of runs that train at the same time, including paused ones; defaults to half the number
    of cores.
    """

    def __init__(
        self,
        *,
        max_running: int | None = None,
        max_waiting: int = MAX_WAITING,
        max_waiting_of_owner: int = MAX_WAITING_OF_OWNER,
    ) -> None:
        self.max_running = max(1, (os.cpu_count() or 1) // 2) if max_running is None else max_running
        self.max_waiting, self.max_waiting_of_owner = max_waiting, max_waiting_of_owner
        self._lock = threading.Lock()
        self._waiting: dict[LiveRun, str] = {}  # {run: owner} in the order of submission
        self._running: dict[LiveRun, str] = {}
        atexit.register(self.close)  # a daemon thread that uses torch while Python exits can abort the process

    def submit(self, run: LiveRun, owner: str = "") -> None:
        """Start a run or add it to the queue. owner: identifies the owner, such as a client's address.

        Raises QueueFull if too many runs are waiting, either in total or for this owner.
        """
        with self._lock:
            self._start_next()
            if len(self._waiting) >= self.max_waiting:
                raise QueueFull("training.queue_full", n=self.max_waiting)
            if [*self._waiting.values()].count(owner) >= self.max_waiting_of_owner:
                raise QueueFull("training.queue_full_of_owner", n=self.max_waiting_of_owner)
            self._waiting[run] = owner
            self._start_next()

    @property
    def n_waiting(self) -> int:
        """Number of waiting runs."""
        with self._lock:
            self._start_next()
            return len(self._waiting)

    def position(self, run: LiveRun) -> int:
        """Return a run's position in the queue: 1 for the next run to start, 0 for a run that is not queued."""
        with self._lock:
            self._start_next()
            return self._in_turn().index(run) + 1 if run in self._waiting else 0

    def close(self) -> None:
        """Close all runs."""
        with self._lock:
            runs = [*self._waiting, *self._running]  # close waiting runs first; otherwise they would start
        for run in runs:
            run.close()

    def _in_turn(self) -> list[LiveRun]:
        """Return the waiting runs in the order in which they will start."""
        n_before, turns = Counter(self._running.values()), {}
        for run, owner in self._waiting.items():
            turns[run] = n_before[owner]
            n_before[owner] += 1
        return sorted(turns, key=lambda run: turns[run])

    def _start_next(self) -> None:
        """Drop cancelled runs from the queue, and start waiting runs up to the limit."""
        self._waiting = {run: owner for run, owner in self._waiting.items() if run.state == "waiting"}
        while self._waiting and len(self._running) < self.max_running:
            run = self._in_turn()[0]
            owner = self._waiting.pop(run)
            if run.start(partial(self._ended, run)):
                self._running[run] = owner

    def _ended(self, run: LiveRun) -> None:
        with self._lock:
            self._running.pop(run, None)
            self._start_next()
