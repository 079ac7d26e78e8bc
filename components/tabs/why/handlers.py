"""Event handlers for the Causes tab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from components.causes import falls_of
from components.state.session import Session
from components.tabs.why import predictions
from components.tabs.why.analysis import update
from components.tabs.why.state import By, Explanation, Order, Role, Sample, WatchList, WhyState
from gpt import SamplingParams
from gpt.analysis.causes import Ablation
from gpt.analysis.lens import LENS_POINTS
from gpt.analysis.vocabulary_search import search_vocabulary
from gpt.background import run_with_progress

MAX_WATCHED = 5
MAX_SEARCH_CHARS = 80
NOTHING = -1  # value of the `against` menu if no token is chosen


def choose_position(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked token's position in all tabs."""
    _select(session, position=sent.get("index"))


def choose_cell(session: Session, sent: dict[str, Any]) -> None:
    """Open the clicked cell of the lens, and select its position in all tabs."""
    column, row, shown = sent.get("x"), sent.get("y"), session.state(WhyState).shown
    if shown is not None and type(column) is int and type(row) is int:
        session.change(WhyState, row=row)
        _select(session, position=shown.traced.first + column)


def choose_head(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked head in all tabs."""
    layer, head = sent.get("y"), sent.get("x")
    if type(layer) is int and type(head) is int:
        session.select(layer=layer, head=head)


def choose_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the head whose bar was clicked. Other bars are ignored."""
    place = sent.get("customdata")
    if isinstance(place, list) and len(place) == 2 and all(type(each) is int for each in place):
        session.select(layer=place[0], head=place[1])


def switch(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Toggle a token, a head or a head's input in the flow, and predict without everything that is off.

    `sent` contains "part", a field of `Ablation`, and "place", an element of it, or "all" to switch everything on.
    """
    answer = session.state(WhyState).shown
    if answer is None or (off := _switched(answer, sent, session.settings.sampling())) is None:
        return
    if not update(session, answer, off=off, without=None) or off == Ablation():
        return
    yield
    traced, prediction = answer.traced, answer.prediction
    found = yield from run_with_progress(lambda _: predictions.without(traced, prediction, off), lambda *_: None)
    shown = session.state(WhyState).shown
    if shown is not None and shown.off == off:
        update(session, answer, without=found)


def switch_part(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Toggle a part of the concept graph, and predict without everything that is off.

    `sent` contains "node", its key, or "all" to switch everything on.
    """
    answer = session.state(WhyState).shown
    if answer is None or answer.graph is None:
        return
    graph, node = answer.graph, sent.get("node")
    keys = {*map(predictions.word_key, graph.words), *map(predictions.node_key, (*graph.early, *graph.late))}
    clicked = {key for key in (*keys, predictions.ERROR) if key == node}
    off = frozenset[str]() if sent.get("all") is True else answer.graph_off ^ clicked
    if not update(session, answer, graph_off=off, graph_without=None) or not off:
        return
    yield
    traced, prediction = answer.traced, answer.prediction
    found = yield from run_with_progress(
        lambda _: predictions.without_parts(traced, prediction, graph, off), lambda *_: None
    )
    shown = session.state(WhyState).shown
    if shown is not None and shown.graph_off == off:
        update(session, answer, graph_without=found)


def _switched(answer: Explanation, sent: dict[str, Any], settings: SamplingParams) -> Ablation | None:
    """Return the ablation after a click, or None if nothing changes."""
    if sent.get("all") is True:
        return Ablation()
    part, place = sent.get("part"), sent.get("place")
    if answer.causes is None or not isinstance(place, list) or any(type(each) is not int for each in place):
        return None
    falls = falls_of(answer.causes, answer.prediction.previous, settings)
    flow = predictions.cause_flow(answer.traced, answer.prediction, falls)
    heads = () if flow is None else [head for head, _ in flow.heads]
    off = answer.off
    match part, place:
        case "heads", [*head] if tuple(head) in heads:
            off = replace(off, heads=off.heads ^ {tuple(head)})
        case "tokens", [position] if flow and (word := flow.word_at(position)):
            off = replace(off, tokens=off.tokens ^ {*word})
        case "reads", [*head, position] if flow and tuple(head) in heads and (word := flow.word_at(position)):
            off = replace(off, reads=off.reads ^ {(*head, each) for each in word})
        case _:
            return None
    return off if len(off.tokens) <= answer.prediction.position else None  # at least one token must remain


def _select(session: Session, *, position: object) -> None:
    document = session.document
    if document is not None and type(position) is int and position < document.n_read:
        session.select(position=position)


def choose_token(session: Session, token: object) -> None:
    """Explain another token after this position. While the text grows, `token` may be an outdated choice."""
    document = session.document
    if document is not None and type(token) is int and 0 <= token < document.loaded.model.config.vocab_size:
        session.change(WhyState, token=token, against=None, asked_at=_place(session))


def choose_against(session: Session, token: object) -> None:
    """Compare with another token or with none."""
    shown = session.state(WhyState).shown
    if shown is None or type(token) is not int:
        return
    against = token if 0 <= token < shown.traced.model.config.vocab_size else None
    session.change(WhyState, token=shown.prediction.token, against=against, asked_at=_place(session))


def watch(session: Session, wanted: object) -> None:
    """Watch tokens through the layers.

    `wanted` is a list of ids and strings; a string selects its first search result. The page also sends back
    values that the server has set.
    """
    with session.lock.reading():
        text = session.snapshot().text
    if text is None or text.n_read == 0 or not isinstance(wanted, list):
        return
    tokenizer, vocab_size = text.tokenizer, text.config.vocab_size
    entries = tuple(
        each[:MAX_SEARCH_CHARS] if isinstance(each, str) else each
        for each in wanted[:MAX_WATCHED]
        if (isinstance(each, str) and each) or (type(each) is int and 0 <= each < vocab_size)
    )
    if entries == session.state(WhyState).watched.of(tokenizer).entries:
        return
    logits = text.document.logits(text.at(session.selection))
    ids: list[int] = []
    unknown: list[str] = []
    for each in entries:
        if isinstance(each, int):
            ids.append(each)
        elif found := search_vocabulary(tokenizer, logits, each, limit=1):
            ids.append(found[0].token_id)
        else:
            unknown.append(each)
    session.change(WhyState, watched=WatchList(tokenizer, entries, tuple(ids), tuple(unknown)))


def choose(name: str, values: tuple[str, ...], session: Session, value: object) -> None:
    """Set a switch."""
    if value in values:
        session.change(WhyState, **{name: value})


CHOICES = {
    "by": get_args(By),
    "method": predictions.METHODS,
    "stage": LENS_POINTS,
    "order": get_args(Order),
    "role": get_args(Role),
    "sample": get_args(Sample),
}


def _place(session: Session) -> object:
    """Return the text and position that a question refers to."""
    s = session.snapshot()
    return None if s.text is None else (s.text, s.position)
