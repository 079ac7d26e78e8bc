"""The analysis for the Inside tab, which records the text as it grows and computes what the open part needs."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.tabs.inside.head_overview import HeadOverview
from components.tabs.inside.recording import Recording
from components.tabs.inside.results import PositionTrace, Stories
from components.tabs.inside.state import InsideState
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inference.threads import threads_for

LONG_PASS_WORK = 1e10  # multiplications; a larger pass shows a progress message
OVERVIEW_SECONDS = 0.2  # per round
FOLLOWING_SECONDS = 0.4  # pause between two rounds during generation
PAUSE_FACTOR = 3  # minimum pause between two rounds, as a multiple of a round's duration
POLL_SECONDS = 0.02


def analysis(max_bytes: int) -> Analysis:
    """Return the analysis for a page with this memory limit per visitor."""

    def run(session: Session) -> Iterator[None]:
        yield from record(session, max_bytes)

    return Analysis(wanted, run, pause=pause)


def wanted(s: Snapshot) -> Hashable:
    """Return a key for the missing results, or None if nothing is missing.

    The key depends on what has been computed so far, so it changes with every round but not with every token.
    """
    text, state = s.text, s.state(InsideState)
    if text is None or text.n_read == 0:
        return None
    recording = state.recording
    if recording is None or not recording.is_complete(text):
        return "recording", text.document.key, recording
    return _missing(s, state, recording)


def record(session: Session, max_bytes: int) -> Iterator[None]:
    """Run one round: update the recording, and compute a portion of what the open part needs."""
    s = session.snapshot()
    text, began = s.text, time.perf_counter()
    if text is None or text.n_read == 0:
        return
    recording = _beginning(session, text, max_bytes)
    n_new = recording.missing(text)
    work = n_new * multiplications_per_token(text.loaded.model)
    if work > LONG_PASS_WORK:
        session.change(InsideState, reading=n_new)
        yield
    try:
        with threads_for(work + recording.config.n_embd * text.n_read**2):
            recording = recording.extended(text.ids[: text.n_read])
            results = _portion(s, session.state(InsideState), recording)
        ended = time.perf_counter()
        resumes = ended + max(FOLLOWING_SECONDS, PAUSE_FACTOR * (ended - began))
        session.change(InsideState, recording=recording, resumes=resumes, **results)
    finally:
        session.change(InsideState, reading=0)
    yield


def _beginning(session: Session, text: Text, max_bytes: int) -> Recording:
    """Return the recording to extend.

    Views must not draw what the extension overwrites, and two recordings must never be in memory at once.
    """
    before = session.state(InsideState).recording
    if before is None or before.document is not text.document:
        nothing = dict.fromkeys(("recording", "overview", "position_trace"))
        session.change(InsideState, windows=None, closer=None, **nothing)
        return Recording.empty(text.document, max_bytes)
    if not before.is_beginning(text):
        session.change(InsideState, recording=replace(before, ids=()))
    return before


def _missing(s: Snapshot, state: InsideState, recording: Recording) -> Hashable:
    """Return a key for the results that the film or the open part still needs after the recording, or None."""
    if s.film is not None:
        position = recorded_position(s, recording)
        if not has_film(state, recording, position):
            return "film", recording, position
    if state.part == "machine":
        if state.overview is None or not state.overview.is_complete(recording):
            return "overview", recording, state.overview
    elif state.part == "stream":
        position = recorded_position(s, recording)
        if state.position_trace is None or not state.position_trace.is_at(recording, position):
            return "position", recording, position
    return None


def _portion(s: Snapshot, state: InsideState, recording: Recording) -> dict[str, Any]:
    """Compute the next chunk of what the film and the open part need, and return the new state fields."""
    computed: dict[str, Any] = {}
    if s.film is not None:
        loaded, stories = recording.document.loaded, state.stories
        computed["stories"] = stories if stories is not None and stories.loaded is loaded else Stories.of(loaded)
        computed["position_trace"] = PositionTrace.of(recording, recorded_position(s, recording))
    if state.part == "machine":
        overview = state.overview or HeadOverview.empty(recording.document)
        computed["overview"] = overview.extended(recording, OVERVIEW_SECONDS)
    elif state.part == "stream":
        computed["position_trace"] = PositionTrace.of(recording, recorded_position(s, recording))
    return computed


def has_film(state: InsideState, recording: Recording, position: int) -> bool:
    """Return whether the film's results belong to this model and position."""
    trace, stories = state.position_trace, state.stories
    is_of_model = stories is not None and stories.loaded is recording.document.loaded
    return is_of_model and trace is not None and trace.is_at(recording, position)


def recorded_position(s: Snapshot, recording: Recording) -> int:
    """Return the selected position, clamped to the last recorded position."""
    return 0 if s.text is None else min(s.text.at(s.selection), recording.length - 1)


def pause(session: Session) -> None:
    """Pause between two rounds during generation, but only until the visitor selects something or switches tabs."""

    def looked_at() -> tuple[Any, ...]:
        return session.tab, session.selection, session.state(InsideState)

    before = looked_at()
    while session.lock.streaming and looked_at() == before and time.perf_counter() < session.state(InsideState).resumes:
        time.sleep(POLL_SECONDS)
