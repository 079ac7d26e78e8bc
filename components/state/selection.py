"""What a person has selected: one position, layer and head for every tab."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from gpt import Generation, GPTConfig

NEWEST = -1  # a position that follows the text as it grows
Shading = Literal["probability", "rank", "entropy", "surprisal", "attention"]


@dataclass(frozen=True)
class Selection:
    """A position (NEWEST follows the text), a layer, a head (None: the average of all), and what the tint of the token
    strip stands for."""

    position: int = NEWEST
    layer: int = 0
    head: int | None = None
    shading: Shading = "probability"

    def fitting(self, config: GPTConfig, *, position: int) -> Selection:
        """The selection at another position of a model that may have fewer layers or heads."""
        layer = min(self.layer, config.n_layer - 1)
        head = None if self.head is None else min(self.head, config.n_head - 1)
        return replace(self, position=position, layer=layer, head=head)

    def at(self, document: Generation) -> int:
        """The selected position, at most the last one that the model has read."""
        last = document.n_read - 1
        return last if self.position == NEWEST else min(self.position, last)
