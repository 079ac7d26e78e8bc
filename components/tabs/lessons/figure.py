"""A lesson's figure: a function of a snapshot like any picture's, and the settings that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from components.concepts import LIMIT, STEP
from components.errors import PageError
from components.figures.bars import grouped_bars
from components.figures.style import Figure as Chart
from components.i18n import t
from components.kit import Panel, setting
from components.labels import Vocabulary, quoted, visible_token
from components.next_tokens import no_bars
from components.parts import Lines
from components.state.reads import Computed, Pending
from components.widgets.chart import Drawing
from gpt import LayerTrace, LoadedModel, Trace, trace_text
from gpt.analysis.concepts import NO_ACTIVITY
from gpt.tokenizer import hold_back, prompt_ids

EXAMPLE = "Once upon a time, there was a little"
MAX_TOKENS = 40  # limit for typed text
MAX_TEXT_CHARS = 400
T = TypeVar("T")
Verdict = Literal["", "right", "wrong", "unreadable"]

panel = Panel("figure")
computed = panel.computed(while_writing=True)  # no figure needs the text that is being written


class Reply(NamedTuple):
    """The reply to an answer. `text` names the lesson's text that explains the mistake; "" for none."""

    verdict: Verdict = ""
    text: str = ""


def words(key: str, **values: object) -> str:
    return t(f"picture.{key}", **values)


def named(lesson: str, *names: Any) -> Callable[[Any], dict[Any, str]]:
    return lambda s: {name: words(f"{lesson}.choice.{name}") for name in names}


def highest(size: str, beyond: int = 1) -> Callable[[Any], float]:
    """Return the limit for a layer or head. size: field of the configuration of the model that the lesson is about."""
    return lambda s: 0 if s[Open].loaded is None else getattr(s[Open].loaded.model.config, size) - beyond


@panel.state
class Open:
    """The open lesson, and the settings of all figures. A figure shows some of them; its lesson opens with its values.

    Attributes:
        lesson: Its key; "" for none.
        loaded: The model that figures and questions are about.
        replies: Reply to the last answer to each question, keyed by the question's 1-based number.
    """

    lesson: str = ""
    loaded: LoadedModel | None = None
    replies: Mapping[int, Reply] = field(default_factory=dict)
    text: str = setting("", most=MAX_TEXT_CHARS)
    layer: int = setting(0, low=0, high=highest("n_layer"))
    shared_layer: int = setting(0, low=0, high=7)  # both bundled architectures have eight layers
    head: int = setting(0, low=0, high=highest("n_head"))
    depth: int = setting(0, low=0, high=highest("n_layer", beyond=0))
    x: float = setting(0.0, low=-3, high=3, step=0.05)
    n_embd: int = setting(64, low=64, high=1600, step=32)
    n_head: int = setting(1, low=1, high=25)
    rounds: int = setting(0, low=0, high=20)
    row_length: int = setting(1, low=1, high=MAX_TOKENS - 1)
    steps: int = setting(1, low=1, high=60)
    temperature: float = setting(1.0, low=0, high=2, step=0.05)
    top_k: int = setting(0, low=0, high=50)
    share: float = setting(0.0, low=0, high=0.9, step=0.05)
    seed: int = setting(0, low=0, high=20)
    padding: int = setting(0, low=0, high=15)
    updates: int = setting(0, low=0, high=400, step=20)
    rate: float = setting(0.01, low=0.01, high=0.12, step=0.01)  # above, plain gradient descent overflows
    warmup: int = setting(0, low=0, high=100)
    tokens: int = setting(1, low=1, high=1024)
    cached: int = setting(1, low=1, high=256)
    shift: int = setting(0, low=0, high=200, step=8)
    strength: float = setting(0.0, low=NO_ACTIVITY, high=LIMIT, step=STEP)
    n_layer: int = setting(12, named("configuration", 12, 24, 36, 48))
    tying: str = setting("untied", named("parameters", "untied", "tied"))
    layout: str = setting("hugging_face", named("layouts", "hugging_face", "nanogpt", "book"))
    preset: str = setting("gpt2", named("next", "gpt2", "gpt2-xl"))
    weights: str = setting("untrained", named("untrained", "untrained", "trained"))
    verse: str = setting("counts", named("verse", "counts", "rhymes", "above"))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The content of a figure; empty parts are hidden. bars: next tokens (see `token_bars`). strip: tokens."""

    summary: str = ""
    bars: dict[str, Any] = field(default_factory=no_bars)
    chart: Drawing = None
    strip: Lines = field(default_factory=Lines)
    table: list[list[str]] = field(default_factory=list)


class Figure:
    """A figure. draw: returns the content, or only the chart; it may raise ValueError.

    begins: the settings that the figure shows, with their initial values.
    """

    def __init__(self, draw: Callable[[Any], Drawn | Drawing], **begins: Any) -> None:
        self._draw, self.begins = draw, begins

    def draw(self, s: Any) -> Drawn:
        drawn = self._draw(s)
        return drawn if isinstance(drawn, Drawn) else Drawn(chart=drawn)


def checked_ids(loaded: LoadedModel, text: str, least: int = 1, *, whole: bool = False) -> list[int]:
    """Encode a text. Raises ValueError if it is too short or too long.

    whole: whether to include white space at the end, which otherwise belongs to the next token.
    """
    ids = prompt_ids(loaded.tokenizer, text if whole else hold_back(loaded.tokenizer, text)[0])
    if len(ids) < least:
        raise PageError("picture.short" if least > 1 else "picture.empty")
    limit = min(MAX_TOKENS, loaded.model.config.block_size)
    if len(ids) > limit:
        raise PageError("picture.long", limit=limit)
    return ids


def text_ids(s: Any, least: int = 1, *, whole: bool = False) -> list[int]:
    return checked_ids(s[Open].loaded, s[Open].text, least, whole=whole)


@computed
def trace(s: Any) -> Trace:
    return trace_text(s[Open].loaded.model, text_ids(s))


def here(s: Any) -> LayerTrace:
    """Return what happens in the selected layer."""
    return s[trace].layers[s[Open].layer]


def sentence(s: Any, key: str, **values: object) -> str:
    """Return a figure's sentence about the last token, in the selected layer and head."""
    token = quoted(s[Open].loaded.tokenizer, text_ids(s)[-1])
    return words(key, token=token, layer=s[Open].layer, head=s[Open].head, **values)


def bar_per_token(tokenizer: Vocabulary, ids: Sequence[int], values: np.ndarray, title: str) -> Chart:
    return grouped_bars([visible_token(tokenizer, i) for i in ids], {title: values}, y_title=title)


def known(s: Any, key: Computed[T]) -> T | None:
    """Return a result of the figure, or None while there is none or if there is an error instead."""
    try:
        return s[key]
    except (Pending, ValueError):
        return None


@contextmanager
def admitted(loaded: LoadedModel) -> Iterator[None]:
    """Wait for a place in the model's admission queue, and keep it in the `with` block."""
    with loaded.engine.admission.enter() as place:
        for _ in place:
            pass
        yield
