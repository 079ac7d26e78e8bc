"""Results computed in a thread, and controls, for tabs that do not use the kit yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from components.parts import (
    Choices,
    ControlOptions,
    Handler,
    Live,
    Part,
    check_box,
    choice,
    select,
    slider,
)
from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt.background import run_with_progress
from gpt.inference.threads import SMALL_WORK, threads_for

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Result(Generic[T]):
    """The value computed for a request. problem: the error raised instead."""

    request: Hashable
    value: T | None = None
    problem: ValueError | None = None


def computed(
    state: type, request_of: Callable[[Snapshot], Hashable], compute: Callable[[Any], Any], *, small: bool = True
) -> Analysis:
    """Return an analysis that stores `compute(request)` in a state's `result` field whenever the request changes.

    request_of: returns everything the result depends on, or None if nothing can be computed. compute: runs in its own
    thread. small: use one core.
    """

    def wanted(s: Snapshot) -> Hashable:
        request = request_of(s)
        result: Result[Any] | None = s.state(state).result
        return None if result is not None and result.request == request else request

    def work(request: Hashable, progress: object) -> Any:
        with threads_for(0 if small else SMALL_WORK):
            return compute(request)

    def run(session: Session) -> Iterator[None]:
        with session.lock.reading():
            request = wanted(session.snapshot())
        if request is None:
            return
        try:
            value = yield from run_with_progress(partial(work, request), lambda done, total: None)
        except ValueError as problem:
            session.change(state, result=Result(request, problem=problem))
        else:
            session.change(state, result=Result(request, value))

    return Analysis(wanted, run)


Check = Callable[[object], Any]  # returns the value to store, or None for an invalid value


def one_of(*choices: Any) -> Check:
    """Return a check that accepts only these values."""
    return lambda value: choices[choices.index(value)] if value in choices else None  # gives 1 even for 1.0 or True


def within(low: float, high: float) -> Check:
    """Return a check that accepts numbers in [low, high]; it returns an int if both limits are ints."""
    number = int if isinstance(low, int) and isinstance(high, int) else float

    def check(value: object) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            return None
        return number(value)

    return check


def store_value(state: type, name: str, check: Check, session: Session, value: object) -> None:
    """Store a control's value if it is valid."""
    checked = check(value)
    if checked is not None:
        session.change(state, **{name: checked})


def setter(state: type, name: str, check: Check) -> Handler:
    """Return the handler for a control that sets a state's field."""
    return partial(store_value, state, name, check)


def of_state(state: type, name: str) -> Live:
    """Return a function that reads a state's field."""
    return lambda s: getattr(s.state(state), name)


class Settings(NamedTuple):
    """A panel's settings: fields of a state, each with a check.

    A control is named after its label, a catalogue key: "tying.shape" stands for the field `shape`, and the control's
    id is "tying-shape".
    """

    state: type
    checks: Mapping[str, Check]

    def slider(self, label: str, low: float, high: float, step: float, *, info: str = "") -> Part:
        """Return a slider for a field."""
        return slider(label.replace(".", "-"), low, high, step, **self._options(label, info))

    def select(self, label: str, choices: Choices | Live, *, info: str = "") -> Part:
        """Return a drop-down list for a field."""
        return select(label.replace(".", "-"), choices, **self._options(label, info))

    def choice(self, label: str, choices: Choices | Live) -> Part:
        """Return side-by-side choices for a field."""
        return choice(label.replace(".", "-"), choices, labelled=True, **self._options(label))

    def check_box(self, label: str) -> Part:
        """Return a checkbox for a field."""
        return check_box(label.replace(".", "-"), **self._options(label))

    def _options(self, label: str, info: str = "") -> ControlOptions:
        _, _, name = label.rpartition(".")
        value, on = of_state(self.state, name), setter(self.state, name, self.checks[name])
        return {"label": label, "info": info, "value": value, "on": on}
