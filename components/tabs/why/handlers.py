"""The event handlers of the Why tab, and its analysis."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, TypeVar, get_args

from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.state.text import Text
from components.tabs.why import predictions
from components.tabs.why.components import Answer, MeasuredRoles, Order, Role, Sample, WatchList, WhyState
from gpt import GPT
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.causes import Ablation
from gpt.analysis.lens import LENS_POINTS, lens_top_tokens
from gpt.analysis.vocabulary_search import search_vocabulary
from gpt.background import run_with_progress
from gpt.inference.threads import threads_for

T = TypeVar("T")
MAX_WATCHED = 5
MAX_SEARCH_CHARS = 80
NOTHING = -1  # the choice of `against` for no token


def choose_position(session: Session, sent: dict[str, Any]) -> None:
    """Select the position of the clicked token in every tab."""
    _select(session, position=sent.get("index"))


def choose_cell(session: Session, sent: dict[str, Any]) -> None:
    """Open the clicked cell of the lens and select its position in every tab."""
    column, row, shown = sent.get("x"), sent.get("y"), session.state(WhyState).shown
    if shown is not None and type(column) is int and type(row) is int:
        session.change(WhyState, row=row, shown=replace(shown, cell=None))
        _select(session, position=shown.traced.first + column)


def choose_head(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked head of a map in every tab."""
    layer, head = sent.get("y"), sent.get("x")
    if type(layer) is int and type(head) is int:
        session.select(layer=layer, head=head)


def choose_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the head of the clicked bar; other bars are ignored."""
    place = sent.get("customdata")
    if isinstance(place, list) and len(place) == 2 and all(type(each) is int for each in place):
        session.select(layer=place[0], head=place[1])


def switch(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Switch a token, a head or what a head reads off or on in the flow, and predict without all that is off.

    sent: "part", a field of `Ablation`, and "place", as there; or "all" to switch everything on.
    """
    answer = session.state(WhyState).shown
    if answer is None or (off := _switched(answer, sent)) is None:
        return
    if not _update(session, answer, off=off, without=None) or off == Ablation():
        return
    yield
    traced, prediction = answer.traced, answer.prediction
    found = yield from run_with_progress(lambda _: predictions.without(traced, prediction, off), lambda *_: None)
    shown = session.state(WhyState).shown
    if shown is not None and shown.off == off:
        _update(session, answer, without=found)


def _switched(answer: Answer, sent: dict[str, Any]) -> Ablation | None:
    """What is off after a click; None for a click that changes nothing."""
    if sent.get("all") is True:
        return Ablation()
    flow = None if answer.causes is None else predictions.cause_flow(answer.traced, answer.prediction, answer.causes)
    part, place = sent.get("part"), sent.get("place")
    if flow is None or not isinstance(place, list) or any(type(each) is not int for each in place):
        return None
    shown = {
        "tokens": flow.tokens,
        "heads": flow.heads,
        "reads": [(*head, token) for head in flow.heads for token in flow.tokens],
    }
    where = place[0] if part == "tokens" and len(place) == 1 else tuple(place)
    if not isinstance(part, str) or where not in shown.get(part, ()):
        return None
    off = replace(answer.off, **{part: getattr(answer.off, part) ^ {where}})
    return off if len(off.tokens) <= answer.prediction.position else None  # one token at least remains


def _select(session: Session, *, position: object) -> None:
    document = session.document
    if document is not None and type(position) is int and position < document.n_read:
        session.select(position=position)


def choose_token(session: Session, token: object) -> None:
    """Explain another token after this position. token: may be an outdated choice while the text grows."""
    document = session.document
    if document is not None and type(token) is int and 0 <= token < document.loaded.model.config.vocab_size:
        session.change(WhyState, token=token, against=None, asked_at=_place(session))


def choose_against(session: Session, token: object) -> None:
    """Compare with another token, or with none."""
    shown = session.state(WhyState).shown
    if shown is None or type(token) is not int:
        return
    against = token if 0 <= token < shown.traced.model.config.vocab_size else None
    session.change(WhyState, token=shown.prediction.token, against=against, asked_at=_place(session))


def watch(session: Session, wanted: object) -> None:
    """Watch tokens through the layers. wanted: a list of ids, and of texts that stand for their first search result;
    the page also sends what the server has set."""
    document = session.document
    if document is None or document.n_read == 0 or not isinstance(wanted, list):
        return
    tokenizer, vocab_size = document.tokenizer, document.loaded.model.config.vocab_size
    entries = tuple(
        each[:MAX_SEARCH_CHARS] if isinstance(each, str) else each
        for each in wanted[:MAX_WATCHED]
        if (isinstance(each, str) and each) or (type(each) is int and 0 <= each < vocab_size)
    )
    if entries == session.state(WhyState).watched.of(tokenizer).entries:
        return
    logits = document.logits(session.selection.at(document))
    ids, unknown = [], []
    for each in entries:
        found = [each]
        if isinstance(each, str):
            found = [match.token_id for match in search_vocabulary(tokenizer, logits, each, limit=1)]
            unknown += [] if found else [each]
        ids += found
    session.change(WhyState, watched=WatchList(tokenizer, entries, tuple(ids), tuple(unknown)))


