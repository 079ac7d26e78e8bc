"""The sessions of everybody: by the random id that a browser tab keeps, within limits of time, number and bytes."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from components.state.session import Session

IDLE_SECONDS = 30 * 60.0  # without an event; the page keeps the text and brings it back
MAX_SESSIONS = 2_000
MAX_BYTES = 2 * 2**30  # of all documents together
SWEEP_SECONDS = 30.0  # between two sweeps, made by whoever asks for a session
_ID = re.compile(r"[0-9a-f]{32}")


def is_session_id(value: object) -> bool:
    """Whether a browser may have made this id: 128 random bits in hexadecimal."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


class SessionStore:
    """Sessions in the order of their last use. The oldest idle ones go first when a limit is reached.

    A session that is busy (a text is being written, a model is being trained) stays until it is not.
    """

    def __init__(
        self,
        *,
        idle_seconds: float = IDLE_SECONDS,
        max_sessions: int = MAX_SESSIONS,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.idle_seconds, self.max_sessions, self.max_bytes = idle_seconds, max_sessions, max_bytes
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._used: dict[str, float] = {}
        self._swept = clock()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: str) -> Session | None:
        """The session of an id, marked as used now; None where there is none (any more)."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is not None:
                self._sessions.move_to_end(session_id)
                self._used[session_id] = self._clock()
        if self._clock() - self._swept > SWEEP_SECONDS:
            self.sweep()
        return session

    def put(self, session_id: str, session: Session) -> None:
        """Keep a session under its id, in place of any other; what is over a limit is closed."""
        with self._lock:
            replaced = self._sessions.pop(session_id, None)
            session.id = session_id
            self._sessions[session_id] = session
            self._used[session_id] = self._clock()
        if replaced is not None and replaced is not session:
            replaced.close()
        self.sweep()

    def remove(self, session_id: str) -> None:
        """Close a session and forget it."""
        with self._lock:
            session = self._sessions.pop(session_id, None)
            self._used.pop(session_id, None)
        if session is not None:
            session.close()

    def sweep(self) -> None:
        """Close what nobody used for a while, and the oldest idle ones beyond the limits of number and bytes."""
        with self._lock:
            self._swept = self._clock()
            closing = self._over_limits()
        for session_id in closing:
            self.remove(session_id)

    def _over_limits(self) -> list[str]:
        now, closing = self._clock(), []
        count, total = len(self._sessions), sum(session.n_bytes for session in self._sessions.values())
        newest = next(reversed(self._sessions), None)
        for session_id, session in self._sessions.items():
            idle = now - self._used[session_id] > self.idle_seconds
            over = session_id != newest and (count > self.max_sessions or total > self.max_bytes)
            if (idle or over) and not session.busy:
                closing.append(session_id)
                count, total = count - 1, total - session.n_bytes
        return closing
