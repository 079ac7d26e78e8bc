"""The figure of a lesson: up to four controls, and a function from their values to the content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from components.errors import PageError
from components.i18n import Language, t
from components.render import Lines
from gpt import GPTConfig, LoadedModel, Trace
from gpt.tokenizer import prompt_ids

EXAMPLE = "Once upon a time, there was a little"
MAX_TOKENS = 40  # of a typed text
MAX_TEXT_CHARS = 400


@dataclass(frozen=True)
class SliderSpec:
    """A slider. label: a catalogue key; high may depend on the configuration of the model."""

    label: str
    low: float
    high: float | Callable[[GPTConfig], float]
    step: float
    value: float

    def top(self, config: GPTConfig) -> float:
        """Its maximum, always above the minimum, as gradio requires."""
        return max(self._high(config), self.low + self.step)

    def _high(self, config: GPTConfig) -> float:
        return self.high(config) if callable(self.high) else self.high

    def start(self, config: GPTConfig) -> float:
        """Its initial value."""
        return max(self.low, min(self.value, self._high(config)))

    def clamped(self, value: object, config: GPTConfig) -> float:
        """The value if it is valid for this slider, else the initial one."""
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return self.start(config)
        inside = max(self.low, min(value, self._high(config)))
        return int(inside) if self.step == int(self.step) else float(inside)


def last_layer(config: GPTConfig) -> float:
    """The maximum of a layer slider."""
    return config.n_layer - 1


def last_head(config: GPTConfig) -> float:
    """The maximum of a head slider."""
    return config.n_head - 1


@dataclass(frozen=True)
class Scene:
    """The values of the controls. a, b: of the sliders; choice: of the switch."""

    loaded: LoadedModel
    language: Language
    text: str = EXAMPLE
    a: float = 0
    b: float = 0
    choice: str = ""

    def t(self, key: str, **values: object) -> str:
        """The text of the catalogue key `picture.<key>`."""
        return t(f"picture.{key}", self.language, **values)

    def ids(self, least: int = 1) -> list[int]:
        """The ids of the text. Raises ValueError if it is too short or too long."""
        text = self.text[: MAX_TEXT_CHARS + 1]
        ids = prompt_ids(self.loaded.tokenizer, text)
        if len(ids) < least:
            raise PageError("picture.short" if least > 1 else "picture.empty")
        limit = min(MAX_TOKENS, self.loaded.model.config.block_size)
        if len(ids) > limit or len(text) > MAX_TEXT_CHARS:
            raise PageError("picture.long", limit=limit)
        return ids

    @torch.inference_mode()
    def trace(self) -> Trace:
        """The trace of the text's forward pass."""
        trace, model = Trace(), self.loaded.model
        model.hidden_states(torch.tensor([self.ids()], device=model.device), trace=trace)
        return trace


@dataclass(frozen=True, eq=False)
class Drawn:
    """The content: a sentence, a chart (of `chart_data`), a strip of tokens, the rows of a table; empty parts are
    hidden. values: what the lesson's question asks for, by name."""

    summary: str = ""
    chart: dict[str, Any] | None = None
    strip: Lines = field(default_factory=Lines)
    table: list[list[str]] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """The controls of a figure and its draw function. text: the initial text, None for no box; choices: of the switch;
    takes_time: whether drawing takes seconds now; writes_with: the model that generates a text for it, None for no
    text.

    draw may raise ValueError.
    """

    draw: Callable[[Scene], Drawn]
    text: str | None = None
    a: SliderSpec | None = None
    b: SliderSpec | None = None
    choices: tuple[str, ...] = ()
    takes_time: Callable[[], bool] = lambda: False
    writes_with: Callable[[Scene], LoadedModel] | None = None
