"""Who may change a document: one writer at a time; a stream writes only until somebody else asks for its turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import TypeVar

T = TypeVar("T")
MAX_STREAM_WAIT_SECONDS = 1.0  # that a change by hand waits for a stream to end


class DocumentLock:
    """Two locks and a turn number.

    A stream writes in a thread that cannot be interrupted: cancelling its event ends nothing before its next yield.
    Each of its steps therefore checks first that its turn is still the current one. A change by hand takes the turn
    away, waits for the step that is being made, and only then touches the document.

    Order: `_writing` before `_shortening`. `_writing` is held for one step of a stream; `_shortening` by readers, for
    whom the text may grow but never become shorter, and by changes, for which nobody may read.
    """

    def __init__(self) -> None:
        self._turn = 0  # the newest one
        self._stream: int | None = None  # the turn of the newest stream, until it has ended
        self._turns, self._writing, self._shortening = Condition(), Lock(), Lock()

    @property
    def streaming(self) -> bool:
        """Whether a stream is writing, or about to."""
        return self._stream == self._turn

    def begin(self) -> int:
        """The turn of a stream that begins; whatever wrote before stops."""
        with self._turns:
            self._turn += 1
            self._stream = self._turn
            self._turns.notify_all()
            return self._turn

    def end(self, turn: int) -> None:
        """That stream has ended, however it did."""
        with self._turns:
            if self._stream == turn:
                self._stream = None
                self._turns.notify_all()

    def take(self) -> None:
        """Make the stream stop before its next step."""
        with self._turns:
            self._turn += 1
            self._turns.notify_all()

    def rest(self, turn: int, seconds: float) -> None:
        """Wait between two steps of a stream, as long as it has its turn."""
        with self._turns:
            self._turns.wait_for(lambda: self._turn != turn, max(0.0, seconds))

    @contextmanager
    def writing(self, turn: int) -> Iterator[bool]:
        """For one step of a stream, which only appends: whether it still has its turn."""
        with self._writing:
            yield self._turn == turn

    def steps(self, turn: int, steps: Iterator[T]) -> Iterator[T]:
        """The same steps, each made while this stream has its turn; they end when it has lost it."""
        nothing = object()
        while True:
            with self.writing(turn) as mine:
                step = next(steps, nothing) if mine else nothing
            if step is nothing:
                return
            yield step

    @contextmanager
    def beginning(self, turn: int) -> Iterator[bool]:
        """As `writing`, for what a stream does first, which may shorten the document."""
        with self._writing, self._shortening:
            yield self._turn == turn

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For a change by hand: no stream writes and nobody reads meanwhile.

        Waits a moment for a running stream to end, so that what it shows last does not come after the change.
        """
        self.take()
        with self._turns:
            self._turns.wait_for(lambda: self._stream is None, MAX_STREAM_WAIT_SECONDS)
        with self._writing, self._shortening:
            self.take()  # for a stream that began while this waited
            yield

    @contextmanager
    def settling(self) -> Iterator[None]:
        """For reading unread tokens while a stream may hold the turn: the stream keeps it and waits."""
        with self._writing, self._shortening:
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """For looking at the document: the text may grow meanwhile, and never becomes shorter."""
        with self._shortening:
            yield
