"""What the Shapes tab consists of: its gradio components, and what it remembers of one visitor."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from components.render import Lines
from components.state.session import Session, Snapshot
from components.tabs.shapes.settings import PICKED, Choice, Shape
from gpt import GPTConfig
from gpt.experiments.random_models import ModuleShape


@dataclass(frozen=True, eq=False)
class Built:
    """A model of random weights that was built, and what it and a trained one made of a prompt.

    stages: of one forward pass over the prompt. seconds: that building took. model: the name of the trained one.
    documents, lines: of the random and of the trained text, for their strips. n_tokens: written with random weights.
    finished: whether both texts are as long as they were to be. run: that it belongs to; None for the example, of the
    page's own text and model, shown before anything was built.
    """

    shape: Shape
    stages: tuple[ModuleShape, ...]
    seconds: float
    model: str
    seed: int
    documents: tuple[int, int]
    lines: tuple[Lines, Lines]
    n_tokens: int = 0
    finished: bool = False
    run: object | None = None


@dataclass(frozen=True, eq=False)
class ShapesState:
    """choice: what the controls say; None for the shape of the picked model. built: what was built last; run:
    identifies what is building now. trouble: why it could not. example_shown: whether the example was shown, or
    something in its place."""

    choice: Choice | None = None
    built: Built | None = None
    run: object | None = None
    trouble: Exception | None = None
    example_shown: bool = False

    @property
    def busy(self) -> bool:
        return self.run is not None


def choice_of(s: Snapshot | Session) -> Choice:
    """What the controls say."""
    config = GPTConfig() if s.loaded is None else s.loaded.model.config
    return s.state(ShapesState).choice or Choice.of(config)


def preset_of(s: Snapshot | Session) -> str:
    """The preset that the controls stand at."""
    choice = s.state(ShapesState).choice
    return PICKED if choice is None else choice.preset


@dataclass(frozen=True)
class ShapesComponents:
    """The gradio components of the tab. sliders, switches: by the name of what they set."""

    preset: gr.Dropdown
    sliders: dict[str, gr.Slider]
    switches: dict[str, gr.Checkbox]
    build: gr.Button
    stop: gr.Button
