"""A document's lock: one writer at a time; a stream of tokens yields to any other change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from threading import Condition, Lock, RLock
from typing import TypeVar

T = TypeVar("T")
MAX_STREAM_WAIT_SECONDS = 1.0  # longest time an edit waits for a stream to end


class DocumentLock:
    """Two locks and a turn number.

    A stream runs in a thread that cannot be interrupted: cancelling its event has no effect before its next yield.
    Each step therefore first checks that the stream's turn is still the current one. An edit takes the turn, waits for
    the step in progress, and then changes the document.

    Lock order: `_writing` before `_shortening`. `_writing` is held for one step of a stream. `_shortening` is held by
    readers, during which the text may grow but not shrink, and by edits, during which no other thread may read.
    """

    def __init__(self) -> None:
        self.turn = 0  # the current turn
        self._stream: int | None = None  # the turn of the newest stream; None once it has ended
        self._turns, self._writing, self._shortening = Condition(), Lock(), RLock()

    @property
    def streaming(self) -> bool:
        """Return whether a stream is running or about to start."""
        return self._stream == self.turn

    def begin(self) -> int:
        """Start a stream and return its turn. Any previous stream stops."""
        with self._turns:
            self.turn += 1
            self._stream = self.turn
            self._turns.notify_all()
            return self.turn

    def end(self, turn: int) -> None:
        with self._turns:
            if self._stream == turn:
                self._stream = None
                self._turns.notify_all()

    def take(self) -> None:
        """Stop the current stream before its next step."""
        with self._turns:
            self.turn += 1
            self._turns.notify_all()

    def rest(self, turn: int, seconds: float) -> bool:
        """Wait `seconds` between two steps of a stream, or less if it loses its turn. Returns whether it keeps it."""
        with self._turns:
            return not self._turns.wait_for(lambda: self.turn != turn, max(0.0, seconds))

    @contextmanager
    def writing(self, turn: int) -> Iterator[bool]:
        """Hold the lock for one step of a stream; a step only appends. Yields whether it is still the stream's turn."""
        with self._writing:
            yield self.turn == turn

    @contextmanager
    def settling(self, turn: int | None = None) -> Iterator[bool]:
        """Hold the lock as in `writing`, but for what may shorten the document or runs the model on unread tokens.

        A stream that has the turn keeps it and waits.
        """
        with self._writing, self._shortening:
            yield self.turn == turn

    def steps(self, turn: int, steps: Iterator[T], *, shorten: bool = False) -> Iterator[T]:
        """Take each step under the lock while the stream has its turn. shorten: whether it may shorten the document."""
        hold = self.settling if shorten else self.writing
        while True:
            with hold(turn) as has_turn:
                made = [*islice(steps, 1)] if has_turn else []
            if not made:
                return
            yield made[0]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for an edit. Waits for a running stream to end, so that its last frame precedes the edit."""
        self.take()
        with self._turns:
            self._turns.wait_for(lambda: self._stream is None, MAX_STREAM_WAIT_SECONDS)
        with self._writing, self._shortening:
            self.take()  # stops a stream that began during the wait
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock for reading the document, which may grow but not shrink."""
        with self._shortening:
            yield
