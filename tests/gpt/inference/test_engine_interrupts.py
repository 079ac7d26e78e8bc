"""A KeyboardInterrupt at any point of a read leaves the text consistent, and other callers continue."""

from __future__ import annotations

import linecache
import signal
import sys
import threading
from collections.abc import Callable

import pytest
import torch

from gpt import Generation, SamplingParams
from tests.gpt.fake_models import tiny_model

HAS_HANDLER = callable(signal.getsignal(signal.SIGINT))
pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread() or not HAS_HANDLER, reason="no Ctrl-C reaches this thread"
)
CLOSE = {"atol": 1e-5, "rtol": 0}
FILES = ("/engine.py", "/batched_decode.py", "/cache.py", "/model.py", "/generation.py", "/document.py")


class Interrupted:
    """Raises KeyboardInterrupt at the n-th line that the calling thread runs in the files of a step.

    With `leaving`, the lines of `Engine._leave`, which cleans up, count as well.
    """

    def __init__(self, line: int, *, leaving: bool = False) -> None:
        self.left, self.leaving = line, leaving

    def __enter__(self) -> Interrupted:
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def trace(self, frame: object, event: str, argument: object) -> Callable[..., object] | None:
        if not frame.f_code.co_filename.endswith(FILES) or (frame.f_code.co_name == "_leave" and not self.leaving):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if event == "line" and not line.startswith("with "):  # the exit of a `with` block is not interrupted
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return self.trace


def lines_of(run: Callable[[], object]) -> int:
    """Count the lines that a call runs in the files of a step."""
    counter = Interrupted(10**9)
    with counter:
        run()
    return 10**9 - counter.left


@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_text_interrupted_at_any_line_continues_as_without_the_interrupt(every):
    loaded, params = tiny_model(n_layer=1), SamplingParams(temperature=0)
    expected = Generation(loaded, "the cat")
    n_lines = lines_of(lambda: next(expected.steps(params, 1)))
    list(expected.steps(params, 3))
    expected.read()
    hits = 0
    for line in range(1, n_lines, every):
        document, interrupted = Generation(loaded, "the cat"), Interrupted(line)
        try:
            with interrupted:
                next(document.steps(params, 1))
        except KeyboardInterrupt:
            hits += 1
        list(document.steps(params, len(expected.ids) - len(document.ids)))
        document.read()
        assert document.ids == expected.ids, line
        assert len(document.path) == len(document.ids), line
        assert document.n_read == expected.n_read == len(document.ids), line
        for position in range(document.n_read):
            assert torch.allclose(document.logits(position), expected.logits(position), **CLOSE), line
    assert hits > 20 / every
