"""What one visitor's Inside tab remembers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from components.tabs.inside.record import MEMORY, Record
from gpt import Generation

OF_RECORD = {"overview", "rollout", "traced"}  # what parts remember of one record


@dataclass
class Memory:
    """Changed in place.

    limit: bytes that a record may take, see `Record`. part: which one is open. key: the selected token that is looked
    at, None where none was selected from here. kept: what each part remembers by itself. shown: the document and how
    much of it is on the screen. lock: held while a picture is made, as a visitor's events may run side by side.
    """

    limit: int = MEMORY
    record: Record | None = None
    part: int = 0
    key: int | None = None
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    shown: tuple[int, int] = (0, 0)
    rests_until: float = 0.0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()  # no field: gradio copies those

    def __deepcopy__(self, memo: dict[int, object]) -> Memory:
        """Another visitor starts with nothing."""
        return Memory(self.limit)

    def read(self, document: Generation) -> Record:
        """The record of that document, up to what has been read of it."""
        if self.record is None or self.record.document is not document:
            self.record = None  # and nothing that holds it: the limit is for one
            for kept in self.kept.values():
                for name in OF_RECORD & kept.keys():
                    del kept[name]
            self.record = Record(document, self.limit)
        self.record.extend()
        return self.record

    def forget_sent(self) -> None:
        """The browser does not hold what it was sent: send everything again."""
        for kept in self.kept.values():
            kept.pop("sent", None)

    def choose(self, key: object, *, moved: bool) -> None:
        """Select a token that is looked at; looking from another one without saying at what selects none."""
        if type(key) is int and key >= 0:
            self.key = key
        elif moved:
            self.key = None
