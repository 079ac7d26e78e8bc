"""Handlers that run and stop the beam search, select a candidate, and make it the document."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any, get_args

from components.api.arguments import checked_text
from components.state.admission import Admission
from components.state.adoption import adopt as adopt_document
from components.state.jobs import run_steps
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.settings import checked_number
from components.state.snapshot import Message
from components.tabs.compare.state import MAX_WIDTH, BeamState, CompareState, Part, prompts
from components.tabs.compare.views.beam_search import picked
from gpt import Generation
from gpt.documents.beam_search import BeamSearch
from gpt.inference.admission import AdmissionQueue
from gpt.tokenizer import plain_text

STEP_SECONDS = 0.2  # minimum time between two steps shown, so that the tree grows visibly
SEARCHES = AdmissionQueue(4)  # a running search keeps all beams' keys and values in memory
RANGES = {"width": (1, MAX_WIDTH), "penalty": (-2, 3), "length": (1, 40)}


def set_value(name: str, session: Session, value: object) -> None:
    """Set the value of a slider."""
    low, high = RANGES[name]
    checked = checked_number("k" if name != "penalty" else name, value, low, high)
    session.change(BeamState, **{name: checked})


def open_part(session: Session, part: object) -> Iterator[None]:
    """Open a part of the tab. The beam search runs an example the first time it is opened."""
    if part not in get_args(Part):
        return
    session.change(CompareState, part=part)
    if part == "beams" and not session.state(BeamState).begun:
        yield from search(session)


def search(session: Session) -> Iterator[None]:
    """Run the search step by step."""
    session.change(BeamState, begun=True)
    yield from run_steps(session, BeamState, lambda job: _steps(session))


def _steps(session: Session) -> Generator[None]:
    state = session.state(BeamState)
    prompt = checked_text("prompt", prompts(session)[0])
    loaded = yield from load_with_progress(session, session.model)
    found = BeamSearch(Generation(loaded, prompt), state.width, state.length, length_penalty=state.penalty)
    notice = None if prompt else Message("prompt.started_empty")
    session.change(BeamState, search=found, chosen=None, depth=0, notice=notice)
    due = 0.0
    with SEARCHES.enter() as place:
        yield from Admission(session, place)
        try:
            while not found.done:
                found.step()
                if time.perf_counter() >= due:
                    due = time.perf_counter() + STEP_SECONDS
                    yield from _show_step(session)
        finally:
            found.release()
    while session.state(BeamState).depth < found.candidates[-1].depth:
        time.sleep(max(0.0, due - time.perf_counter()))
        due = time.perf_counter() + STEP_SECONDS
        yield from _show_step(session)


def _show_step(session: Session) -> Iterator[None]:
    session.change(BeamState, depth=session.state(BeamState).depth + 1)
    yield


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked candidate. `sent` is an unvalidated browser payload."""
    found, candidate = session.state(BeamState).search, sent.get("candidate")
    if found is not None and type(candidate) is int and 0 <= candidate < len(found.candidates):
        session.change(BeamState, chosen=candidate)


def adopt(session: Session) -> None:
    """Make the selected candidate the document, with its tokens marked as chosen by hand, and open Write."""
    state = session.state(BeamState)
    candidate = picked(state)
    if state.search is None or candidate is None:
        return
    searched = state.search.document
    document = _document(searched, session)
    document.append(*state.search.ids(candidate), after=len(searched.ids) - 1)
    prompt = plain_text(document.tokenizer, document.prompt_ids) + searched.held
    adopt_document(session, document, prompt, Message("beams.adopted"))
    session.tab = "playground"


def _document(searched: Generation, session: Session) -> Generation:
    """Return a document with the search's prompt.

    If the visitor's document has the same prompt, returns a copy of it, including its branches.
    """
    with session.changing():
        own = session.document
        same = own is not None and own.loaded is searched.loaded and own.edits == searched.edits
        if own is not None and same and own.prompt_ids == searched.prompt_ids:
            return own.copy()
    return Generation(searched.loaded, searched.prompt_ids, held=searched.held)
