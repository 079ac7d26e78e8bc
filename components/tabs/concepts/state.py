"""State of the Concepts tab."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from components.concepts import Place
from components.state.text import Text


@dataclass(frozen=True, eq=False)
class Activities:
    """Feature activity on a text's tokens, starting at position `first`: (T, n_features) for each layer."""

    text: Text
    first: int
    by_layer: dict[int, Tensor]

    @property
    def n_bytes(self) -> int:
        return sum(each.nbytes for each in self.by_layer.values())


@dataclass(frozen=True, eq=False)
class ConceptsState:
    """State of the Concepts tab.

    Attributes:
        layer: Layer whose features are listed; None for the last one.
        chosen: The open feature.
        query: The word searched for.
        found: Search results.
        shown: The activity shown in all views.
    """

    layer: int | None = None
    chosen: Place | None = None
    query: str = ""
    found: tuple[Place, ...] = ()
    shown: Activities | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.shown is None else self.shown.n_bytes
