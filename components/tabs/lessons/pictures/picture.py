"""A lesson's figure: up to four controls, and a function that draws the content from the controls' values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from components.errors import PageError
from components.i18n import t
from components.render import Lines
from gpt import GPTConfig, LoadedModel, Trace
from gpt.tokenizer import hold_back, prompt_ids

EXAMPLE = "Once upon a time, there was a little"
MAX_TOKENS = 40  # limit for typed text
MAX_TEXT_CHARS = 400


@dataclass(frozen=True)
class SliderSpec:
    """A slider. `label` is a catalogue key; `high` may depend on the model's configuration."""

    label: str
    low: float
    high: float | Callable[[GPTConfig], float]
    step: float
    value: float

    def top(self, config: GPTConfig) -> float:
        """Return the maximum, which is always above the minimum, as Gradio requires."""
        return max(self._high(config), self.low + self.step)

    def _high(self, config: GPTConfig) -> float:
        return self.high(config) if callable(self.high) else self.high

    def start(self, config: GPTConfig) -> float:
        """Return the initial value."""
        return max(self.low, min(self.value, self._high(config)))

    def clamped(self, value: object, config: GPTConfig) -> float:
        """Return the value clamped to the slider's range, or the initial value if it is not a number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return self.start(config)
        inside = max(self.low, min(value, self._high(config)))
        return int(inside) if self.step == int(self.step) else float(inside)


def last_layer(config: GPTConfig) -> float:
    """Return the maximum of a layer slider."""
    return config.n_layer - 1


def last_head(config: GPTConfig) -> float:
    """Return the maximum of a head slider."""
    return config.n_head - 1


@dataclass(frozen=True)
class Scene:
    """The controls' values: sliders a and b, the switch's choice, and the text."""

    loaded: LoadedModel
    text: str = EXAMPLE
    a: float = 0
    b: float = 0
    choice: str = ""

    def t(self, key: str, **values: object) -> str:
        """Return the text for the catalogue key `picture.<key>`."""
        return t(f"picture.{key}", **values)

    def ids(self, least: int = 1, *, whole: bool = False) -> list[int]:
        """Encode the text. Raises ValueError if it is too short or too long.

        whole: whether to include white space at the end, which otherwise belongs to the next token.
        """
        text = self.text[: MAX_TEXT_CHARS + 1]
        ids = prompt_ids(self.loaded.tokenizer, text if whole else hold_back(self.loaded.tokenizer, text)[0])
        if len(ids) < least:
            raise PageError("picture.short" if least > 1 else "picture.empty")
        limit = min(MAX_TOKENS, self.loaded.model.config.block_size)
        if len(ids) > limit or len(text) > MAX_TEXT_CHARS:
            raise PageError("picture.long", limit=limit)
        return ids

    @torch.inference_mode()
    def trace(self) -> Trace:
        """Return the trace of the text's forward pass."""
        trace, model = Trace(), self.loaded.model
        model.hidden_states(torch.tensor([self.ids()], device=model.device), trace=trace)
        return trace


@dataclass(frozen=True, eq=False)
class Drawn:
    """The content of a figure: a sentence, a chart (see `chart_data`), a strip of tokens, and the rows of a table.

    Empty parts are hidden. `values` contains the numbers that the lesson's questions ask for, keyed by name.
    """

    summary: str = ""
    chart: dict[str, Any] | None = None
    strip: Lines = field(default_factory=Lines)
    table: list[list[str]] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure's controls and draw function. The function may raise ValueError.

    Attributes:
        text: Initial text; None for no text box.
        choices: The switch's choices.
        takes_time: Returns whether drawing the figure would currently take several seconds.
        writes_with: Returns the model that generates text for the figure; None if the figure has no generated text.
    """

    draw: Callable[[Scene], Drawn]
    text: str | None = None
    a: SliderSpec | None = None
    b: SliderSpec | None = None
    choices: tuple[str, ...] = ()
    takes_time: Callable[[], bool] = lambda: False
    writes_with: Callable[[Scene], LoadedModel] | None = None
