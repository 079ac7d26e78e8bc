"""A queue of live runs with a limit of concurrent ones, first in first out."""

from __future__ import annotations

import atexit
import os
import threading
from functools import partial

from gpt.errors import GPTError
from gpt.training.live_run import LiveRun


class QueueFull(GPTError):
    """The limit of waiting runs is reached."""


class RunQueue:
    """Starts runs in the order of their submission.

    max_running: runs that train at the same time, paused ones included; None is half the number of cores.
    """

    def __init__(self, *, max_running: int | None = None, max_waiting: int = 16) -> None:
        self.max_running = max(1, (os.cpu_count() or 1) // 2) if max_running is None else max_running
        self.max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting: list[LiveRun] = []
        self._running: set[LiveRun] = set()
        atexit.register(self.close)  # a daemon thread that runs torch while Python exits can abort the process

    def submit(self, run: LiveRun) -> None:
        """Start a run or add it to the queue. Raises QueueFull at max_waiting runs."""
        with self._lock:
            self._start_next()
            if len(self._waiting) >= self.max_waiting:
                raise QueueFull("training.queue_full", n=self.max_waiting)
            self._waiting.append(run)
            self._start_next()

    def position(self, run: LiveRun) -> int:
        """1 for the next run to start, 2 for the one after it ...; 0 for a run that is not queued."""
        with self._lock:
            self._start_next()
            return self._waiting.index(run) + 1 if run in self._waiting else 0

    def close(self) -> None:
        """Close all runs."""
        with self._lock:
            runs = [*self._waiting, *self._running]  # waiting runs first, or the end of a running one would start them
        for run in runs:
            run.close()

    def _start_next(self) -> None:
        """Drop waiting runs that were cancelled, and start as many as may run."""
        self._waiting = [run for run in self._waiting if run.state == "waiting"]
        while self._waiting and len(self._running) < self.max_running:
            run = self._waiting.pop(0)
            if run.start(partial(self._ended, run)):
                self._running.add(run)

    def _ended(self, run: LiveRun) -> None:
        with self._lock:
            self._running.discard(run)
            self._start_next()
