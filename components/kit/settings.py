"""Settings of a tab: a field whose limits give the check, the handler, and the control on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from components.errors import PageError
from components.state.session import Session
from components.state.settings import checked_number
from components.state.snapshot import Snapshot

Choices = Mapping[Any, str] | Sequence[Any] | Callable[[Snapshot], Mapping[Any, str]]


@dataclass(frozen=True, eq=False)
class Setting:
    """One field of a tab's state. On the class it is the setting itself, on an instance its value.

    choices: the allowed values, with a label for each unless a value is its own label; may depend on the snapshot.
    low, high, step: limits of a number, both inclusive, and its slider's step. most: largest length of a text.
    """

    default: Any
    choices: Choices | None = None
    low: float | None = None
    high: float = math.inf
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

    def value(self, s: Snapshot) -> Any:
        return getattr(s[self.owner], self.name)

    def options(self, s: Snapshot) -> list[tuple[str, Any]]:
        choices = self.choices(s) if callable(self.choices) else self.choices or ()
        pairs = choices.items() if isinstance(choices, Mapping) else ((value, value) for value in choices)
        return [(str(label), value) for value, label in pairs]

    def checked(self, session: Session, value: Any) -> Any:
        """Return a value from the browser if it is allowed. Raises ValueError otherwise."""
        if self.choices is not None:
            allowed = [each for _, each in self.options(session.snapshot())]
            if not any(type(each) is type(value) and each == value for each in allowed):
                raise PageError("error.choice")
            return value
        if isinstance(self.default, bool):
            return value is True
        if self.most:
            return value[: self.most] if isinstance(value, str) else self.default
        low = -math.inf if self.low is None else self.low
        return checked_number(self.name, value, low, self.high, whole=isinstance(self.default, int))

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
