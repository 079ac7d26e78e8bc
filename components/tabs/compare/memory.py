"""What one visitor's Compare tab holds."""

from __future__ import annotations

from dataclasses import dataclass

from components.tabs.compare.pair import Pair
from gpt.documents.beam_search import BeamSearch


@dataclass
class Memory:
    """Changed in place, and never shared.

    pair: the two columns; None before the first run. search: the beam search; halted: whether it was stopped; chosen:
    the candidate that was clicked in it, None for the best. taken: the Playground's prompt that was put into the box.
    """

    pair: Pair | None = None
    search: BeamSearch | None = None
    halted: bool = False
    chosen: int | None = None
    taken: str | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Memory:
        """Another visitor starts with nothing."""
        return Memory()