def choose(name: str, values: tuple[str, ...], session: Session, value: object) -> None:
    """Set a switch; results that depend on it are computed again."""
    if value not in values:
        return
    session.change(WhyState, **{name: value})
    shown = session.state(WhyState).shown
    if shown is not None and name == "method":
        session.change(WhyState, shown=replace(shown, influence=None, influence_known=False))
    if shown is not None and name == "stage":
        session.change(WhyState, shown=replace(shown, cell=None))


CHOICES = {
    "method": predictions.METHODS,
    "stage": LENS_POINTS,
    "order": get_args(Order),
    "role": get_args(Role),
    "sample": get_args(Sample),
}


def _place(session: Session) -> object:
    """The text and the position of a question."""
    with session.lock.reading():
        s = session.snapshot()
    return None if s.text is None else (s.text, s.position)


def wanted(s: Snapshot) -> Any:
    """What is missing for the selected position; None during generation."""
    if s.text is None or s.text.n_read == 0 or s.generating:
        return None
    missing = _missing(s.state(WhyState), s.text, s.text.at(s.selection))
    return (s.text, s.position, *missing) if missing else None


def _missing(state: WhyState, text: Text, position: int) -> tuple[Any, ...]:
    """The names of missing results, each with what it depends on."""
    shown = state.shown
    token, against = _question(state, text, position)
    if shown is None or not shown.traced.holds(text, position) or shown.prediction.position != position:
        return ("answer", token, against)
    if token is not None and shown.prediction.token != token:
        return ("answer", token, against)
    missing: list[Any] = []
    if shown.causes is None:
        missing.append("causes")
    if not shown.influence_known:
        missing.append(("influence", state.method))
    if shown.cell is None:
        missing.append(("lens", state.stage, state.row))
    if shown.paths is None or shown.watched is not state.watched:
        missing.append(("paths", state.watched))
    if shown.attribution is None or shown.against != against:
        missing.append(("attribution", against))
    if state.measured_roles is None:
        missing.append(("roles", state.sample))
    return tuple(missing)


def _question(state: WhyState, text: Text, position: int) -> tuple[int | None, int | None]:
    """The token to explain and the one to compare with, if they were chosen for this position."""
    return (state.token, state.against) if state.asked_at == (text, position) else (None, None)


def analyse(session: Session) -> Iterator[None]:
    """Compute the missing results of the selected position one after the other."""
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
            answer = Answer(traced, prediction)
            session.change(WhyState, shown=answer)
            yield
        yield from _causes(session, answer)
        yield from _influence(session, answer)
        yield from _lens(session)
        yield from _paths(session)
        yield from _attribution(session, against)
        yield from _roles(session)
    finally:
        session.change(WhyState, progress=None)


def _update(session: Session, answer: Answer, **found: Any) -> bool:
    """Add results to the current answer; returns False if another answer has replaced it."""
    shown = session.state(WhyState).shown
    if shown is None or shown.traced is not answer.traced or shown.prediction != answer.prediction:
        return False
    session.change(WhyState, shown=replace(shown, **found))
    return True


def _causes(session: Session, answer: Answer) -> Iterator[None]:
    if answer.causes is None:
        traced, prediction = answer.traced, answer.prediction
        found = yield from _busy(session, traced.model, "causes", lambda: predictions.causes(traced, prediction))
        _update(session, answer, causes=found)
        yield


def _influence(session: Session, answer: Answer) -> Iterator[None]:
    if answer.influence_known:
        return
    traced, prediction, method = answer.traced, answer.prediction, session.state(WhyState).method
    if method == "gradient":
        found = yield from _busy(session, traced.model, "gradient", lambda: predictions.gradient(traced, prediction))
    else:
        steps = predictions.left_out(traced, prediction)
        while True:
            try:
                n, total = next(steps)
            except StopIteration as end:
                found = end.value
                break
            session.change(WhyState, progress=Message("why.doing.left_out", {"n": n, "total": total}))
            yield
    _update(session, answer, influence=found, influence_known=True)
    yield


def _lens(session: Session) -> Iterator[None]:
    state = session.state(WhyState)
    answer = state.shown
    if answer is None or answer.cell is not None:
        return
    traced, prediction = answer.traced, answer.prediction
    lens = answer.lens
    if lens is None:
        lens = yield from _busy(session, traced.model, "reading", lambda: predictions.lens(traced))
    place = prediction.position - traced.first
    cell = lens_top_tokens(traced.model, traced.trace, state.lens_row, state.stage, place)
    _update(session, answer, lens=lens, cell=cell)
    yield


def _paths(session: Session) -> Iterator[None]:
    state = session.state(WhyState)
    answer, watched = state.shown, state.watched
    if answer is None or (answer.paths is not None and answer.watched is watched):
        return
    traced, prediction = answer.traced, answer.prediction
    ids = list(dict.fromkeys((prediction.token, *watched.of(traced.loaded.tokenizer).ids)))
    paths = yield from _busy(
        session, traced.model, "reading", lambda: predictions.token_paths(traced, prediction.position, ids)
    )
    _update(session, answer, paths=paths, watched=watched)
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
    _update(session, answer, attribution=found, against=against)
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
    """Run `work` in a thread and return its result; a message names a long computation."""

    def run(progress: Any) -> T:
        with threads_for(12 * model.config.n_layer * model.config.n_embd**2):  # parameters of all blocks
            return work()

    def show(done: int, total: int) -> None:
        session.change(WhyState, progress=Message(f"why.doing.{name}"))

    result = yield from run_with_progress(run, show)
    session.change(WhyState, progress=None)
    return result


ANALYSIS = Analysis(wanted, analyse)
