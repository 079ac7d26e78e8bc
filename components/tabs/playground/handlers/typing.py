"""Handlers that turn the text in the box into the document, while the visitor types and before generation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from components.api.arguments import checked_text
from components.concepts import kept_edits
from components.state.admission import admitted
from components.state.adoption import remark
from components.state.chat_text import chat_edit, message_of
from components.state.selection import NEWEST
from components.state.session import Session
from components.state.snapshot import Message
from components.state.text import Text
from components.state.typed_text import kept_tokens, rest_ids
from components.tabs.playground.state import PlaygroundState
from gpt import Generation, LoadedModel, get_model
from gpt.documents.document_cache import common_prefix_length
from gpt.tokenizer import hold_back, prompt_ids, start_ids


def type_text(session: Session, box: str) -> Iterator[None]:
    """Make the text in the box the document, and predict its next token.

    Newer text replaces text that is still waiting. Text that the model cannot read leaves the document unchanged,
    and the page explains why. For `box`, see `read_box`.
    """
    typed = read_box(session, box)
    if typed is None:
        return
    edited = session.edited
    loaded = get_model(session.model) if session.document is None else session.document.loaded
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.changing(), suppress(ValueError):  # the page shows the number of tokens or the unknown character
            if session.edited == edited and take_text(session, loaded, typed) and session.document is not None:
                session.document.read()


def read_box(session: Session, box: str) -> str | None:
    """Return the text in the box, or None if nothing has been typed since the last call.

    `box` is JSON with "text" and "edited", the time of the last key press in ms. It is unvalidated browser input.
    """
    try:
        sent = json.loads(box)
        text, edited = sent["text"], float(sent["edited"])
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(text, str) or not edited > session.edited:
        return None
    session.edited = edited
    return text


def take_text(session: Session, loaded: LoadedModel, typed: str) -> bool:
    """Make the typed text the document without running the model. Returns False if it exceeds the context.

    The caller must hold the lock. Text typed after generated tokens becomes a branch of their document; any other text
    is a prompt. Consecutive edits form one action for `undo`. Raises ValueError for characters outside the vocabulary,
    leaving the document unchanged.
    """
    document, before = session.document, session.typed
    shown = None if document is None else Text.of(document)
    goes_on = before is not None and before.is_current and before.at(shown) is not None
    session.chat = session.is_chat
    session.set_typed(typed, is_current=False)
    tokenizer = loaded.tokenizer
    checked_text("prompt", typed)
    if document is not None and document.loaded is not loaded:
        document = None
    if session.chat and tokenizer.is_chat and typed:
        return _take_chat(session, loaded, document, typed, goes_on=goes_on)
    text, held = hold_back(tokenizer, typed)
    if document is not None and not _is_prompt(document):
        keep, rest = kept_tokens(document, text)
        if keep > _n_typed(document) or (keep and not rest):
            document.retype(rest_ids(tokenizer, document.ids[:keep], rest), keep, held)
            session.redo_stack.clear()
            _take(session, typed)
            return True
    ids = prompt_ids(tokenizer, text)
    if len(ids) > loaded.model.config.block_size:
        session.change(PlaygroundState, too_long=len(ids))
        return False
    is_prompt = document is not None and _is_prompt(document)
    if not (goes_on and is_prompt):
        session.push_undo()
    keep = common_prefix_length(ids, document.ids) if document is not None and is_prompt else 0
    if not typed and (session.chat or not start_ids(tokenizer)):
        session.document = None
    elif document is not None and keep:
        document.retype(ids[keep:], keep, held)
    else:
        session.document = Generation(loaded, typed, edits=kept_edits(session, loaded))
    session.prompt, session.model = typed, loaded.name
    _take(session, typed)
    return True


def _take_chat(session: Session, loaded: LoadedModel, document: Generation | None, text: str, *, goes_on: bool) -> bool:
    """Like `take_text`, but for a chat; see `chat_edit`."""
    edit = chat_edit(loaded.tokenizer, document, text)
    if (n := edit.keep + len(edit.ids)) > loaded.model.config.block_size:
        session.change(PlaygroundState, too_long=n)
        return False
    if document is not None and edit.keep:
        if edit.ids or edit.keep < len(document.ids) or edit.held != document.held:
            document.retype(edit.ids, edit.keep, edit.held)
        session.redo_stack.clear()
    else:
        if not (goes_on and document is not None and _is_prompt(document)):
            session.push_undo()
        document = session.document = Generation(loaded, edit.ids, edits=kept_edits(session, loaded))
        session.model = loaded.name
    session.prompt = message_of(loaded.tokenizer, document.ids) or text
    _take(session, text, edit.n_after)
    return True


def _n_typed(document: Generation) -> int:
    """Return the number of tokens before the first one that was not typed."""
    n = len(document.ids)
    return next((i for i in range(n) if document.origin(i).kind != "typed"), n)


def _is_prompt(document: Generation) -> bool:
    """Return whether the document consists only of its prompt, without branches."""
    return len(document.tree) == len(document.prompt_ids) == len(document.ids)


def _take(session: Session, typed: str, n_after: int = 0) -> None:
    session.set_typed(typed, is_current=True, n_after=n_after)
    session.throughput = session.finish_reason = None
    session.last_action = Message("status.ready")
    session.selection = replace(session.selection, position=NEWEST)
    session.notice = None if session.document is None else remark(session)
    session.change(PlaygroundState, too_long=0)
