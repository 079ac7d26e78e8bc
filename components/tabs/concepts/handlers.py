"""Event handlers and analysis for the Concepts tab."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import torch

from components import concepts
from components.concepts import MAX_QUERY_CHARS, SteeringState
from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.tabs.concepts.state import NOTHING_CHOSEN, Activities, ConceptsState
from gpt import LoadedModel
from gpt.analysis.concepts import trace_activity
from gpt.analysis.tracing import trace_window
from gpt.background import run_with_progress
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inference.threads import threads_for

MAX_TOKENS = 256  # maximum tokens in the window around the selected token
MAX_FOUND = 12


def choose_layer(session: Session, layer: object) -> None:
    """List the features of another layer."""
    if type(layer) is int and (loaded := _model(session)) is not None:
        _choose(session, loaded, layer=layer, chosen=None)


def pick(session: Session, sent: dict[str, Any]) -> None:
    """Select a token in all tabs, or open a feature. `sent` contains "index" or "place", both unvalidated."""
    if "index" in sent:
        session.select(position=sent["index"])
        return
    loaded = _model(session)
    match sent.get("place"):
        case [int(layer), int(feature)] if loaded is not None and loaded.concepts is not None:
            dictionary = loaded.concepts.dictionaries.get(layer)
            if dictionary is not None and 0 <= feature < len(dictionary.bias):
                _choose(session, loaded, chosen=(layer, feature))
                session.change(SteeringState, chosen=(layer, feature))


def search(session: Session, query: object) -> None:
    """Search for features by a word."""
    loaded = _model(session)
    if not isinstance(query, str) or loaded is None or loaded.concepts is None:
        return
    query = query[:MAX_QUERY_CHARS]
    found = loaded.concepts.search(loaded.tokenizer, query, MAX_FOUND)
    _choose(session, loaded, query=query, found=tuple(found))


def _model(session: Session) -> LoadedModel | None:
    """Return the text's model, or the loaded model if there is no text."""
    return session.loaded if session.document is None else session.document.loaded


def _choose(session: Session, loaded: LoadedModel, **chosen: Any) -> None:
    """Change choices for a model's concepts. Choices for another model's concepts are dropped."""
    state = session.state(ConceptsState)
    if state.model != loaded.name:
        chosen = NOTHING_CHOSEN | chosen
    session.change(ConceptsState, model=loaded.name, **chosen)


def wanted(s: Snapshot) -> Hashable:
    """Return a key for what remains to be measured, or None during generation or if the model has no concepts."""
    if s.text is None or s.text.n_read == 0 or s.generating or s.text.loaded.concepts is None:
        return None
    missing = concepts.wanted(s)
    return (s.text, missing) if _lacks(s, s.text) or missing else None


def _lacks(s: Snapshot, text: Text) -> bool:
    shown, position = s.state(ConceptsState).shown, text.at(s.selection)
    if shown is None or shown.text.version != text.version or shown.text.n_read != text.n_read:
        return True
    return not shown.first <= position < shown.first + MAX_TOKENS


def measure(session: Session) -> Iterator[None]:
    """Measure feature activity on the text, and the prediction without turned-up concepts."""
    s = session.snapshot()
    if s.text is None or wanted(s) is None:
        return
    if _lacks(s, s.text):
        text, position = s.text, s.text.at(s.selection)
        found = yield from run_with_progress(lambda _: activities(text, position), lambda *_: None)
        session.change(ConceptsState, shown=found)
        yield
    yield from concepts.measure(session)


def activities(text: Text, position: int) -> Activities:
    """Measure feature activity on up to MAX_TOKENS tokens around a position."""
    loaded, ids = text.loaded, text.ids[: text.n_read]
    assert loaded.concepts is not None
    first = max(0, min(position - MAX_TOKENS // 2, len(ids) - MAX_TOKENS))
    stop = min(len(ids), first + MAX_TOKENS)
    with threads_for(len(ids) * multiplications_per_token(loaded.model)), torch.inference_mode():
        trace = trace_window(loaded.model, ids, first, stop, text.document.edits)
        by_layer = {
            layer: trace_activity(loaded.concepts, trace, layer, first=first) for layer in loaded.concepts.dictionaries
        }
    return Activities(text, first, by_layer)


ANALYSIS = Analysis(wanted, measure)
