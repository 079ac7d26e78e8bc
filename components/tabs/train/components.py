"""The gradio components of the Train tab, and its state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import gradio as gr

from components.state.snapshot import Message
from components.tabs.train import choices
from components.tabs.train.choices import UploadedText
from gpt.training.live_run import Evaluation, LiveRun, RunSnapshot
from gpt.training.recipe import LIVE_RECIPES
from gpt.training.run_queue import RunQueue

_RECIPE = LIVE_RECIPES[choices.KINDS[0]]


@dataclass(frozen=True, eq=False)
class TrainState:
    """The choices, the newest run, and earlier runs whose models are in the visitor's list.

    uploaded: an uploaded text. rate: the highest learning rate. seconds: the time limit. step: the displayed one,
    None for the newest; layer, head: None until chosen. notice: an error or a message.
    """

    task: str = choices.KINDS[0]
    text: str = ""
    uploaded: UploadedText | None = None
    n_layer: int = _RECIPE.n_layer
    n_head: int = _RECIPE.n_head
    n_embd: int = _RECIPE.n_embd
    dropout: float = _RECIPE.dropout
    steps: float = _RECIPE.steps
    rate: float = _RECIPE.learning_rate
    seconds: float = choices.SECONDS[1]
    factor: float = 1.0
    run: LiveRun | None = None
    queue: RunQueue | None = None
    opened: tuple[LiveRun, ...] = ()
    step: int | None = None
    layer: int | None = None
    head: int | None = None
    notice: Message | Exception | None = None

    @property
    def busy(self) -> bool:
        """Whether a run is active that must not be interrupted."""
        return self.run is not None and not self.run.snapshot.ended

    def progress(self) -> RunSnapshot | None:
        """The current progress of the newest run, with its place in the queue."""
        if self.run is None or self.queue is None:
            return None
        return replace(self.run.snapshot, queue_position=self.queue.position(self.run))

    def shown(self, progress: RunSnapshot) -> Evaluation | None:
        """The evaluation at the displayed step, or the last before it; None if there is none."""
        if not progress.evaluations:
            return None
        if self.step is None:
            return progress.evaluations[-1]
        before = (each for each in reversed(progress.evaluations) if each.step <= self.step)
        return next(before, progress.evaluations[0])


@dataclass(frozen=True)
class TrainComponents:
    """The gradio components of the tab."""

    timer: gr.Timer
    task: gr.Radio
    own: gr.Column
    text: gr.Textbox
    file: gr.UploadButton
    code: gr.Button
    n_layer: gr.Radio
    n_head: gr.Radio
    n_embd: gr.Radio
    dropout: gr.Radio
    steps: gr.Slider
    rate: gr.Number
    seconds: gr.Slider
    start: gr.Button
    pause: gr.Button
    cancel: gr.Button
    factor: gr.Radio
    open: gr.Button
    download: gr.Button
    results: gr.Column
    curve: gr.HTML
    scrubber: gr.Slider
    heads: gr.HTML
