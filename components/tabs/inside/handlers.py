"""The event handlers of the Inside tab. Payloads from the browser may be anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from components.downloads import offer
from components.errors import PageError
from components.state.session import Session
from components.state.text import Text
from components.tabs.inside.state import FLOW_ROWS, AttentionView, InsideState, Model, Part
from components.tabs.inside.trace_file import TraceFile
from components.tabs.inside.views.film_beats import BEATS, Beat, beats_of
from components.tabs.inside.views.head_stages import window_starts


def open_part(session: Session, sent: dict[str, Any]) -> None:
    """Open the part with the clicked title; only the open one is computed."""
    parts, index = get_args(Part), sent.get("index")
    if type(index) is int and 0 <= index < len(parts):
        session.change(InsideState, part=parts[index])


def select(session: Session, sent: dict[str, Any]) -> None:
    """Select a clicked position, layer or head. Another position clears the selected key; a click that includes one
    sets it."""
    selected = {name: sent[name] for name in ("position", "layer", "head") if type(sent.get(name)) is int}
    if selected and not session.select(**selected):
        return
    key = sent.get("key")
    if type(key) is int and key >= 0:
        session.change(InsideState, key=key)
    elif "position" in selected:
        session.change(InsideState, key=None)


def select_pair(session: Session, sent: dict[str, Any]) -> None:
    """As `select`, for charts with a window of a long text: the window stays if it contains the selection."""
    state, document = session.state(InsideState), session.document
    if document is not None and state.recording is not None and state.recording.length:
        length = state.recording.length
        with session.lock.reading():
            position = min(Text.of(document).at(session.selection), length - 1)
        key = None if state.key is None or state.key > position else state.key
        session.change(InsideState, windows=window_starts(length, position, key, state.windows))
    select(session, sent)


def select_token(session: Session, sent: dict[str, Any]) -> None:
    """Select the token that was clicked in the strip."""
    select(session, {"position": sent.get("index")})


def select_layer(session: Session, sent: dict[str, Any]) -> None:
    """Select the layer that was clicked in a chart."""
    select(session, {"layer": sent.get("x")})


def select_in_flow(session: Session, sent: dict[str, Any]) -> None:
    """As `select`; or show another number of tokens."""
    if sent.get("rows") in FLOW_ROWS:
        session.change(InsideState, flow_rows=sent["rows"])
    select(session, sent)


def magnify_head(session: Session, sent: dict[str, Any]) -> None:
    """Show the head under the pointer at a higher resolution, without selecting it."""
    head = sent.get("layer"), sent.get("head")
    document = session.document
    if document is not None:
        config = document.loaded.model.config
        if all(
            type(n) is int and 0 <= n < limit for n, limit in zip(head, (config.n_layer, config.n_head), strict=True)
        ):
            session.change(InsideState, closer=head)


def choose_model(session: Session, model: object) -> None:
    """Show the full model or its skeleton, until another model is chosen."""
    if model in get_args(Model):
        name = "" if session.document is None else session.document.loaded.name
        session.change(InsideState, skeleton_of=name if model == "skeleton" else "")


def choose_attention_view(session: Session, view: object) -> None:
    """Show another view of the attention between tokens."""
    if view in get_args(AttentionView):
        session.change(InsideState, attention_view=view)


def open_film(session: Session, beat: str = BEATS[0].name) -> None:
    """Open the film at the beat of that name."""
    if session.document is None:
        raise PageError("error.no_text")
    session.tab, session.film = "inside", [each.name for each in _beats(session)].index(beat) + 1


def show_beat(session: Session, sent: dict[str, Any]) -> None:
    """The film shows another beat: it is in the address."""
    beat = sent.get("beat")
    if session.film is not None and type(beat) is int and 1 <= beat <= len(_beats(session)):
        session.film = beat


def leave_film(session: Session, sent: dict[str, Any]) -> None:
    """Close the film; sent: with "leave" true, open what shows the part of its beat, with the same selection."""
    show_beat(session, sent)
    beat, session.film = session.film, None
    if beat is None or sent.get("leave") is not True:
        return
    beats = _beats(session)
    place = beats[min(beat, len(beats)) - 1].place
    if place == "playground":
        session.tab = place
    else:
        session.change(InsideState, part=place)


def _beats(session: Session) -> tuple[Beat, ...]:
    """The beats of the model that wrote the text."""
    return BEATS if session.document is None else beats_of(session.document.loaded.model.config)


def save_trace(session: Session) -> Iterator[None]:
    """Offer all activations of the text for download."""
    document = session.document
    if document is None:
        raise PageError("error.no_text")
    with session.lock.reading():
        text = Text.of(document)
    if text.n_read == 0:
        raise PageError("error.no_text")

    def write(folder: Path) -> Path:
        path = folder / "trace.npz"
        session.change(InsideState, trace_file=TraceFile.write(text, path))
        return path

    yield from offer(session, write)
