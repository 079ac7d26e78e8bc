"""Replacement of a session's document."""

from __future__ import annotations

from components.state.selection import NEWEST
from components.state.session import ArchivedDocument, Session
from components.state.snapshot import LastAction, Message
from gpt import Generation


def adopt(session: Session, document: Generation, prompt: str, action: LastAction) -> None:
    """Replace the document, archive the previous one and stop any running stream.

    prompt: the new text in the prompt box.
    """
    with session.changing():
        session.push_undo(session.unwritten)
        _adopt(session, document, prompt, action)


def return_to(
    session: Session, source: list[ArchivedDocument], other: list[ArchivedDocument], action: LastAction
) -> None:
    """Restore the newest document of `source` and archive the current one in `other`.

    Does nothing if `source` is empty.
    """
    with session.changing():
        if not source:  # another event has emptied it
            return
        back = source.pop()
        now = None if session.document is None else session.archived(session.document, session.unwritten)
        if now is not None and not (other is session.undo_stack and back.unwritten and back.file == now.file):
            other.append(now)
        _adopt(session, back.restored(), back.prompt, action)
        if back.unwritten is not None:
            session.set_typed(back.unwritten, is_current=False)


def _adopt(session: Session, document: Generation, prompt: str, action: LastAction) -> None:
    """Replace the document. The caller must hold the lock."""
    document.read()
    session.document, session.prompt = document, prompt
    session.set_typed(None)
    session.model, session.loaded, session.last_action = document.loaded.name, document.loaded, action
    session.throughput = session.finish_reason = None
    session.selection = session.selection.clamped_to(document.loaded.model.config, position=NEWEST)
    session.notice = remark(session)


def remark(session: Session) -> Message | None:
    """Return the notice for the current text, if there is one."""
    document = session.document
    if document is None:
        return None
    if document.evicted:
        return Message("tree.forgotten", {"n": f"{len(document.evicted):,}"})
    if document.loaded.name == "untrained":
        return Message("untrained.note")
    return None if session.prompt else Message("prompt.started_empty")
