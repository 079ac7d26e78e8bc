"""Settings of a tab: a field whose limits give the check, the handler, and the control on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from components import parts
from components.errors import PageError
from components.parts import Handler, Live, Part, Queue, select, slider
from components.state.jobs import run_results, stop
from components.state.session import Session
from components.state.settings import checked_number
from components.state.snapshot import Snapshot

Choices = Mapping[Any, str] | Sequence[Any] | Callable[[Snapshot], Mapping[Any, str]]


@dataclass(frozen=True, eq=False)
class Setting:
    """One field of a tab's state. On the class it is the setting itself, on an instance its value.

    choices: the allowed values, with a label for each unless a value is its own label; may depend on the snapshot.
    low, high, step: limits of a number, both inclusive, and its slider's step; `high` may depend on the snapshot.
    most: largest length of a text.
    """

    default: Any
    choices: Choices | None = None
    low: float | None = None
    high: float | Callable[[Snapshot], float] = math.inf
    step: float = 1
    most: int = 0
    owner: type = object
    name: str = ""
    tab: str = ""

    @property
    def id(self) -> str:
        return f"{self.tab}-{self.name}".replace("_", "-")

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance.__dict__.get(self.name, self.default)

    @property
    def control(self) -> dict[str, Any]:
        """The options of its control, see `components.parts.ControlOptions`."""
        limits = {"low": self.low, "high": self.high, "step": self.step, "max_length": self.most}
        return {"value": self.value, "on": self.set, "choices": self.options, **limits}

    def limit(self, s: Snapshot) -> float:
        return self.high(s) if callable(self.high) else self.high

    def value(self, s: Snapshot) -> Any:
        return getattr(s[self.owner], self.name)

    def options(self, s: Snapshot) -> list[tuple[str, Any]]:
        choices = self.choices(s) if callable(self.choices) else self.choices or ()
        pairs = choices.items() if isinstance(choices, Mapping) else ((value, value) for value in choices)
        return [(str(label), value) for value, label in pairs]

    def checked(self, session: Session, value: Any) -> Any:
        """Return a value from the browser if it is allowed. Raises ValueError otherwise."""
        if self.choices is not None:
            for _, each in self.options(session.snapshot()):
                if each == value and isinstance(each, bool) is isinstance(value, bool):
                    return each  # not `value`: the browser sends 1.0 as 1
            raise PageError("error.choice")
        if isinstance(self.default, bool):
            return value is True
        if self.most:
            return value[: self.most] if isinstance(value, str) else self.default
        low = -math.inf if self.low is None else self.low
        high = self.limit(session.snapshot())
        return checked_number(self.name, value, low, high, whole=isinstance(self.default, int))

    def set(self, session: Session, value: Any) -> None:
        session.change(self.owner, **{self.name: self.checked(session, value)})


def setting(default: Any, choices: Choices | None = None, **limits: Any) -> Any:
    """Declare a setting in a class decorated with `tab.state`. Takes the arguments of `Setting`."""
    return Setting(default, choices, **limits)


def state_class(cls: type, tab: str) -> type:
    """Make a class of settings and other fields a frozen dataclass whose settings know their owner."""
    settings = {name: value for name, value in vars(cls).items() if isinstance(value, Setting)}
    for name, value in settings.items():
        setattr(cls, name, value.default)
    cls = dataclass(frozen=True, eq=False)(cls)
    for name, value in settings.items():
        setattr(cls, name, replace(value, owner=cls, name=name, tab=tab))
    setattr(cls, "read_by_field", {each.name for each in fields(cls)})  # noqa: B010 - see `components.state.reads`
    return cls


def layer_select(name: str, **options: Any) -> Part:
    """Return the drop-down list for the layer that is selected on all tabs. Takes the options of `parts.select`."""
    given: dict[str, Any] = {"value": lambda s: s.selection.layer}
    given["on"] = lambda session, layer: session.select(layer=layer)
    given["choices"] = lambda s: [(str(i), i) for i in range(1 if s.text is None else s.text.config.n_layer)]
    return select(name, "attention.layer", **given | options)


def position_slider(name: str, label: str, **options: Any) -> Part:
    """Return a slider for the token that is selected on all tabs. Takes the options of `parts.slider`.

    label: a catalogue key; `<label>.info` is the sentence below the slider.
    """
    given: dict[str, Any] = {"info": f"{label}.info", "on": lambda session, position: session.select(position=position)}
    given |= {"low": 0, "step": 1, "value": lambda s: max(0, s.position or 0)}
    given["high"] = lambda s: 1 if s.text is None else max(1, s.text.n_read - 1)
    return slider(name, label, **given | options)


def experiment_buttons(
    name: str, label: str, state: type, results: Callable[[Snapshot], Iterator[Any]], *, small: bool = True
) -> Part:
    """Return the buttons that start and stop an experiment (see `run_results`). Only one runs at a time on the server.

    state: has the fields `job`, `latest` and `notice`. label: catalogue key of the Start button.
    """
    start = partial(run_results, state, results, small=small)
    return job_buttons(name, label, start, state, queue="experiment", primary=False)


def job_buttons(
    name: str,
    label: str,
    start: Handler,
    state: type,
    *,
    able: Live | None = None,
    queue: Queue = "model",
    primary: bool = True,
    answer: str = "",
    ends: bool = False,
) -> Part:
    """Return the buttons that start and stop the job in a state's field `job`, at most one of which is enabled.

    label: catalogue key of the Start button. able: whether it is enabled while nothing runs. primary, answer: see
    `button`. ends: whether a stopped job still shows its last results, instead of being cancelled.
    """

    def runs(s: Any) -> bool:
        return s[state].job is not None

    def can_start(s: Any) -> bool:
        return not runs(s) and (able is None or able(s))

    halt: Queue = "interactive" if ends else "stop"
    return parts.row(
        parts.button(f"{name}-start", label, start, queue=queue, enabled=can_start, primary=primary, answer=answer),
        parts.button(f"{name}-stop", "stop", partial(stop, state), queue=halt, enabled=runs),
        classes="gb-buttons gb-short",
    )
