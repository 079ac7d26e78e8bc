"""A lesson of the course: its code, its panels and its place in the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from components.panels.panel import Panel
from components.tabs.lessons.code_view import Code
from gpt.config import GPTConfig

PanelBuilder = Callable[[], Panel]
Chapter = Literal["vectors", "layers", "attention", "model", "loss", "generation", "training", "use", "llama"]


@dataclass(frozen=True)
class Place:
    """A place in the app, which opens with the text of the lesson's figure.

    tab: its id. shape: configuration for the Shapes tab, and whether it is a skeleton; settings: for Write's
    sliders, by name; sliders: the figure's slider, "a" or "b", that gives the value of a setting; selects_head: whether
    to select the figure's layer and head; head: a layer and head to select; model: the name of the one that continues
    the text, "" for the lessons' own; text: instead of the figure's, "" for that.
    """

    tab: Literal["playground", "inside", "why", "concepts", "activations", "shapes", "loss", "train"]
    shape: GPTConfig | None = None
    skeleton: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    sliders: dict[str, Literal["a", "b"]] = field(default_factory=dict)
    selects_head: bool = False
    head: tuple[int, int] | None = None
    model: str = ""
    text: str = ""


@dataclass(frozen=True)
class Lesson:
    """A lesson. key: of its texts, `lesson.<key>.title` and so on, of its figure, of its link, and of the module of
    `gpt.experiments.minimal` that it prints.

    part: of the course. topic: its number among the twenty topics of a GPT built from nothing, by which the list finds
    it. code: excerpts of what runs here. panels: builders of what is shown below its figure, or instead of one. beat:
    the name of the film's beat that shows it, "" for none. words: synonyms in all languages, by which the list finds
    it.
    """

    key: str
    part: Chapter
    topic: int
    code: tuple[Code, ...]
    place: Place
    panels: tuple[PanelBuilder, ...] = ()
    beat: str = ""
    words: str = ""
