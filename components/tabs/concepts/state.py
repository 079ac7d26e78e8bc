"""State of the Concepts tab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from components.concepts import Place, model_of
from components.state.snapshot import Snapshot
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
        model: Name of the model whose concepts the next four fields refer to (see `choices`).
        layer: Layer whose features are listed; None for the last one.
        chosen: The open feature.
        query: The word searched for.
        found: Search results.
        shown: The activity shown in all views.
    """

    model: str = ""
    layer: int | None = None
    chosen: Place | None = None
    query: str = ""
    found: tuple[Place, ...] = ()
    shown: Activities | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.shown is None else self.shown.n_bytes


NOTHING_CHOSEN: dict[str, Any] = {"layer": None, "chosen": None, "query": "", "found": ()}


def choices(s: Snapshot) -> ConceptsState:
    """Return the state without choices that were made for another model's concepts."""
    state, loaded = s.state(ConceptsState), model_of(s)
    return state if loaded is not None and state.model == loaded.name else ConceptsState(shown=state.shown)
