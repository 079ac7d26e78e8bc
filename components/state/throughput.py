"""Throughput during generation, and how often it is reported to the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from components.monitoring import FIRST_TOKEN
from gpt import LoadedModel

T = TypeVar("T")
UPDATE_COST_SECONDS = 0.005  # server time per update, excluding the model's share
MAX_UPDATE_SHARE = 0.5  # largest fraction of the server's time that updates may take


@dataclass(frozen=True)
class Throughput:
    """Number of tokens, model time in seconds excluding waiting, and time to first token."""

    seed: int | None
    count: int = 0
    seconds: float = 0.0
    first_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float | None:
        return self.count / self.seconds if self.seconds else None


def measured(
    steps: Iterator[T],
    seed: int | None,
    began: float,
    report: Callable[[Throughput], None] = lambda throughput: None,
    model_seconds: Callable[[], float] | None = None,
) -> Iterator[T]:
    """Pass on the steps during generation, calling `report` with the current throughput before each one.

    Args:
        steps: May contain None, which is not a step (see `gpt.documents.backends.polled`).
        began: Start of the request, from time.perf_counter().
        model_seconds: As in `gpt.documents.backends`; defaults to the time spent waiting for each step.
    """
    count, seconds, first = 0, 0.0, 0.0
    start = time.perf_counter()
    for step in steps:
        now = time.perf_counter()
        if step is not None:
            first = first or now - began
            if not count:
                FIRST_TOKEN.observe(first)
            count, seconds = count + 1, model_seconds() if model_seconds else seconds + now - start
            report(Throughput(seed, count, seconds, first))
        yield step
        start = time.perf_counter()


def min_update_interval(loaded: LoadedModel) -> float:
    """Return the minimum number of seconds between two updates of one stream.

    It is 0 for a single stream and grows with the number of streams.
    """
    admission = loaded.engine.admission  # waiting texts also count, because they may have begun: texts take turns
    return UPDATE_COST_SECONDS / MAX_UPDATE_SHARE * max(0, admission.n_admitted + admission.n_waiting - 1)
