"""The selection shared by all tabs: position, layer and head."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from gpt import GPTConfig

NEWEST = -1  # follows the last token as the text grows
Shading = Literal["probability", "rank", "entropy", "surprisal", "attention"]


def shading_named(name: object) -> Shading | None:
    """Return the shading with this name, or None for anything else."""
    return next((each for each in get_args(Shading) if each == name), None)


@dataclass(frozen=True)
class Selection:
    """The selection: a position, a layer, a head, and the quantity that shades the token strip.

    The position NEWEST stands for the last token, and the head None for the average over all heads.
    """

    position: int = NEWEST
    layer: int = 0
    head: int | None = None
    shading: Shading = "probability"

    def clamped_to(self, config: GPTConfig, *, position: int) -> Selection:
        """Return the selection at another position, with layer and head limited to the model's."""
        layer = min(self.layer, config.n_layer - 1)
        head = None if self.head is None else min(self.head, config.n_head - 1)
        return replace(self, position=position, layer=layer, head=head)
