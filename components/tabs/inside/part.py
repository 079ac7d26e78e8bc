"""One part of the Inside tab: its own tab within it, and what it shows of the selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from components.i18n import Language
from components.state.selection import Selection
from components.tabs.inside.record import Record

Values = dict[Any, Any]


@dataclass(frozen=True)
class Scene:
    """What there is to show. position: the selected one, as far as the record goes; key: the selected token that is
    looked at from there, or None; controls: the values of the part's own controls; kept: what the part remembers of
    this visitor, its own to change; under "sent" what the browser holds, which may turn out to be untrue; moved: the
    control that was just changed, or None."""

    record: Record
    look: Selection
    position: int
    key: int | None
    language: Language
    controls: Values
    kept: dict[str, Any]
    moved: Any = None


@dataclass(frozen=True)
class Part:
    """name: of the tab, for ids. show: new values for `outputs`. A change of a control shows the part again.

    Those in `clickable` raise `.select` with any of {"position", "layer", "head", "key"}, or with {"whole"} where one
    lacks what it was sent before. meaning: of what others of them send, such as {"x": "layer"} of a chart.
    answers: to a widget's `.input`, from what the part remembers and the look that is asked about; selects nothing.
    """

    name: str
    tab: gr.Tab
    pictures: tuple[gr.HTML, ...]
    show: Callable[[Scene], Values]
    controls: tuple[Any, ...] = ()
    clickable: tuple[gr.HTML, ...] = ()
    meaning: Mapping[gr.HTML, Mapping[str, str]] = field(default_factory=dict)
    answers: Mapping[gr.HTML, Callable[[dict[str, Any], Selection], Any]] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[Any, ...]:
        """What `show` may change."""
        return (*self.pictures, *self.controls)

    def empty(self) -> Values:
        """Nothing, where there is no text."""
        return dict.fromkeys(self.pictures, "")
