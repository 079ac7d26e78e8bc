"""Storage of sessions by random browser-tab id, with limits on idle time, number and memory."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

from components.limits import IDLE_SECONDS, MAX_SESSION_BYTES, MAX_SESSIONS
from components.state.session import Session

SWEEP_SECONDS = 30.0  # interval between sweeps, which `get` starts
_ID = re.compile(r"[0-9a-f]{32}")


def is_session_id(value: object) -> bool:
    """Return whether the value is a valid id: 128 bits in hexadecimal."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


class SessionStore:
    """Sessions; those used least recently are closed when a limit is reached, except for busy ones."""

    def __init__(
        self,
        *,
        idle_seconds: float = IDLE_SECONDS,
        max_sessions: int = MAX_SESSIONS,
        max_bytes: int = MAX_SESSION_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.idle_seconds, self.max_sessions, self.max_bytes = idle_seconds, max_sessions, max_bytes
        self._clock = clock
        self._sessions: dict[str, tuple[Session, float]] = {}  # with the time of their last use, newest last
        self._swept = clock()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def n_bytes(self) -> int:
        with self._lock:
            return sum(session.n_bytes for session, _ in self._sessions.values())

    def get(self, session_id: str) -> Session | None:
        """Return the session with this id and mark it as used, or return None if there is none."""
        with self._lock:
            session, _ = self._sessions.pop(session_id, (None, 0.0))
            if session is not None:
                self._sessions[session_id] = session, self._clock()
        if self._clock() - self._swept > SWEEP_SECONDS:
            self.sweep()
        return session

    def put(self, session_id: str, session: Session) -> None:
        """Store a session under an id, and close the session it replaces and any that exceed a limit."""
        with self._lock:
            replaced, _ = self._sessions.pop(session_id, (None, 0.0))
            session.id = session_id
            self._sessions[session_id] = session, self._clock()
        if replaced is not None and replaced is not session:
            replaced.close()
        self.sweep()

    def remove(self, session_id: str) -> None:
        with self._lock:
            session, _ = self._sessions.pop(session_id, (None, 0.0))
        if session is not None:
            session.close()

    def sweep(self) -> None:
        """Close idle sessions, and the least recently used ones beyond the limits on number and memory."""
        closing = []
        with self._lock:
            now = self._swept = self._clock()
            count, total = len(self._sessions), sum(session.n_bytes for session, _ in self._sessions.values())
            newest = next(reversed(self._sessions), None)
            for session_id, (session, used) in self._sessions.items():
                is_over = session_id != newest and (count > self.max_sessions or total > self.max_bytes)
                if (is_over or now - used > self.idle_seconds) and not session.busy:
                    closing.append(session_id)
                    count, total = count - 1, total - session.n_bytes
        for session_id in closing:
            self.remove(session_id)
