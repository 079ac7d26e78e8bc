"""State of the Inside tab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.tabs.inside.head_overview import HeadOverview
from components.tabs.inside.recording import Recording
from components.tabs.inside.results import PositionTrace, Stories
from components.tabs.inside.trace_file import TraceFile

Part = Literal["machine", "one_head", "stream", "embeddings"]
FLOW_ROWS = (12, 64)  # tokens in the flow by default, and on request


@dataclass(frozen=True)
class InsideState:
    """The open part, the selection, and the results for the text.

    Attributes:
        key: Selected key position; None for the position with the largest weight.
        windows: First query and first key shown in the One head part, as of the last selection there.
        closer: Layer and head under the pointer in the overview.
        flow_rows: Number of tokens in the flow, one of FLOW_ROWS.
        reading: Number of tokens in a long forward pass that is in progress.
        resumes: Time from time.perf_counter() until which the analysis pauses during generation.
        film_plays: Whether the film was opened by a click; a link opens it paused.
        film_clicks: Number of times a click opened the film.
        film_played: The last beat that the page has played.
    """

    part: Part = "machine"
    key: int | None = None
    windows: tuple[int, int] | None = None
    closer: tuple[int, int] | None = None
    flow_rows: int = FLOW_ROWS[0]
    reading: int = 0
    resumes: float = 0.0
    film_plays: bool = False
    film_clicks: int = 0
    film_played: str = ""
    recording: Recording | None = None
    overview: HeadOverview | None = None
    position_trace: PositionTrace | None = None
    stories: Stories | None = None
    trace_file: TraceFile | None = None

    @property
    def n_bytes(self) -> int:
        """Approximate memory used by the results, in bytes."""
        return 0 if self.recording is None else self.recording.n_bytes
