"""Synchronisation with other threads in tests of the engine."""

from gpt.inference.engine import Engine

SECONDS = 30  # timeout


def wait_for_requests(engine: Engine, count: int) -> None:
    """Wait until `count` callers are in `Engine.read`."""
    with engine._changed:
        assert engine._changed.wait_for(lambda: len(engine._requests) == count, SECONDS)
