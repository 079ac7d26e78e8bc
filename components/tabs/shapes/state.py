"""The state of the Shapes tab."""

from __future__ import annotations

from dataclasses import dataclass

from components.render import Lines
from components.state.jobs import Job
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.shapes.settings import PICKED, Choice, Shape
from gpt import GPTConfig
from gpt.experiments.random_models import ModuleShape


@dataclass(frozen=True, eq=False)
class Built:
    """A model with random weights, and what it and a trained model generated for a prompt.

    stages: of one forward pass over the prompt. seconds: for initialisation. model: the name of the trained one.
    documents, lines: of the random and of the trained text, for their strips. n_tokens: generated with random weights.
    finished: whether both texts are complete. job: that it belongs to; None for the initial example of the
    page's own text and model.
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
    job: Job | None = None


@dataclass(frozen=True, eq=False)
class ShapesState:
    """choice: the values of the controls; None for the configuration of the chosen model. built: the newest model; job:
    the active build. trouble: its error. example_shown: whether the example, or anything else, was shown."""

    choice: Choice | None = None
    built: Built | None = None
    job: Job | None = None
    trouble: Exception | None = None
    example_shown: bool = False

    @property
    def busy(self) -> bool:
        return self.job is not None


def choice_of(s: Snapshot | Session) -> Choice:
    """The values of the controls."""
    config = GPTConfig() if s.loaded is None else s.loaded.model.config
    return s.state(ShapesState).choice or Choice.of(config)


def preset_of(s: Snapshot | Session) -> str:
    """The preset of the controls."""
    choice = s.state(ShapesState).choice
    return PICKED if choice is None else choice.preset
