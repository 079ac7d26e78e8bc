"""Throughput during generation, and how often it is reported to the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from components.monitoring import FIRST_TOKEN
from gpt import LoadedModel, Step

T = TypeVar("T", Step, Step | None)
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
) -> Iterator[T]:
    """Pass on the steps during generation, calling `report` with the current throughput before each one.

    Args:
        steps: May contain None, which is not a step (see `gpt.documents.generation.stream`).
        began: Start of the request, from time.perf_counter().
    """
    count, seconds, first = 0, 0.0, 0.0
    for step in steps:
        if step is not None:
            first = first or time.perf_counter() - began
            if not count:
                FIRST_TOKEN.observe(first)
            count, seconds = count + 1, seconds + step.seconds
            report(Throughput(seed, count, seconds, first))
        yield step


def min_update_interval(loaded: LoadedModel) -> float:
    """Return the minimum number of seconds between two updates of one stream.

    It is 0 for a single stream and grows with the number of streams.
    """
    admission = loaded.engine.admission  # waiting texts also count, because they may have begun: texts take turns
    return UPDATE_COST_SECONDS / MAX_UPDATE_SHARE * max(0, admission.n_admitted + admission.n_waiting - 1)
