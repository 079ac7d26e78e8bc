"""The state of Concepts."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from components.concepts import Place
from components.state.text import Text


@dataclass(frozen=True, eq=False)
class Activities:
    """Activity of the features on the tokens of a text from position `first` on: by layer, (T, n)."""

    text: Text
    first: int
    by_layer: dict[int, Tensor]

    @property
    def n_bytes(self) -> int:
        return sum(each.nbytes for each in self.by_layer.values())


@dataclass(frozen=True, eq=False)
class ConceptsState:
    """layer: whose features are listed, None for the last. chosen: the feature that is looked at. query: a word that
    features are searched by. found: what that found. shown: the activities that all is drawn from."""

    layer: int | None = None
    chosen: Place | None = None
    query: str = ""
    found: tuple[Place, ...] = ()
    shown: Activities | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.shown is None else self.shown.n_bytes
