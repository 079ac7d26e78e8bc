"""A lesson of the course: its code, its panels and its place in the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from components.panels.panel import Panel
from components.tabs.lessons.code_view import Code
from gpt.config import GPTConfig

PanelBuilder = Callable[[], Panel]
Chapter = Literal["prediction", "tokens", "sampling", "attention", "block", "model", "training", "details", "llama"]


@dataclass(frozen=True)
class Place:
    """A place in the app, which opens with the text of the lesson's figure.

    tab: its id. shape: configuration for the Shapes tab, and whether it is a skeleton; settings: for Write's
    sliders, by name; sliders: the figure's slider, "a" or "b", that gives the value of a setting; selects_head: whether
    to select the lesson's layer and head.
    """

    tab: Literal["playground", "inside", "why", "activations", "shapes", "loss", "train"]
    shape: GPTConfig | None = None
    skeleton: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    sliders: dict[str, Literal["a", "b"]] = field(default_factory=dict)
    selects_head: bool = False


@dataclass(frozen=True)
class Lesson:
    """A lesson. key: of its texts, `lesson.<key>.title` and so on, and of its figure.

    part: of the course. topic: its number among the twenty topics of a GPT built from nothing, by which the list finds
    it. idea: names in `gpt.experiments.minimal`, the shortest code of it. code: excerpts of what runs here. panels:
    builders of what is shown below its figure, or instead of one. beat: the name of the film's beat that shows it, ""
    for none.
    """

    key: str
    part: Chapter
    topic: int
    idea: tuple[str, ...]
    code: tuple[Code, ...]
    place: Place
    panels: tuple[PanelBuilder, ...] = ()
    beat: str = ""
