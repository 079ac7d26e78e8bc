"""State of the Train tab and of the recorded run's tab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from components.state.snapshot import Message
from components.tabs.train import choices
from components.tabs.train.choices import UploadedText
from gpt import LoadedModel, SamplingParams
from gpt.training.live_run import LiveRun, RunProgress
from gpt.training.recipe import LIVE_RECIPES
from gpt.training.recorded_run import RecordedRun
from gpt.training.run_queue import RunQueue

_RECIPE = LIVE_RECIPES[choices.KINDS[0]]


Run = LiveRun | RecordedRun


class MachinePass(Protocol):
    """A forward pass over the example, from which the machine picture is drawn."""

    def draw(self, position: int, layer: int, head: int, settings: SamplingParams) -> dict[str, Any]:
        """Return the data for the flow widget."""


Machine = Callable[[LoadedModel, Sequence[int]], MachinePass]


@dataclass(frozen=True, eq=False)
class ShownPass:
    """The forward pass of a run's model at one step."""

    run: Run
    step: int
    machine: MachinePass


@dataclass(frozen=True, eq=False)
class FilmState:
    """The displayed part of a training run.

    Attributes:
        step: The displayed step; None for the newest.
        layer, head, position: Selection in the example; None until chosen.
        shown_pass: Forward pass for the displayed step, or for a step displayed earlier.
    """

    step: int | None = None
    layer: int | None = None
    head: int | None = None
    position: int | None = None
    shown_pass: ShownPass | None = None

    def is_passed(self, run: Run, step: int) -> bool:
        """Return whether `shown_pass` belongs to the run at this step."""
        return self.shown_pass is not None and (self.shown_pass.run, self.shown_pass.step) == (run, step)


@dataclass(frozen=True, eq=False)
class LearnedState(FilmState):
    """State of the recorded run's tab.

    `recorded` is the run from the assets; None if it has not been loaded yet or does not exist.
    """

    recorded: RecordedRun | None = None
    looked_for_recorded: bool = False


@dataclass(frozen=True, eq=False)
class TrainState(FilmState):
    """The choices, the newest run, and earlier runs whose models are in the visitor's list.

    Attributes:
        rate: The maximum learning rate as typed; None if it is not a number.
        seconds: The time limit, in seconds.
        notice: An error or a message.
    """

    task: str = choices.KINDS[0]
    text: str = ""
    uploaded: UploadedText | None = None
    n_layer: int = _RECIPE.n_layer
    n_head: int = _RECIPE.n_head
    n_embd: int = _RECIPE.n_embd
    dropout: float = _RECIPE.dropout
    steps: int = _RECIPE.steps
    rate: float | None = _RECIPE.learning_rate
    seconds: int = choices.SECONDS[1]
    factor: float = 1.0
    run: LiveRun | None = None
    queue: RunQueue | None = None
    opened: tuple[LiveRun, ...] = ()
    notice: Message | Exception | None = None

    @property
    def n_bytes(self) -> int:
        """Memory used by the newest run's evaluations, in bytes. Evaluations from earlier runs are freed."""
        return 0 if self.run is None else sum(each.n_bytes for each in self.run.progress.evaluations)

    @property
    def busy(self) -> bool:
        """Whether a run is active and must not be interrupted."""
        return self.run is not None and not self.run.progress.ended

    def progress(self) -> RunProgress | None:
        """Return the newest run's current progress, with its position in the queue."""
        if self.run is None or self.queue is None:
            return None
        return replace(self.run.progress, queue_position=self.queue.position(self.run))
