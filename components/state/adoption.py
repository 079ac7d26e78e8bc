"""Another document in the place of the one that a visitor has open."""

from __future__ import annotations

from components.state.selection import NEWEST
from components.state.session import ArchivedDocument, Session
from components.state.snapshot import LastAction, Message
from gpt import Generation


def adopt(session: Session, document: Generation, prompt: str, action: LastAction) -> None:
    """Let another document be the visitor's; whatever is being written stops. prompt: what the box is to say."""
    with session.changing():
        session.push_undo()
        _adopt(session, document, prompt, action)


def return_to(
    session: Session, source: list[ArchivedDocument], other: list[ArchivedDocument], action: LastAction
) -> None:
    """Let the newest of `source` be the document again; what it takes the place of is archived in `other`."""
    with session.changing():
        if not source:  # another event was quicker
            return
        back = source.pop()
        document = Generation.from_json(back.file)
        document.history = back.history
        if session.document is not None:
            other.append(session.archived_document())
        _adopt(session, document, back.prompt, action)


def _adopt(session: Session, document: Generation, prompt: str, action: LastAction) -> None:
    """Another document, for whoever holds the lock."""
    document.read()
    session.document, session.prompt, session.typed = document, prompt, prompt
    session.model, session.last_action = document.loaded.name, action
    session.throughput = session.finish_reason = None
    session.selection = session.selection.fitting(document.loaded.model.config, position=NEWEST)
    session.notice = remark(session)


def remark(session: Session) -> Message | None:
    """What a person should know of this text, if anything."""
    document = session.document
    if document is None:
        return None
    if document.evicted:
        return Message("tree.forgotten", {"n": f"{len(document.evicted):,}"})
    if document.loaded.name == "untrained":
        return Message("untrained.note")
    return None if session.prompt else Message("prompt.started_empty")
