"""A lesson in the course, with its code, its panels and its place in the app."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from components.parts import Part
from components.tabs.lessons.code_view import Code
from gpt.config import GPTConfig

Chapter = Literal["vectors", "layers", "attention", "model", "loss", "generation", "training", "use", "llama"]


@dataclass(frozen=True)
class Place:
    """A place in the app, which opens with the text of the lesson's figure.

    Attributes:
        tab: Id of the tab.
        shape, skeleton: Configuration for the Shapes tab, and whether to show its skeleton.
        settings: Values for Write's sliders, keyed by name.
        sliders: For each setting that follows the figure, the slider ("a" or "b") that provides its value.
        selects_head: Whether to select the figure's layer and head.
        head: A layer and head to select.
        model: Name of the model that continues the text; "" for the lessons' default model.
        text: A text that replaces the figure's; "" to keep it.
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
    """A lesson.

    Attributes:
        key: Identifies its texts (`lesson.<key>.title` and so on), its figure, its link, and the module in
            `gpt.experiments.minimal` that it prints.
        part: The part of the course that it belongs to.
        topic: Number of its topic among the twenty topics of building a GPT from scratch; searchable in the list.
        code: Excerpts of the code that runs in this app.
        panels: The panels below its figure, or in place of a figure.
        beat: Name of the film beat that shows it; "" for none.
        words: Synonyms in all languages; searchable in the list.
    """

    key: str
    part: Chapter
    topic: int
    code: tuple[Code, ...]
    place: Place
    panels: tuple[Part, ...] = ()
    beat: str = ""
    words: str = ""
