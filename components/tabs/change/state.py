"""State of the "Change it" tab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from components.render import Lines
from components.state.example import language_of_model
from components.state.jobs import Job
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.tabs.change.effect import Effect, HeadCosts, ReadText
from gpt import Edits, GPTConfig, LoadedModel, SamplingParams
from gpt.analysis.patching import PatchSweep
from gpt.documents.comparison import divergence_index
from gpt.documents.edit_text import format_edits

PATCHED = ("resid_pre", "attn_out", "mlp_out")  # activations that can be patched on the page
PROMPT_PAIRS = {  # keyed by the model's language
    "en": {
        "names": ("Lily was sad. Tom gave a hug to", "Tom was sad. Lily gave a hug to"),
        "animals": ("Tom saw a big dog. He wanted to play with the", "Tom saw a big cat. He wanted to play with the"),
    },
    "zh": {
        "seasons": ("春风吹柳绿，", "秋风吹柳绿，"),
        "sides": ("日出东山上，月落", "日出南山上，月落"),
    },
}


@dataclass(frozen=True)
class WrittenText:
    """A generated text, including its prompt. `lines` contains its token strip's lines."""

    key: str = ""
    ids: tuple[int, ...] = ()
    lines: Lines = field(default_factory=Lines)


@dataclass(frozen=True, eq=False)
class WrittenPair:
    """The texts that the unedited and the edited model generated from the same prompt with the same seed.

    Attributes:
        version: Version of Write's text when the pair was generated.
        read: The unedited model's text with its states; None during generation.
    """

    version: tuple[int, int]
    params: SamplingParams
    length: int
    edits: Edits
    original: WrittenText = field(default_factory=WrittenText)
    edited: WrittenText = field(default_factory=WrittenText)
    read: ReadText | None = None

    @property
    def divergence_index(self) -> int | None:
        return divergence_index(self.original.ids, self.edited.ids)


@dataclass(frozen=True, eq=False)
class DroppedEdits:
    """Edits that the text's model does not support. `config` describes the model they were made for."""

    edits: Edits
    config: GPTConfig


@dataclass(frozen=True)
class PromptPair:
    """Two prompts with the same number of tokens, and the two tokens whose logits are compared."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    other: int


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Activation patching results for a pair of prompts.

    Attributes:
        logits: Logits after the clean and the corrupted prompt, (vocab_size,) each.
        listed: Ids of likely answers.
        by_name: Sweeps, keyed by the name of the patched activation.
    """

    loaded: LoadedModel
    pair: PromptPair
    logits: tuple[Tensor, Tensor]
    listed: tuple[int, ...]
    by_name: Mapping[str, PatchSweep] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeState:
    """State of the "Change it" tab.

    Attributes:
        effect: Effect of the session's edits on a text (see `text_source`).
        position: Selected position in a text that differs from Write's.
        tried_on: A prompt from `Session.edits_on`, and the version of Write's text for which it is valid.
        experiment: The chosen experiment; cleared when the edits change.
        n_switched: Number of switch clicks handled so far.
        clean, corrupted, answer, other, patched: Values of the controls for activation patching.
        cell: Selected cell in the recovery map, (layer, position).
    """

    effect: Effect | None = None
    position: int = NEWEST
    tried_on: tuple[tuple[int, ...], tuple[int, int]] | None = None
    written: WrittenPair | None = None
    costs: HeadCosts | None = None
    experiment: str = ""
    n_switched: int = 0
    notice: Exception | None = None
    dropped: DroppedEdits | None = None
    costing: Job | None = None
    writing: Job | None = None
    sweeping: Job | None = None
    clean: str | None = None
    corrupted: str | None = None
    answer: Any = None
    other: Any = None
    patched: str = PATCHED[0]
    sweeps: Sweeps | None = None
    cell: tuple[int, int] | None = None
    trouble: Exception | None = None

    def prompts(self, model: str) -> tuple[str, str]:
        """Return the prompts for activation patching, by default an example in the model's language."""
        clean, corrupted = next(iter(PROMPT_PAIRS[language_of_model(model)].values()))
        return clean if self.clean is None else self.clean, corrupted if self.corrupted is None else self.corrupted

    @property
    def busy(self) -> bool:
        return any((self.costing, self.writing, self.sweeping))

    @property
    def n_bytes(self) -> int:
        return 0 if self.effect is None else self.effect.n_bytes

    @property
    def text(self) -> ReadText | None:
        """The measured text."""
        return None if self.effect is None else self.effect.text


def selected_position(s: Snapshot, text: ReadText) -> int:
    """Return the selected position in the measured text, clamped to the last position that the model has read."""
    last, own = text.n_read - 1, s.state(ChangeState).position
    if text.own or s.text is None:
        return last if own == NEWEST else min(own, last)
    return min(s.text.at(s.selection), last)


def written_pair(s: Snapshot) -> WrittenPair | None:
    """Return both texts while they are being generated, or if they belong to Write's current text."""
    state = s.state(ChangeState)
    if s.text is None or state.written is None:
        return None
    return state.written if state.writing is not None or state.written.version == s.text.version else None


def is_stale(s: Snapshot) -> bool:
    """Return whether the edited model's text was generated with edits other than the current ones."""
    pair = written_pair(s)
    return pair is not None and pair.read is not None and format_edits(pair.edits) != format_edits(s.edits)


def prompt_to_try(s: Snapshot) -> tuple[int, ...]:
    """Return the ids of the prompt to try the edits on, or () to use Write's text."""
    tried_on = s.state(ChangeState).tried_on
    stale = tried_on is not None and s.edits_on is tried_on[0] and (s.text is None or s.text.version != tried_on[1])
    return () if stale else s.edits_on
