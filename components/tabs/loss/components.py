"""The gradio components of the Loss tab, and its state."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from components.state.snapshot import Message
from gpt import LoadedModel
from gpt.experiments.text_loss import TextScore

EXAMPLES = {
    "loss.example.turn": (
        "Once upon a time, there was a little girl named Lily. She loved to play with her red ball in the park. "
        "One day, her ball rolled into the central bank and raised the interest rates."
    ),
    "loss.example.shuffled": (
        "ball red her with play to loved She. Lily named girl little a was there, time a upon Once. park the in"
    ),
    "loss.example.repeat": "The cat sat. The dog ran. The cat sat. The dog ran. The cat sat. The dog ran.",
}


@dataclass(frozen=True, eq=False)
class ScoredText:
    """A text with its losses. run: the run in which it was scored, 0 for the example; parts: see `handlers.stride_of`;
    repaired: lone surrogates were replaced by U+FFFD."""

    loaded: LoadedModel
    result: TextScore
    text: str
    run: int = 0
    parts: object = None
    repaired: bool = False


@dataclass(frozen=True, eq=False)
class LossState:
    """filled: the text that a button put into the box, and times_filled: the number of such clicks. scored: the
    displayed text, and selected: a position of it. run: numbers the runs, so that a new one ends the previous one.
    notice: an error."""

    filled: str = ""
    times_filled: int = 0
    scored: ScoredText | None = None
    selected: int = 0
    run: int = 0
    running: bool = False
    notice: ValueError | None = None
    progress: Message | None = None

    @property
    def busy(self) -> bool:
        return self.running


@dataclass(frozen=True)
class LossComponents:
    """The gradio components of the tab."""

    text: gr.Textbox
    stride: gr.Dropdown
    examples: tuple[gr.Button, ...]
    measure: gr.Button
    stop: gr.Button
    strip: gr.HTML
