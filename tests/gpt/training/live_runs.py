"""Live runs that end within moments."""

from __future__ import annotations

import threading

from gpt.training.data import TASKS, Dataset, TaskDataset
from gpt.training.live_run import LiveRun
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch

TINY = Recipe(n_layer=2, n_head=2, n_embd=16, steps=12, batch_size=8, warmup=2)
LONG = Recipe(n_layer=1, n_head=2, n_embd=8, steps=5000, batch_size=1, warmup=2)
TIMEOUT = 120  # seconds before a test gives up


class Gate(TaskDataset):
    """The addition task, where each batch waits for the test's permission."""

    def __init__(self) -> None:
        super().__init__(TASKS["add"])
        self.requested, self.permitted = threading.Semaphore(0), threading.Semaphore(0)

    def batch(self, step: int, size: int) -> Batch:
        self.requested.release()
        assert self.permitted.acquire(timeout=TIMEOUT)
        return super().batch(step, size)

    def reach(self) -> None:
        """Wait until a batch is requested."""
        assert self.requested.acquire(timeout=TIMEOUT)

    def let(self, count: int) -> None:
        """Permit `count` batches, and wait until the next one is requested."""
        for _ in range(count):
            self.permitted.release()
            self.reach()

    def open(self) -> None:
        """Permit every batch."""
        self.permitted.release(LONG.steps)


def finished(dataset: Dataset | None = None, recipe: Recipe = TINY) -> LiveRun:
    run = LiveRun(dataset or TaskDataset(TASKS["add"]), recipe)
    run.start()
    assert run.wait(TIMEOUT)
    return run
