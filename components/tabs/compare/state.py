"""State of the Compare tab."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from components.state.jobs import Job
from components.state.session import Session
from components.state.settings import LIMITS
from components.state.snapshot import Message, Snapshot
from components.tabs.compare.pair import Pair
from gpt import DEFAULT_MODEL
from gpt.documents.beam_search import BeamSearch
from gpt.models.sources import LLAMA_MODEL

Part = Literal["sides", "beams"]
Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
COLUMN_SETTINGS = ("temperature", "top_k", "top_p")
MAX_WIDTH = 8  # beams


@dataclass(frozen=True)
class ColumnSettings:
    """Settings for one column. An empty model name means the page's model."""

    model: str = ""
    temperature: float = LIMITS["temperature"].default
    top_k: int = 0
    top_p: float = 1.0
    seed: str = "1"


PRESETS: dict[str, tuple[ColumnSettings, ColumnSettings]] = {
    "seeds": (ColumnSettings(), ColumnSettings(seed="2")),
    "temperatures": (ColumnSettings(temperature=0.3), ColumnSettings(temperature=1.5)),
    "trained": (ColumnSettings(model=DEFAULT_MODEL), ColumnSettings(model="untrained")),
    "shapes": (ColumnSettings(model=DEFAULT_MODEL), ColumnSettings(model=LLAMA_MODEL)),
}


@dataclass(frozen=True, eq=False)
class RunState:
    """A run of either part of the tab: the active job, and a notice or error about the latest job."""

    job: Job | None = None
    notice: Message | Exception | None = None

    @property
    def busy(self) -> bool:
        return self.job is not None


@dataclass(frozen=True, eq=False)
class CompareState(RunState):
    """State of the side-by-side comparison.

    Attributes:
        part: The open part of the tab.
        prompt: Prompt for both parts; None for Write's prompt.
        right_prompt: Prompt for the right column; None if it equals the left one.
        columns: Settings for each column.
        ran: Inputs to the last run.
        pair: The generated texts, which grow in place.
        pair_version: Incremented whenever the pair changes.
        measured: Number of positions compared so far and in total, during the measurement.
    """

    part: Part = "sides"
    prompt: str | None = None
    right_prompt: str | None = None
    columns: tuple[ColumnSettings, ColumnSettings] = PRESETS["temperatures"]
    length: int = 40
    ran: Hashable = None
    pair: Pair | None = None
    pair_version: int = 0
    measured: tuple[int, int] | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.pair is None else sum(document.n_bytes for document in self.pair.documents)


@dataclass(frozen=True, eq=False)
class BeamState(RunState):
    """State of the beam search.

    Attributes:
        begun: Whether a search has ever started.
        search: The latest search, which grows in place.
        depth: Number of steps shown while it runs.
        chosen: Selected candidate; None for the best one.
    """

    width: int = 3
    penalty: float = 1.0
    length: int = 10
    begun: bool = False
    search: BeamSearch | None = None
    depth: int = 0
    chosen: int | None = None


def prompts(s: Session | Snapshot) -> tuple[str, str]:
    """Return both columns' prompts. The beam search uses the left one."""
    state = s.state(CompareState)
    left = s.next_prompt if state.prompt is None else state.prompt
    return left, left if state.right_prompt is None else state.right_prompt
