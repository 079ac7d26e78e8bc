"""Changing the text by hand: choose a token, type, undo, go back, switch branches, search the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from components.api import checked_text
from components.labels import quoted, visible
from components.state.adoption import remark, return_to
from components.state.selection import NEWEST
from components.state.session import Session
from components.state.snapshot import LastAction, Message
from components.state.text import Text
from components.tabs.playground.components import PlaygroundState
from gpt import Generation
from gpt.errors import GPTError

MAX_SHOWN_CHARS = 24  # of what was typed, where the status names it
MAX_QUERY_CHARS = 200


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Put what was clicked, a token or a text, behind the token that it was shown for."""

    def change(document: Generation) -> LastAction | None:
        after = _position(document, sent)
        if after is None:
            return None
        token, text = sent.get("token"), sent.get("text")
        if type(token) is int:
            _check_room(document, after, 1)
            document.append(token, after=after)
            return Message("status.chosen", {"token": quoted(document.loaded.tokenizer, token)})
        return _type(document, text, after) if isinstance(text, str) else None

    _change(session, change)
    session.query = ""


def type_text(session: Session, text: str) -> None:
    """Put what stands in the box behind the selected token."""

    def change(document: Generation) -> LastAction | None:
        return _type(document, text, Text.of(document).framed(session.selection)) if text else None

    _change(session, change)
    session.query = ""


def undo(session: Session) -> None:
    """Take the last action back; where this text has none left, go back to the one before."""
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
    """Do again what was undone last."""
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
    """Let the text end at the selected token."""

    def change(document: Generation) -> LastAction | None:
        position = Text.of(document).framed(session.selection)
        if position == len(document.ids) - 1:
            return None
        document.go_back(position)
        return Message("status.back", {"token": quoted(document.loaded.tokenizer, document.ids[-1])})

    _change(session, change)


def switch_branch(session: Session, sent: dict[str, Any]) -> None:
    """Let the branch that was clicked be the text."""

    def change(document: Generation) -> LastAction | None:
        node = sent.get("node")
        if type(node) is not int or sent.get("document") != str(document.key) or node == document.path[-1]:
            return None
        document.switch(node)
        return Message("status.switched")

    _change(session, change)


def search(session: Session, text: str) -> None:
    """While one types into the box: what that could be."""
    session.query = text[:MAX_QUERY_CHARS]


def _change(session: Session, change: Callable[[Generation], LastAction | None], *, new: bool = True) -> None:
    """Stop what is being written, change the document, and read what is new.

    change: returns what it did; None where what was asked for makes no sense any more. new: whether it leads away from
    what was undone. Raises the ValueError of `change`.
    """
    with session.changing():
        document = session.document
        if document is None:
            return
        action = change(document)
        document.read()
        if action is not None:
            if new:
                session.redo_stack.clear()
            session.last_action, session.throughput, session.finish_reason = action, None, None
            session.selection = replace(session.selection, position=NEWEST)
        session.notice = remark(session)
        session.change(PlaygroundState, too_long=0)


def _position(document: Generation, sent: dict[str, Any]) -> int | None:
    """The position that something was shown for; None where it is not in the text any more."""
    node = sent.get("behind")
    if type(node) is not int or sent.get("document") != str(document.key) or node not in document.path:
        return None
    return document.path.index(node)


def _type(document: Generation, text: str, after: int) -> LastAction:
    ids = document.loaded.tokenizer.encode(checked_text("text", text))
    _check_room(document, after, len(ids))
    document.append_text(ids, after=after)
    shown = text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"
    return Message("status.typed", {"text": visible(shown)})


def _check_room(document: Generation, after: int, count: int) -> None:
    room, limit = document.block_size - after, document.block_size
    if room < 1:
        raise GPTError("context.full", limit=limit)
    if count > room:
        raise GPTError("context.no_room", n=count, limit=limit, room=room)
