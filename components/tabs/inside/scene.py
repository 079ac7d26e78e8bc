"""What the pictures of the Inside tab are drawn from: the recorded text, a trace of one position, and the selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from components.i18n import t
from components.kit import Tab, no_text, setting
from components.labels import alone, decimal, placed, quoted, token_text
from components.limits import MAX_VISITOR_BYTES
from components.state.reads import Pending
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.inside.recording import Recording
from gpt import Generation, GPTConfig, SamplingParams, Stages, Trace, distribution
from gpt.background import threads_for
from gpt.documents.document import common_prefix_length
from gpt.inference.packed_weights import multiplications_per_token
from gpt.tokenizer import Vocabulary

STEPS = ("path", "numbers", "heads")  # in which the machine is read
FLOW_ROWS = (12, 64)  # tokens in the flow by default, and on request

tab = Tab("inside")


@tab.state
class Chosen:
    """How far the machine is opened and what is selected in it, besides the selection of the whole page."""

    step: str = setting(STEPS[0], lambda s: {step: t(f"inside.step.{step}") for step in STEPS})
    flow_rows: int = setting(FLOW_ROWS[0], FLOW_ROWS)
    max_bytes: int = MAX_VISITOR_BYTES  # memory limit for the recording, the same for every visitor
    key: int | None = None  # selected key position; None for the one with the largest weight
    film_plays: bool = False  # whether the film was opened by a click; a link opens it paused
    film_clicks: int = 0  # how often a click opened it
    film_played: str = ""  # the last beat that the page has played


def is_of_document(value: Any, s: Snapshot) -> bool:
    """Return whether a recording, or what was computed from one, belongs to the text's document."""
    return value is not None and s.text is not None and value.document is s.text.document


@tab.computed(while_writing=True, is_usable=is_of_document)
def recorded(s: Any) -> Recording:
    text = s.text_read()
    recording = recorded.latest(s.snapshot) or Recording.empty(text.document, s[Chosen].max_bytes)
    ids = text.ids[: text.n_read]
    work = (len(ids) - common_prefix_length(recording.ids, ids)) * multiplications_per_token(text.loaded.model)
    with threads_for(work + text.config.n_embd * len(ids) ** 2):
        return recording.extended(ids)


@dataclass(frozen=True)
class Scene:
    """The recorded text and the selection: a recorded position, and the first head if the average is selected."""

    recording: Recording
    position: int
    key: int | None
    layer: int
    head: int
    settings: SamplingParams

    def stages(self, logits: Tensor) -> Stages:
        """Return the distribution after the selected position, as in `Snapshot.stages`. logits: (vocab_size,)."""
        logits = self.document.possible(self.position, logits)
        return distribution(logits, self.settings, previous_ids=self.recording.ids[: self.position + 1])

    @property
    def document(self) -> Generation:
        return self.recording.document

    @property
    def tokenizer(self) -> Vocabulary:
        return self.document.loaded.tokenizer

    @property
    def config(self) -> GPTConfig:
        return self.recording.config

    def of_layer(self) -> dict[str, Any]:
        config = self.config
        return {
            "layer": self.layer,
            "head": self.head,
            "n_layer": config.n_layer,
            "n_head": config.n_head,
            "kv_heads": config.kv_heads,
            "window": config.window_of(self.layer),
            "ahead": self.recording.looks_ahead(self.layer),
            "total": self.recording.length,
        }

    def tokens(self, rows: slice) -> list[str]:
        return [alone(token_text(self.tokenizer, token_id)) for token_id in self.recording.ids[rows]]

    def quoted(self, position: int) -> str:
        return quoted(self.tokenizer, self.recording.ids[position])

    def placed(self, position: int) -> str:
        """Quote a token, followed by its position if exact numbers are shown."""
        return placed(self.quoted(position), position)


def recorded_position(s: Snapshot) -> int | None:
    """Return the selected position, clamped to the last recorded one; None if the recording is not of this text."""
    recording = recorded.latest(s)
    if s.text is None or recording is None or not recording.length or not recording.is_prefix_of(s.text):
        return None
    return min(s.text.at(s.selection), recording.length - 1)


def recording_at(s: Any) -> tuple[Recording, int]:
    """Return the recording and the selected position. Raises Pending until the text's beginning is recorded."""
    recording, position = s[recorded], s.watch(recorded_position)
    if position is None:
        raise Pending
    return recording, position


def scene_of(s: Any) -> Scene:
    (recording, position), key = recording_at(s), s[Chosen].key
    layer, head = s.selection.layer, s.selection.head or 0
    key = None if key is None or key > position else key
    return Scene(recording, position, key, layer, head, s.settings.sampling())


@tab.computed(while_writing=True)
def traced(s: Any) -> Trace:
    """Return all activations at the selected position, (1, 1, ...)."""
    recording, position = recording_at(s)
    return recording.trace_at(position)


def has_text(s: Any) -> bool:
    return no_text(s) is None


def model_of(s: Any) -> Any:
    return s.watch(lambda now: now.text and now.text.loaded)


def number(value: float) -> str:
    """Format a number with two decimals, or without decimals if it is at least 100."""
    return decimal(value, 2 if abs(value) < 100 else 0)


def select(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked position, layer or head. sent: from the browser, unchecked."""
    if not session.select(**{name: sent.get(name) for name in ("position", "layer", "head")}):
        return
    key = sent.get("key")
    if type(key) is int and key >= 0:
        session.change(Chosen, key=key)
    elif sent.get("position") is not None:
        session.change(Chosen, key=None)
