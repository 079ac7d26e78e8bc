"""Who may change a visitor's document: one at a time, and a stream only until somebody else asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import TypeVar

T = TypeVar("T")
LAST_WORDS_SECONDS = 1.0  # that a change by hand waits at most for a stream to end


class Turns:
    """A stream writes in a thread that cannot be interrupted, so cancelling it ends nothing before its next yield.

    Each of its steps therefore asks first whether it still has its turn. A change by hand takes the turn away, waits
    for the step that is being made, and only then touches the document.
    """

    def __init__(self) -> None:
        self._number = 0  # of the newest turn
        self._stream: int | None = None  # the turn of the newest stream, until it has ended
        self._counting, self._writing, self._steady = Condition(), Lock(), Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> Turns:
        """Another visitor has turns of their own."""
        return Turns()

    @property
    def streaming(self) -> bool:
        """Whether a stream is writing, or about to."""
        return self._stream == self._number

    def begin(self) -> int:
        """The turn of a stream that begins; whatever wrote before stops."""
        with self._counting:
            self._number += 1
            self._stream = self._number
            self._counting.notify_all()
            return self._number

    def end(self, turn: int) -> None:
        """That stream has ended, however it did."""
        with self._counting:
            if self._stream == turn:
                self._stream = None
                self._counting.notify_all()

    def take(self) -> None:
        """Let the stream stop before its next step."""
        with self._counting:
            self._number += 1
            self._counting.notify_all()

    def rest(self, turn: int, seconds: float) -> None:
        """Let a stream wait between two steps, as long as it has its turn."""
        with self._counting:
            self._counting.wait_for(lambda: self._number != turn, max(0.0, seconds))

    @contextmanager
    def writing(self, turn: int) -> Iterator[bool]:
        """For one step of a stream, which only adds to the document: whether it still has its turn."""
        with self._writing:
            yield self._number == turn

    def steps(self, turn: int, steps: Iterator[T]) -> Iterator[T]:
        """The same steps, each made while this stream still has its turn; they end where it has it no more."""
        nothing = object()
        while True:
            with self.writing(turn) as mine:
                step = next(steps, nothing) if mine else nothing
            if step is nothing:
                return
            yield step

    @contextmanager
    def beginning(self, turn: int) -> Iterator[bool]:
        """The same for what a stream does first, which may shorten the document."""
        with self._writing, self._steady:
            yield self._number == turn

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For a change by hand: no stream writes any more, and nobody looks meanwhile.

        The stream has ended by then, or is stuck: what it shows last must not come after what the change shows.
        """
        self.take()  # so that a stream lets go of the lock for good
        with self._counting:
            self._counting.wait_for(lambda: self._stream is None, LAST_WORDS_SECONDS)
        with self._writing, self._steady:
            self.take()  # for a stream that began while this waited
            yield

    @contextmanager
    def settling(self) -> Iterator[None]:
        """For reading what is unread where nobody may be writing: a stream keeps its turn and waits."""
        with self._writing, self._steady:
            yield

    @contextmanager
    def looking(self) -> Iterator[None]:
        """For reading: the text may grow meanwhile, and never becomes shorter."""
        with self._steady:
            yield
