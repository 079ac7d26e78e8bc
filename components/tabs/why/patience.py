"""Work that may take long: the page says what is being done, and a small model leaves the other processors alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, TimeoutError
from typing import Any, TypeVar

from gpt import GPT
from gpt.inference.threads import threads_for

Values = dict[Any, Any]
T = TypeVar("T")
QUIET_SECONDS = 0.3  # until a person is told what is being computed


def patient(model: GPT, doing: Values, work: Callable[[], T]) -> Generator[Values, None, T]:
    """What `work` returns, from a thread of its own; yields `doing` where that takes long. What it raises is raised
    here."""
    task: Future[T] = Future()

    def run() -> None:
        try:
            with threads_for(12 * model.config.n_layer * model.config.n_embd**2):  # of one token
                task.set_result(work())
        except Exception as problem:
            task.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    try:
        return task.result(timeout=QUIET_SECONDS)
    except TimeoutError:
        yield doing
    return task.result()
