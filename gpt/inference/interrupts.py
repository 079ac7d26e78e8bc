"""Ctrl-C in the middle of a step would leave a text half read."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_later() -> Iterator[None]:
    """A Ctrl-C waits until what is inside is done; a second one does not. Only the main thread ever gets one."""
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(before):
        yield
        return
    came: list[tuple[object, ...]] = []

    def remember(*arguments: object) -> None:
        if came:
            before(*arguments)
        came.append(arguments)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        before(*came[0])
