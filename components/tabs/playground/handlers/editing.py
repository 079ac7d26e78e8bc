"""Edits to the text: choose or type a token, undo, redo, go back, switch branches, search the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from components.api.arguments import checked_text
from components.labels import Later, quoted, shortened
from components.state.adoption import remark, return_to
from components.state.selection import NEWEST
from components.state.session import Session
from components.state.snapshot import LastAction, Message
from components.state.text import Text
from components.tabs.playground.handlers.typing import take_typed
from components.tabs.playground.state import PlaygroundState
from gpt import Generation

MAX_SHOWN_CHARS = 24  # limit for typed text shown in the status
MAX_QUERY_CHARS = 200
MAX_TYPED_CHARS = 2000


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Insert the clicked token or text after the token for which it was offered."""

    def change(document: Generation) -> LastAction | None:
        after = _position(document, sent)
        if after is None:
            return None
        token, text = sent.get("token"), sent.get("text")
        if type(token) is int:
            document.check_room(1, after)
            document.append(token, after=after)
            return Message("status.chosen", {"token": Later(quoted, document.loaded.tokenizer, token)})
        return _type(session, document, text, after) if isinstance(text, str) else None

    _change(session, change)
    session.query = ""


def type_text(session: Session, text: str) -> None:
    """Insert the typed text after the selected token."""

    def change(document: Generation) -> LastAction | None:
        return _type(session, document, text, Text.of(document).framed(session.selection)) if text else None

    _change(session, change)
    session.query = ""


def retrace(session: Session, box: str, sent: dict[str, Any]) -> None:
    """Undo or, if `sent["redo"]` is true, redo. What has just been typed is the last action; see `typing.read_box`."""
    take_typed(session, box)
    (redo if sent.get("redo") is True else undo)(session)


def undo(session: Session) -> None:
    """Undo the last action.

    This removes a typed text that did not become the document, undoes an action in the document or, if there is none,
    restores the previous document.
    """
    if session.document is not None and (unwritten := session.unwritten) is not None:
        with session.changing():
            session.redo_stack.append(session.archived(session.document, unwritten))
            session.set_typed(None)
            _finish(session, Message("status.undone"))
        return
    if session.undo_stack and not (session.document is not None and session.document.can_undo):
        return_to(session, session.undo_stack, session.redo_stack, Message("status.undone"))
        return

    def change(document: Generation) -> LastAction | None:
        if not document.can_undo:
            return None
        document.undo()
        return Message("status.undone")

    _change(session, change, new=False)


def redo(session: Session) -> None:
    """Redo the last undone action."""
    if session.redo_stack and not (session.document is not None and session.document.can_redo):
        return_to(session, session.redo_stack, session.undo_stack, Message("status.redone"))
        return

    def change(document: Generation) -> LastAction | None:
        if not document.can_redo:
            return None
        document.redo()
        return Message("status.redone")

    _change(session, change, new=False)


def go_back(session: Session) -> None:
    """Delete the text after the selected token."""

    def change(document: Generation) -> LastAction | None:
        position = Text.of(document).framed(session.selection)
        if position == len(document.ids) - 1:
            return None
        document.go_back(position)
        return Message("status.back", {"token": Later(quoted, document.loaded.tokenizer, document.ids[-1])})

    _change(session, change)


def switch_branch(session: Session, sent: dict[str, Any]) -> None:
    """Switch to the clicked branch."""

    def change(document: Generation) -> LastAction | None:
        node = sent.get("node")
        if type(node) is not int or sent.get("document") != str(document.key) or node == document.path[-1]:
            return None
        document.switch(node)
        return Message("status.switched")

    _change(session, change)


def search(session: Session, text: str) -> None:
    """Search the vocabulary for the typed text."""
    session.query = str(text or "")[:MAX_QUERY_CHARS]


def _change(session: Session, change: Callable[[Generation], LastAction | None], *, new: bool = True) -> None:
    """Stop generation, change the document, and read its new tokens.

    `change` returns the action, or None if it is no longer possible; its ValueErrors are propagated. `new` tells
    whether the action is a new one, which clears what can be redone. While the box contains a text that has not become
    the document, the page is stale, and there are no new actions.
    """
    with session.changing():
        document = session.document
        if document is None or (new and session.unwritten is not None):
            return
        action = change(document)
        document.read()
        if action is not None and new:
            session.redo_stack.clear()
        _finish(session, action)


def _finish(session: Session, action: LastAction | None) -> None:
    """Show the action, if there was one, and the newest token. The caller must hold the lock."""
    if action is not None:
        session.last_action, session.throughput, session.finish_reason = action, None, None
        session.selection = replace(session.selection, position=NEWEST)
    session.notice = remark(session)
    session.change(PlaygroundState, too_long=0)


def _position(document: Generation, sent: dict[str, Any]) -> int | None:
    """Return the position that `sent` refers to, as drawn by `place_after`, or None if the text is another one now.

    Only the model may have added tokens since.
    """
    node, last = sent.get("behind"), sent.get("last")
    if sent.get("document") != str(document.key) or node not in document.path or last not in document.path:
        return None
    since = range(document.path.index(last) + 1, len(document.path))
    if any(document.origin(position).kind != "sampled" for position in since):
        return None
    return document.path.index(node)


def _type(session: Session, document: Generation, text: str, after: int) -> LastAction:
    document.append_text(checked_text("text", text), after=after, special=session.special)
    return Message("status.typed", {"text": shortened(text, MAX_SHOWN_CHARS)})
