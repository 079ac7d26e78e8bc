"""Handlers that switch between plain text and chat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from components.api.arguments import checked_text
from components.state.admission import admitted
from components.state.adoption import remark
from components.state.chat_text import message_of
from components.state.selection import NEWEST
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.playground.state import PlaygroundState
from gpt import Generation, LoadedModel, get_model


def switch_chat(session: Session, on: object) -> Iterator[None]:
    """Turn the prompt into a chat message, or back into a prompt, and predict the next token."""
    loaded = get_model(session.model) if session.document is None else session.document.loaded
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.changing():
            text = checked_text("prompt", plain_prompt(session))
            chat = bool(on) and loaded.tokenizer.is_chat
            if chat == session.is_chat:
                return
            session.notice = None
            if text:
                document = new_document(loaded, text, chat=chat)
                session.push_undo()
                session.document, session.prompt = document, text
                session.set_typed(None)
                document.read()
            elif chat:  # a chat does not begin with the start-of-text token
                session.document, session.prompt = None, ""
                session.set_typed(None)
            session.chat = chat
            session.throughput = session.finish_reason = None
            session.last_action = Message("status.ready")
            session.selection = replace(session.selection, position=NEWEST)
            session.notice = None if session.document is None else remark(session)
            session.change(PlaygroundState, too_long=0)


def plain_prompt(session: Session) -> str:
    """Return the text in the box or, in a chat, the first message."""
    document = session.document
    if document is not None and session.is_chat:
        message = message_of(document.tokenizer, document.ids)
        return session.prompt if message is None else message
    return session.next_prompt


def new_document(loaded: LoadedModel, text: str, *, chat: bool) -> Generation:
    """Create a document from a prompt, or a chat from its first message. Raises the same errors as `Generation`."""
    return Generation(loaded, loaded.tokenizer.encode_message(text) if chat and text else text)
