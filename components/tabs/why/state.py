"""State of the Causes tab."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from components.causes import Falls, falls_of
from components.state.snapshot import Message, Snapshot
from components.tabs.why.predictions import (
    Influence,
    Method,
    Prediction,
    TokenPaths,
    TracedText,
)
from gpt.analysis.attribution import Attribution
from gpt.analysis.causes import Ablation, Causes
from gpt.analysis.concept_graph import ConceptGraph
from gpt.analysis.heads import HeadRoles
from gpt.analysis.lens import Lens, LensPoint, TopTokens
from gpt.tokenizer import Vocabulary

Role = Literal["previous_token", "first_token", "same_token", "induction"]
Sample = Literal["text", "noise"]
Order = Literal["size", "layer"]
By = Literal["heads", "concepts"]


@dataclass(frozen=True, eq=False)
class WatchList:
    """The tokens that a visitor watches. Every change creates a new object.

    Attributes:
        entries: Ids from the tokenizer, and strings as typed.
        ids: Ids for all entries.
        unknown: Strings that no token contains.
    """

    tokenizer: Vocabulary | None = None
    entries: tuple[int | str, ...] = ()
    ids: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()

    def of(self, tokenizer: Vocabulary) -> WatchList:
        """Return this list, or an empty one for a different tokenizer."""
        return self if self.tokenizer is tokenizer else WatchList()


@dataclass(frozen=True, eq=False)
class Cell:
    """The likeliest tokens in one cell of the lens, in the column of the explained prediction."""

    stage: LensPoint
    layer: int
    top: TopTokens


@dataclass(frozen=True, eq=False)
class Explanation:
    """Results for one prediction, each None until computed.

    Attributes:
        off: The parts switched off in the flow.
        without: Logits without `off`, (vocab_size,).
        influence_known: Whether the gradient was computed; `influence` may still be None.
        paths: Paths of the token to explain and of the watched tokens through the layers.
        against: The token to compare with in the attribution.
        graph: The concept graph; stays None if the model has no concepts or the text is too long.
        graph_off: Keys of the graph's parts that are switched off.
        graph_without: Logits without `graph_off`.
    """

    traced: TracedText
    prediction: Prediction
    causes: Causes | None = None
    off: Ablation = field(default_factory=Ablation)
    without: Tensor | None = None
    influence: Influence | None = None
    influence_known: bool = False
    lens: Lens | None = None
    cell: Cell | None = None
    paths: TokenPaths | None = None
    watched: WatchList = WatchList()
    attribution: Attribution | None = None
    against: int | None = None
    graph: ConceptGraph | None = None
    graph_known: bool = False
    graph_off: frozenset[str] = frozenset()
    graph_without: Tensor | None = None


@dataclass(frozen=True, eq=False)
class MeasuredRoles:
    """All heads' roles, measured on n_tokens tokens for one version of the text."""

    roles: HeadRoles
    n_tokens: int
    version: object


@dataclass(frozen=True, eq=False)
class WhyState:
    """State of the Causes tab.

    Attributes:
        token: The token to explain; None for the next one in the text.
        against: The token to compare with.
        asked_at: The text and position for which both tokens were chosen.
        row: Row in the lens; -1 for the last.
        shown: The explanation that all panels show.
        roles: The heads' roles, keyed by the sample they were measured on.
        by: The kind of nodes that the flow passes through.
    """

    token: int | None = None
    against: int | None = None
    asked_at: object = None
    by: By = "heads"
    method: Method = "hidden"
    stage: LensPoint = "resid_post"
    row: int = -1
    order: Order = "size"
    role: Role = "previous_token"
    sample: Sample = "text"
    watched: WatchList = WatchList()
    shown: Explanation | None = None
    roles: dict[str, MeasuredRoles] = field(default_factory=dict)
    progress: Message | None = None

    @property
    def lens_row(self) -> int:
        """The selected layer of the lens."""
        n_layer = 0 if self.shown is None else self.shown.traced.model.config.n_layer
        return self.row if 0 <= self.row < n_layer else n_layer - 1

    @property
    def cell(self) -> Cell | None:
        """The selected cell of the lens, or None until it is computed."""
        found = None if self.shown is None else self.shown.cell
        return found if found is not None and (found.stage, found.layer) == (self.stage, self.lens_row) else None

    @property
    def measured_roles(self) -> MeasuredRoles | None:
        """The roles on the chosen sample, if they were measured on the current text."""
        found = self.roles.get(self.sample)
        return found if found and self.shown and found.version == self.shown.traced.text.version else None

    @property
    def n_bytes(self) -> int:
        if self.shown is None:
            return 0
        return self.shown.traced.n_bytes + (0 if self.shown.causes is None else self.shown.causes.n_bytes)


def falls(s: Snapshot) -> Falls | None:
    """Return how far the explained token's probability falls without each word and head, or None if not known yet."""
    shown = s.state(WhyState).shown
    if shown is None or shown.causes is None:
        return None
    return falls_of(shown.causes, shown.prediction.previous, s.settings.sampling())
