"""Loading a model with progress messages, and replacing a session's document."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress

from components.state.session import ArchivedDocument, Session
from components.state.snapshot import Message
from components.state.text import NEWEST
from gpt import Generation, LoadedModel, get_model
from gpt.background import Cancelled, Progress, run_with_progress


def adopt(session: Session, document: Generation, prompt: str, action: Message) -> None:
    """Replace the document and its prompt, archive the previous one and stop any running stream."""
    with session.lock.changing():
        session.push_undo(session.unwritten)
        _adopt(session, document, prompt, action)


def return_to(session: Session, source: list[ArchivedDocument], other: list[ArchivedDocument], action: Message) -> None:
    """Restore the newest document of `source`, if any, and archive this one in `other`. The caller holds the lock."""
    if not source:
        return
    back = source.pop()
    now = None if session.document is None else session.archived(session.document, session.unwritten)
    if now is not None and not (other is session.undo_stack and back.unwritten and back.file == now.file):
        other.append(now)
    _adopt(session, back.restored(), back.prompt, action)
    if back.unwritten is not None:
        session.set_typed(back.unwritten, is_current=False)


def _adopt(session: Session, document: Generation, prompt: str, action: Message) -> None:
    """Replace the document. The caller must hold the lock."""
    document.read()
    session.document, session.prompt, session.loaded = document, prompt, document.loaded
    session.set_typed(None)
    settle(session, action)


def settle(session: Session, action: Message) -> None:
    """Show an action that has changed the text, and the newest token. The caller must hold the lock."""
    document = session.document
    session.last_action, session.notice = action, remark(session)
    session.throughput = session.finish_reason = None
    session.too_long = 0
    if document is not None:
        session.model = document.loaded.name
        session.selection = session.selection.clamped_to(document.loaded.model.config, position=NEWEST)


def remark(session: Session) -> Message | None:
    document = session.document
    if document is None:
        return None
    if document.loaded.name == "untrained":
        return Message("untrained.note")
    return None if session.prompt else Message("prompt.started_empty")


def load_with_progress(session: Session, name: str, strength: float = 1.0) -> Generator[None, None, LoadedModel]:
    """Return a model, see `get_model`; yields while it loads, with its progress in `session.progress`.

    It loads in its own thread, which continues if a waiting caller is cancelled.
    """

    def load(progress: Progress) -> LoadedModel:
        def report(done: int, total: int) -> None:
            with suppress(Cancelled):
                progress(done, total)

        return get_model(name, report, strength=strength)

    def show(done: int, total: int) -> None:
        key = "status.downloading" if total else "status.loading"
        session.progress = Message(key, {"done": f"{done / 1e6:.0f}", "total": f"{total / 1e6:.0f}"})

    try:
        loaded = yield from run_with_progress(load, show)
    finally:
        session.progress = None
    if loaded.name == session.model:
        session.loaded = loaded
    return loaded
