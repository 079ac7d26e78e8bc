"""A lesson's figure: up to four controls, their values, and a function that draws the content from a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from components.errors import PageError
from components.i18n import t
from components.kit import Panel
from components.labels import quoted
from components.next_tokens import no_bars
from components.parts import Lines
from components.state.reads import Computed, Pending
from components.widgets.chart import Drawing
from gpt import GPTConfig, LayerTrace, LoadedModel, Trace, trace_text
from gpt.inference.admission import enter
from gpt.tokenizer import hold_back, prompt_ids

EXAMPLE = "Once upon a time, there was a little"
MAX_TOKENS = 40  # limit for typed text
MAX_TEXT_CHARS = 400
T = TypeVar("T")
Verdict = Literal["", "right", "wrong", "unreadable"]

panel = Panel("lesson")
computed = panel.computed(while_writing=True)  # no figure needs the text that is being written


class Reply(NamedTuple):
    """The reply to an answer. `text` names the lesson's text that explains the mistake; "" for none."""

    verdict: Verdict = ""
    text: str = ""


@panel.state
class Open:
    """The open lesson.

    Attributes:
        lesson: Its key; "" for none.
        loaded: The model that figures and questions are about.
        is_new: Whether no control has been used since the lesson was opened.
        replies: Reply to the last answer to each question, keyed by the question's 1-based number.
    """

    lesson: str = ""
    loaded: LoadedModel | None = None
    text: str = ""
    a: float = 0
    b: float = 0
    choice: str = ""
    is_new: bool = True
    replies: Mapping[int, Reply] = field(default_factory=dict)


@dataclass(frozen=True)
class SliderSpec:
    """A slider. `label` is a catalogue key; `high` may depend on the model's configuration."""

    label: str
    low: float
    high: float | Callable[[GPTConfig], float]
    step: float
    value: float

    def top(self, config: GPTConfig) -> float:
        return self.high(config) if callable(self.high) else self.high

    def clamped(self, value: object, config: GPTConfig) -> float:
        """Return the value, or the initial one if it is not a number, clamped to the slider's range."""
        number = value if isinstance(value, int | float) and value == value else self.value
        inside = max(self.low, min(number, self.top(config)))
        return int(inside) if self.step == int(self.step) else float(inside)


def last_layer(config: GPTConfig) -> float:
    return config.n_layer - 1


def last_head(config: GPTConfig) -> float:
    return config.n_head - 1


@dataclass(frozen=True, eq=False)
class Drawn:
    """The content of a figure; empty parts are hidden. bars: next tokens (see `token_bars`). strip: tokens."""

    summary: str = ""
    bars: dict[str, Any] = field(default_factory=no_bars)
    chart: Drawing = None
    strip: Lines = field(default_factory=Lines)
    table: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Picture:
    """A figure's controls and draw function, a function of a snapshot like any picture's. It may raise ValueError.

    Attributes:
        draw: Returns the content, or only the chart.
        text: Initial text; None for no text box.
        takes_time: Returns whether drawing the figure would currently take several seconds.
    """

    draw: Callable[[Any], Drawn | Drawing]
    text: str | None = None
    a: SliderSpec | None = None
    b: SliderSpec | None = None
    choices: tuple[str, ...] = ()
    takes_time: Callable[[], bool] = lambda: False


def words(key: str, **values: object) -> str:
    return t(f"picture.{key}", **values)


def checked_ids(loaded: LoadedModel, text: str, least: int = 1, *, whole: bool = False) -> list[int]:
    """Encode a text. Raises ValueError if it is too short or too long.

    whole: whether to include white space at the end, which otherwise belongs to the next token.
    """
    text = text[: MAX_TEXT_CHARS + 1]
    ids = prompt_ids(loaded.tokenizer, text if whole else hold_back(loaded.tokenizer, text)[0])
    if len(ids) < least:
        raise PageError("picture.short" if least > 1 else "picture.empty")
    limit = min(MAX_TOKENS, loaded.model.config.block_size)
    if len(ids) > limit or len(text) > MAX_TEXT_CHARS:
        raise PageError("picture.long", limit=limit)
    return ids


def text_ids(s: Any, least: int = 1, *, whole: bool = False) -> list[int]:
    return checked_ids(s[Open].loaded, s[Open].text, least, whole=whole)


@computed
def trace(s: Any) -> Trace:
    return trace_text(s[Open].loaded.model, text_ids(s))


def here(s: Any) -> LayerTrace:
    """Return what happens in the layer that the first slider selects."""
    return s[trace].layers[int(s[Open].a)]


def last_token(s: Any) -> str:
    return quoted(s[Open].loaded.tokenizer, text_ids(s)[-1])


def known(s: Any, key: Computed[T]) -> T | None:
    """Return a result of the figure, or None while there is none or if there is an error instead."""
    try:
        return s[key]
    except (Pending, ValueError):
        return None


@contextmanager
def admitted(loaded: LoadedModel) -> Iterator[None]:
    """Wait for a place in the model's admission queue, and keep it in the `with` block."""
    with enter(loaded.engine.admission) as place:
        for _ in place:
            pass
        yield
