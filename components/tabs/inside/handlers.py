"""Event handlers for the Inside tab. They receive unvalidated browser payloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from components.downloads import offer
from components.errors import PageError
from components.state.admission import admitted
from components.state.session import Session
from components.tabs.inside.beats import NAMES, beat_named
from components.tabs.inside.state import FLOW_ROWS, InsideState, Part
from components.tabs.inside.trace_file import TraceFile
from components.tabs.inside.views.film import draw_at
from components.tabs.inside.views.head_stages import window_starts
from components.tabs.inside.views.scene import scene_of


def open_part(session: Session, sent: dict[str, Any]) -> None:
    """Open the part whose title was clicked. Only the open part is computed."""
    parts, index = get_args(Part), sent.get("index")
    if type(index) is int and 0 <= index < len(parts):
        session.change(InsideState, part=parts[index])


def select(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked position, layer or head.

    A new position clears the selected key; a click that includes a key selects it.
    """
    selected = {name: sent[name] for name in ("position", "layer", "head") if type(sent.get(name)) is int}
    if selected and not session.select(**selected):
        return
    key = sent.get("key")
    if type(key) is int and key >= 0:
        session.change(InsideState, key=key)
    elif "position" in selected:
        session.change(InsideState, key=None)


def select_pair(session: Session, sent: dict[str, Any]) -> None:
    """Like `select`, but for charts that show a window of a long text. The window moves only if necessary."""
    state = session.state(InsideState)
    with session.lock.reading():
        text = session.snapshot().text
    if text is not None and state.recording is not None and state.recording.length:
        length = state.recording.length
        position = min(text.at(session.selection), length - 1)
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
    """Handle a click in the flow: select, change the number of tokens shown, or go to another beat of the film."""
    if "beat" in sent:
        play_film(session, sent)
    if sent.get("rows") in FLOW_ROWS:
        session.change(InsideState, flow_rows=sent["rows"])
    select(session, sent)


def magnify_head(session: Session, sent: dict[str, Any]) -> None:
    """Show the head under the pointer at a higher resolution without selecting it."""
    head = sent.get("layer"), sent.get("head")
    document = session.document
    if document is not None:
        config = document.loaded.model.config
        if all(
            type(n) is int and 0 <= n < limit for n, limit in zip(head, (config.n_layer, config.n_head), strict=True)
        ):
            session.change(InsideState, closer=head)


def open_film(session: Session, beat: str = NAMES[0]) -> None:
    """Open the film in the machine picture, at the named beat."""
    if session.document is None:
        raise PageError("error.no_text")
    clicks = session.state(InsideState).film_clicks + 1
    session.change(InsideState, part="machine", film_plays=True, film_clicks=clicks)
    session.tab, session.film = "inside", beat_named(beat)


def play_film(session: Session, sent: dict[str, Any]) -> None:
    """Go to the beat of the film that the browser sends, or close the film if "beat" is null."""
    beat = sent.get("beat")
    if session.film is not None and (beat is None or beat in NAMES):
        session.film = beat
        session.change(InsideState, film_played=beat or "")
    if beat is None:
        session.change(InsideState, film_plays=False)


def write_next(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Append the token sampled in the film to the text, keeping the followed token selected."""
    document = session.document
    if document is None or session.lock.streaming:
        return
    with admitted(session, document.loaded) as waiting:
        yield from waiting
        with session.changing():
            s = session.snapshot()
            scene = scene_of(s)
            if scene is None or scene.document is not document or scene.position + 1 != len(document.ids):
                return
            params, _ = draw_at(s, scene)
            session.redo_stack.clear()
            for _ in document.steps(params, 1):
                document.read()
            session.selection = replace(session.selection, position=scene.position)


def save_trace(session: Session) -> Iterator[None]:
    """Offer all activations of the text for download."""
    with session.lock.reading():
        text = session.snapshot().text
    if text is None or text.n_read == 0:
        raise PageError("error.no_text")

    def write(folder: Path) -> Path:
        path = folder / "trace.npz"
        session.change(InsideState, trace_file=TraceFile.write(text, path))
        return path

    yield from offer(session, write)
