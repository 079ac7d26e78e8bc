"""Shared by all panels: the definition of a panel, results computed in a thread, and controls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor

from components.errors import PageError
from components.i18n import t
from components.parts import (
    Choices,
    ControlOptions,
    Handler,
    Live,
    Part,
    check_box,
    choice,
    question,
    section,
    select,
    slider,
)
from components.render import Analysis, Renderer, View
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.sentence import sentence, sentence_data
from gpt.background import run_with_progress
from gpt.inference.threads import SMALL_WORK, threads_for

T = TypeVar("T")
IsOpen = Callable[[Snapshot], bool]


class Panel(NamedTuple):
    """An experiment: its contents, the views that draw its pictures, and the analysis that they need, if any."""

    part: Part
    views: Sequence[View]
    analysis: Analysis | None = None


def add_panel(renderer: Renderer, tab: str, is_open: IsOpen, panel: Panel) -> None:
    """Show a panel in a tab. While it is closed, it is neither drawn nor computed, and nothing is sent for it."""

    def while_open(draw: Callable[[Snapshot], Any], closed: Any) -> Callable[[Snapshot], Any]:
        return lambda s: draw(s) if is_open(s) else closed

    shown = [View(view.name, while_open(view.draw, {})) for view in panel.views]
    analysis = panel.analysis
    wanted = None if analysis is None else replace(analysis, wanted=while_open(analysis.wanted, None))
    renderer.add(tab, shown, wanted)


def panel_section(name: str, *parts: Part) -> Part:
    """Return a panel's section: its title, the sentences from its views, and further parts.

    The views are `<name>-answer` and `<name>-notice`.
    """
    return section(
        question(f"{name}.question"),
        sentence(f"{name}-answer", kind="lead"),
        sentence(f"{name}-notice", kind="notice"),
        *parts,
        classes="gb-panel",
    )


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


def value_of(s: Snapshot, result: Result[T] | None) -> T | None:
    """Return a result's value, or None if there is none or it was computed for another text."""
    text = None if result is None else getattr(result.request, "text", None)
    if result is None or (text is not None and (s.text is None or text.version != s.text.version)):
        return None
    return result.value


def text_of(s: Snapshot) -> Text | None:
    """Return the text for a computation, or None while it is being generated or until the model has read some of it."""
    return None if s.text is None or s.text.n_read == 0 or s.generating else s.text


def no_text(s: Snapshot) -> PageError | None:
    """Return the error for a panel that needs a text, or None if there is a text."""
    return PageError("error.no_text") if s.text is None or s.text.n_read == 0 else None


def problem_sentence(s: Snapshot, *problems: Exception | Result[Any] | None) -> dict[str, Any]:
    """Return the notice for the first problem that is not None. Each problem is an error or a result."""
    found = (each.problem if isinstance(each, Result) else each for each in problems)
    return sentence_data(next((each for each in found if each is not None), None))


def waiting_sentence(s: Snapshot) -> str:
    """Return the placeholder for an answer that is being computed."""
    return t("panel.waits" if s.generating else "panel.busy")


def best_of_both(before: Tensor, after: Tensor, n: int) -> list[int]:
    """Return the ids of the n - 3 most likely tokens in one prediction and the 3 most likely in another.

    before, after: (vocab_size,).
    """
    counted = zip((before, after), (n - 3, 3), strict=True)
    return list(dict.fromkeys(i for one, k in counted for i in one.topk(min(k, len(one))).indices.tolist()))


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


def select_position(session: Session, position: object) -> None:
    """Select a token in every tab."""
    session.select(position=within(0, len(session.document.ids))(position) if session.document else None)


def position_slider(name: str, label: str, *, show: Live | None = None) -> Part:
    """Return a slider for the selected token. label: a catalogue key; `<label>.info` is the sentence below."""

    def last(s: Snapshot) -> int:
        return 1 if s.text is None else max(1, s.text.n_read - 1)

    def value(s: Snapshot) -> int:
        return max(0, s.position or 0)

    info = f"{label}.info"
    return slider(name, 0, last, 1, label=label, info=info, value=value, on=select_position, show=show)
