"""What one visitor's Change tab remembers; never shared with another visitor."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from components.tabs.change.effect import Effect, Text
from gpt import Edits, Generation, SamplingParams
from gpt.analysis.patching import PatchSweep


@dataclass(frozen=True)
class Written:
    """What both models wrote from one prompt: the ids of either, prompt included, with which settings and edits."""

    original: tuple[int, ...]
    edited: tuple[int, ...]
    params: SamplingParams
    length: int
    edits: Edits


@dataclass(frozen=True)
class Pair:
    """Two prompts of one length, and the two tokens whose logits are compared."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    other: int


@dataclass(frozen=True)
class Running:
    """Two documents that are being written."""

    original: Generation
    edited: Generation
    params: SamplingParams
    length: int
    edits: Edits


@dataclass
class Memory:
    """Changed in place.

    text: what is looked at; seen: of which document of the Playground; own: it is another than the Playground's.
    position: looked from, -1 for the last. costs: of each head on this text. sweeps: by the name of what is patched.
    """

    edits: Edits = field(default_factory=Edits)
    text: Text | None = None
    seen: tuple[int, ...] | None = None
    own: bool = False
    position: int = -1
    effect: Effect | None = None
    costs: np.ndarray | None = None
    written: Written | None = None
    pair: Pair | None = None
    sweeps: dict[str, PatchSweep] = field(default_factory=dict)
    cell: tuple[int, int] | None = None
    running: Running | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Memory:
        """Another visitor starts with nothing."""
        return Memory()

    def look_at(self, text: Text | None, *, own: bool, position: int = -1) -> None:
        """Another text: what was measured on the old one is forgotten."""
        self.text, self.own, self.position = text, own, position
        self.effect = self.costs = None

    def at(self) -> int:
        """The position that is looked from."""
        last = self.text.n_read - 1
        return last if self.position < 0 else min(self.position, last)
