"""Throughput of a running generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from components.monitoring import FIRST_TOKEN

T = TypeVar("T")


@dataclass(frozen=True)
class Throughput:
    """Number of tokens, model time in seconds without waiting, and time to the first token."""

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
    """Pass the steps of a generation on, calling `report` with the current throughput before each one.

    steps: None among them is no step, see `gpt.documents.backends.polled`. began: start of the request, by
    time.perf_counter(). model_seconds: as of `gpt.documents.backends`; None: what each step is waited for.
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
