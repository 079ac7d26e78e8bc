"""What a function reads from a snapshot is what its result depends on.

A function that draws or computes something gets a `Reads` instead of the snapshot. It records every value read, so the
function runs again only if one of these values has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Generic, TypeVar

from components.errors import NothingToShow
from components.state.snapshot import Snapshot

T = TypeVar("T")
Seen = dict[Any, Any]  # value by what was read: an attribute, (state class, field), or a Computed


class Pending(Exception):
    """Raised by reading a result that has not been computed yet, or is out of date."""


@dataclass(frozen=True, eq=False)
class Computed(Generic[T]):
    """A result that `function(snapshot)` computes off the page's thread, while something on the open tab reads it."""

    function: Callable[[Any], T]
    while_writing: bool = False  # also compute it while a text is being written
    is_usable: Callable[[Any, Snapshot], bool] | None = None  # for outdated values; those that it refuses are dropped

    def latest(self, s: Snapshot) -> T | None:
        """Return the latest result, which may be out of date, or None if there is none."""
        result = s.states.get(self)
        return result.value if isinstance(result, Result) else None


@dataclass(frozen=True)
class Watched:
    """Key of `Seen` for a value that a function returns."""

    function: Callable[[Snapshot], Any]


@dataclass(frozen=True, eq=False)
class Result(Generic[T]):
    """The latest result of a `Computed`: its value or the error that it raised, and what it depends on."""

    value: T | None
    seen: Seen
    error: Exception | None = None
    is_partial: bool = False  # whether it is still being computed
    stamp: object = field(default_factory=object)  # stands for it in what has been read, which keeps no results

    @property
    def n_bytes(self) -> int:
        """Memory that the value reports, in bytes."""
        return getattr(self.value, "n_bytes", 0)


class Reads:
    """A snapshot that records what is read from it in `seen`.

    `s.text` reads an attribute, `s[Chosen].x` a field of a tab's state, and `s[histogram]` the result of a `Computed`.
    Reading a result that does not exist yet or is out of date raises `Pending`. If it is an error, that error is raised
    and becomes `problem`. fresh: if not None, results other than these also raise `Pending` if they are only partial or
    usable.
    """

    def __init__(self, snapshot: Snapshot, fresh: Collection[Computed[Any]] | None = None) -> None:
        self.snapshot, self.seen, self.fresh = snapshot, Seen(), fresh
        self.problem: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.snapshot, name)
        if isinstance(value, MethodType):
            return MethodType(value.__func__, self)  # records what the method reads
        self.seen[name] = value
        return value

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Computed):
            return self._result(key)
        if hasattr(key, "read_by_field"):
            return ReadState(self, key)
        self.seen[key] = value_of(self.snapshot, key)
        return self.snapshot.state(key)

    state = __getitem__

    def _result(self, computed: Computed[Any]) -> Any:
        _, is_current = self.seen[computed] = value_of(self.snapshot, computed)
        result: Any = self.snapshot.states.get(computed)
        is_early = self.fresh is not None and computed not in self.fresh and not is_ready(self.snapshot, computed)
        if is_early or not is_current:
            raise Pending
        if result.error is not None:
            self.problem = result.error
            raise result.error
        return result.value

    def ready(self, computed: Computed[T]) -> T | None:
        """Return a result, or None until it is up to date or if there is none, for what can be drawn without it."""
        try:
            return self._result(computed)
        except (Pending, NothingToShow):
            return None

    @property
    def has_results(self) -> bool:
        """Whether every result read so far exists, even if it is out of date."""
        return all(seen[0] is not None for key, seen in self.seen.items() if isinstance(key, Computed))

    def watch(self, function: Callable[[Snapshot], T]) -> T:
        """Return function(snapshot) and record its result only, for what changes without the session, such as a run."""
        value = self.seen[Watched(function)] = function(self.snapshot)
        return value

    def cached(self, make: Callable[[Any], T]) -> T:
        """Return make(self), computed once per snapshot."""

        def read(snapshot: Snapshot) -> tuple[T | None, Seen, type[Pending] | Exception | None, Exception | None]:
            inner, value = Reads(snapshot, self.fresh), None
            raised: type[Pending] | Exception | None = None
            try:
                value = make(inner)
            except Pending:  # an instance would keep the snapshot in its traceback
                raised = Pending
            except Exception as problem:
                raised = problem
            return value, inner.seen, raised, inner.problem

        value, seen, raised, problem = self.snapshot.cached(read, key=make)
        self.seen |= seen
        self.problem = self.problem or problem
        if raised is not None:
            raise raised
        return value  # type: ignore[return-value]


class ReadState:
    """The state of a class that `Tab.state` made. Reading anything but a field counts as reading the whole state."""

    def __init__(self, reads: Reads, cls: type) -> None:
        self._reads, self._cls = reads, cls

    def __getattr__(self, name: str) -> Any:
        reads, cls = self._reads, self._cls
        key = (cls, name) if name in cls.read_by_field else cls  # type: ignore[attr-defined]
        reads.seen[key] = value_of(reads.snapshot, key)
        return getattr(reads.snapshot.state(cls), name)


def value_of(snapshot: Snapshot, key: Any) -> Any:
    """Return the current value for a key of `Seen`; of a Computed, the latest stamp and whether it can be drawn."""
    match key:
        case str():
            return getattr(snapshot, key)
        case Computed():
            result = snapshot.states.get(key)
            if not isinstance(result, Result):
                return None, False
            is_usable = key.is_usable is not None and result.error is None and key.is_usable(result.value, snapshot)
            return result.stamp, is_usable or is_same(result.seen, snapshot)
        case Watched(function):
            return function(snapshot)
        case (cls, name):
            return getattr(snapshot.state(cls), name)
    return snapshot.states.get(key)


def is_same(seen: Seen, snapshot: Snapshot) -> bool:
    return all(now is before or now == before for key, before in seen.items() for now in (value_of(snapshot, key),))


def is_ready(snapshot: Snapshot, computed: Computed[Any]) -> bool:
    """Return whether a result is complete and, like all those that it read, up to date."""
    result = snapshot.states.get(computed)
    if not isinstance(result, Result) or result.is_partial or not is_same(result.seen, snapshot):
        return False
    return all(is_ready(snapshot, key) for key in result.seen if isinstance(key, Computed))
