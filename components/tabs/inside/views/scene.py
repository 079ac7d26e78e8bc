"""The recorded text and the selection: the basis for all views in the tab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from components.i18n import is_exact
from components.labels import alone, decimal, placed, quoted, token_text
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.inside.analysis import recorded_position
from components.tabs.inside.recording import Recording
from components.tabs.inside.state import InsideState, Part
from gpt import Generation, GPTConfig, SamplingParams, Stages, distribution
from gpt.tokenizer import Vocabulary

Data = dict[str, Any]
Draw = Callable[[Snapshot, "Scene"], Data]
Inputs = Callable[[Snapshot, "Scene"], Any]


@dataclass(frozen=True)
class Scene:
    """The recorded text and the selection.

    Attributes:
        position: The selected position, clamped to the last recorded one.
        key: The selected key position, or None.
        head: The selected head; the first one if the average of all is selected.
        settings: The sampling settings.
    """

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

    @property
    def kv_head(self) -> int:
        """The key-value head that the selected head uses."""
        return self.head // (self.config.n_head // self.config.kv_heads)

    def tokens(self, rows: slice) -> list[str]:
        """Return tokens from the text as displayed."""
        return [alone(token_text(self.tokenizer, token_id)) for token_id in self.recording.ids[rows]]

    def quoted(self, position: int) -> str:
        """Quote a token from the text for a sentence."""
        return quoted(self.tokenizer, self.recording.ids[position])

    def row_of(self, position: int) -> str:
        """Return a token's index in wte[...]: its id if exact numbers are shown, else the token itself."""
        return str(self.recording.ids[position]) if is_exact() else self.quoted(position)

    def placed(self, position: int) -> str:
        """Quote a token, followed by its position if exact numbers are shown."""
        return placed(self.quoted(position), position)


def scene_of(s: Snapshot) -> Scene | None:
    """Return the scene, or None until at least the beginning of the text is recorded."""
    state = s.state(InsideState)
    if s.text is None or state.recording is None or not state.recording.is_beginning(s.text):
        return None
    position = recorded_position(s, state.recording)
    key = None if state.key is None or state.key > position else state.key
    layer, head = s.selection.layer, s.selection.head or 0
    return Scene(state.recording, position, key, layer, head, s.settings.sampling())


def part_view(name: str, part: Part, draw: Draw, nothing: Data) -> View:
    """Make a view in one part of the tab. It stays unchanged while the part is closed or the text is not recorded yet.

    Args:
        draw: Returns the data, or {} to leave the view unchanged.
        nothing: The fields for a document without a recording.
    """

    def draw_part(s: Snapshot) -> Data:
        scene = s.cached(scene_of)
        if s.state(InsideState).part != part:
            return {}
        if s.cached(_is_unknown):
            return nothing
        return {} if scene is None else draw(s, scene)

    return View(name, draw_part)


def number(value: float) -> str:
    """Format a number with two decimals, or without decimals if it is at least 100."""
    return decimal(value, 2 if abs(value) < 100 else 0)


def _is_unknown(s: Snapshot) -> bool:
    """Return whether there is no recording of the current document."""
    recording = s.state(InsideState).recording
    return s.text is None or recording is None or recording.document is not s.text.document
