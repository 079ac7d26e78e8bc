"""Compute missing results for the Causes tab, each once per text, position and choice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.state.text import Text
from components.tabs.why import predictions
from components.tabs.why.state import Cell, Explanation, MeasuredRoles, WhyState
from gpt import GPT
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import lens_top_tokens
from gpt.background import run_with_progress
from gpt.inference.threads import threads_for

T = TypeVar("T")
Compute = Callable[[predictions.TracedText, predictions.Prediction], Any]


def wanted(s: Snapshot) -> Any:
    """Return a key for what is missing at the selected position, or None during generation."""
    if s.text is None or s.text.n_read == 0 or s.generating:
        return None
    missing = _missing(s.state(WhyState), s.text, s.text.at(s.selection))
    return (s.text, s.position, *missing) if missing else None


def _missing(state: WhyState, text: Text, position: int) -> tuple[Any, ...]:
    """Return the names of missing results, each with its inputs."""
    shown = state.shown
    token, against = _question(state, text, position)
    if shown is None or not shown.traced.holds(text, position) or shown.prediction.position != position:
        return ("answer", token, against)
    if token is not None and shown.prediction.token != token:
        return ("answer", token, against)
    missing: list[Any] = []
    if shown.causes is None:
        missing.append("causes")
    if state.by == "concepts" and not shown.graph_known:
        missing.append("graph")
    if state.method == "gradient" and not shown.influence_known:
        missing.append("gradient")
    if state.cell is None:
        missing.append(("lens", state.stage, state.row))
    if shown.paths is None or shown.watched is not state.watched:
        missing.append(("paths", state.watched))
    if shown.attribution is None or shown.against != against:
        missing.append(("attribution", against))
    if state.measured_roles is None:
        missing.append(("roles", state.sample))
    return tuple(missing)


def _question(state: WhyState, text: Text, position: int) -> tuple[int | None, int | None]:
    """Return the token to explain and the token to compare with, each None unless chosen for this position."""
    return (state.token, state.against) if state.asked_at == (text, position) else (None, None)


def analyse(session: Session) -> Iterator[None]:
    """Compute the missing results for the selected position one by one."""
    with session.lock.reading():
        s = session.snapshot()
        if s.text is None or s.text.n_read == 0:
            session.change(WhyState, shown=None)
            return
        text, position, state = s.text, s.text.at(s.selection), s.state(WhyState)
        token, against = _question(state, text, position)
        prediction = predictions.predict(text, position, token)
    try:
        before = None if state.shown is None else state.shown.traced
        traced = yield from _busy(
            session, text.loaded.model, "reading", lambda: predictions.trace_around(text, position, before)
        )
        answer = state.shown
        if answer is None or answer.traced is not traced or answer.prediction != prediction:
            answer = Explanation(traced, prediction)
            session.change(WhyState, shown=answer)
            yield
        if answer.causes is None:
            yield from _add(session, answer, "causes", predictions.causes)
        if not answer.graph_known and session.state(WhyState).by == "concepts":
            yield from _add(session, answer, "graph", predictions.graph, graph_known=True)
        if not answer.influence_known and session.state(WhyState).method == "gradient":
            yield from _add(session, answer, "influence", predictions.gradient, influence_known=True)
        yield from _lens(session)
        yield from _paths(session)
        yield from _attribution(session, against)
        yield from _roles(session)
    finally:
        session.change(WhyState, progress=None)


def update(session: Session, answer: Explanation, **found: Any) -> bool:
    """Add results to the current explanation. Returns False if another one has replaced it."""

    def is_shown(shown: Explanation | None) -> TypeGuard[Explanation]:
        return shown is not None and shown.traced is answer.traced and shown.prediction == answer.prediction

    def add(state: WhyState) -> dict[str, Any]:
        return {"shown": replace(state.shown, **found)} if is_shown(state.shown) else {}

    return is_shown(session.revise(WhyState, add).shown)


def _add(session: Session, answer: Explanation, field: str, compute: Compute, **known: bool) -> Iterator[None]:
    """Compute one field of the explanation."""
    traced, prediction = answer.traced, answer.prediction
    found = yield from _busy(session, traced.model, field, lambda: compute(traced, prediction))
    update(session, answer, **{field: found}, **known)
    yield


def _lens(session: Session) -> Iterator[None]:
    state = session.state(WhyState)
    answer, stage, layer = state.shown, state.stage, state.lens_row
    if answer is None or state.cell is not None:
        return
    traced, prediction = answer.traced, answer.prediction
    lens = answer.lens
    if lens is None:
        lens = yield from _busy(session, traced.model, "reading", lambda: predictions.lens(traced, prediction))
    place, only = prediction.position - traced.first, traced.loaded.tokenizer.ids_after(prediction.held)
    top = lens_top_tokens(traced.model, traced.trace, layer, stage, place, only=only)
    update(session, answer, lens=lens, cell=Cell(stage, layer, top))
    yield


def _paths(session: Session) -> Iterator[None]:
    state = session.state(WhyState)
    answer, watched = state.shown, state.watched
    if answer is None or (answer.paths is not None and answer.watched is watched):
        return
    traced, prediction = answer.traced, answer.prediction
    ids = list(dict.fromkeys((prediction.token, *watched.of(traced.loaded.tokenizer).ids)))
    paths = yield from _busy(session, traced.model, "reading", lambda: predictions.token_paths(traced, prediction, ids))
    update(session, answer, paths=paths, watched=watched)
    yield


def _attribution(session: Session, against: int | None) -> Iterator[None]:
    answer = session.state(WhyState).shown
    if answer is None or (answer.attribution is not None and answer.against == against):
        return
    traced, prediction = answer.traced, answer.prediction
    place = prediction.position - traced.first
    found = direct_logit_attribution(
        traced.model, traced.trace, place, prediction.token, against=against, edits=traced.edits
    )
    update(session, answer, attribution=found, against=against)
    yield


def _roles(session: Session) -> Iterator[None]:
    state = session.state(WhyState)
    if state.shown is None:
        return
    traced, sample = state.shown.traced, state.sample
    if state.measured_roles is not None:
        return
    measure = predictions.roles_of_noise if sample == "noise" else predictions.roles_of_text
    roles, n = yield from _busy(session, traced.model, "roles", lambda: measure(traced))
    measured = session.state(WhyState).roles
    session.change(WhyState, roles=measured | {sample: MeasuredRoles(roles, n, traced.text.version)})
    yield


def _busy(session: Session, model: GPT, name: str, work: Callable[[], T]) -> Generator[None, None, T]:
    """Run `work` in a thread and return its result. A long computation shows a message."""

    def run(progress: Any) -> T:
        with threads_for(12 * model.config.n_layer * model.config.n_embd**2):  # parameters of all blocks
            return work()

    def show(done: int, total: int) -> None:
        session.change(WhyState, progress=Message(f"why.doing.{name}"))

    result = yield from run_with_progress(run, show)
    session.change(WhyState, progress=None)
    return result


ANALYSIS = Analysis(wanted, analyse)
