"""State of the Shapes tab."""

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
    """A model with random weights, and the texts that it and a trained model generated from the same prompt.

    Attributes:
        stages: Stages of one forward pass over the prompt.
        seconds: Duration of the initialisation.
        model: Name of the trained model.
        documents, lines: Keys of the random and the trained model's documents, and the lines of their token strips.
        n_tokens: Number of tokens generated with random weights.
        finished: Whether both texts are complete.
        job: The job that built it; None for the initial example.
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
    """State of the Shapes tab.

    Attributes:
        choice: Values of the controls; None for the chosen model's configuration.
        built: The latest model.
        job: The active build.
        trouble: The latest build's error.
        example_shown: Whether the example or a later build has been shown.
    """

    choice: Choice | None = None
    built: Built | None = None
    job: Job | None = None
    trouble: Exception | None = None
    example_shown: bool = False

    @property
    def busy(self) -> bool:
        return self.job is not None


def choice_of(s: Snapshot | Session) -> Choice:
    """Return the values of the controls."""
    config = GPTConfig() if s.loaded is None else s.loaded.model.config
    return s.state(ShapesState).choice or Choice.of(config)


def preset_of(s: Snapshot | Session) -> str:
    """Return the preset that the controls match."""
    choice = s.state(ShapesState).choice
    return PICKED if choice is None else choice.preset
