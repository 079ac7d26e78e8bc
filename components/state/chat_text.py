"""The box's text in a chat: a message between the control tokens of the model's template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.state.typed_text import kept_tokens, rest_ids, shown_tokens
from gpt import Generation
from gpt.tokenizer import Vocabulary, hold_back


@dataclass(frozen=True)
class ChatEdit:
    """A typed text as tokens: the document's first `keep` tokens, then `ids`.

    n_after: number of characters that the template puts after a new message. held: white space typed at the end of an
    answer (see `gpt.tokenizer.hold_back`).
    """

    keep: int
    ids: list[int]
    n_after: int = 0
    held: str = ""


def chat_edit(tokenizer: Vocabulary, document: Generation | None, typed: str) -> ChatEdit:
    """Return the change that a typed text makes to a chat.

    Control tokens are kept where the text still contains their names; text typed between them is encoded as characters.
    New text, or text typed after the end of a turn, is a user message. The model's answer after a change is dropped.

    Raises:
        ValueError: If the template fails.
    """
    ids, special = ([] if document is None else document.ids), tokenizer.special_ids
    shown = shown_tokens(tokenizer, ids)
    keep, start = _control_tokens_before(shown, ids, special, typed)
    last, end = _control_tokens_after(shown, ids, special, typed, keep, start)
    middle = typed[start:end]
    if document is None or (keep == 0 and last == len(ids)):
        return _message(tokenizer, 0, typed, first=True)
    if last == len(ids) and ids[keep - 1] in tokenizer.eot_ids and middle.strip():
        return _message(tokenizer, keep, middle, first=False)
    given = range(last, next((i for i in range(last, len(ids)) if document.origin(i).kind != "typed"), len(ids)))
    if given:
        return ChatEdit(keep, tokenizer.encode_continuation(middle) + ids[given.start : given.stop])
    text, held = hold_back(tokenizer, typed[:end])
    keep, rest = kept_tokens(document, text)
    return ChatEdit(keep, rest_ids(tokenizer, ids[:keep], rest) if rest else [], held=held)


def message_of(tokenizer: Vocabulary, ids: Sequence[int]) -> str | None:
    """Return the user's first message in a chat, or None if it is not where the template puts it."""
    before, after = tokenizer.chat_frame()
    text = "".join(shown_tokens(tokenizer, ids))
    end = text.find(after, len(before))
    return text[len(before) : end] if text.startswith(before) and end >= 0 else None


def _message(tokenizer: Vocabulary, keep: int, text: str, *, first: bool) -> ChatEdit:
    ids = tokenizer.encode_message(text, first=first)
    end = next((i for i, token_id in enumerate(ids) if token_id in tokenizer.eot_ids), len(ids))
    if not first and not tokenizer.decode(ids[:end]).strip():  # the previous turn has ended; Llama 2 adds a space
        ids = ids[end + 1 :]
    return ChatEdit(keep, ids, len(tokenizer.chat_frame(first=first)[1]))


def _control_tokens_before(
    shown: Sequence[str], ids: Sequence[int], special: frozenset[int], typed: str
) -> tuple[int, int]:
    """Count the unchanged leading tokens and characters, up to and including the last unchanged control token."""
    found, end = (0, 0), 0
    for i, text in enumerate(shown):
        if not typed.startswith(text, end):
            break
        end += len(text)
        if ids[i] in special:
            found = i + 1, end
    return found


def _control_tokens_after(
    shown: Sequence[str], ids: Sequence[int], special: frozenset[int], typed: str, keep: int, start: int
) -> tuple[int, int]:
    """Return the position at which the unchanged control tokens at the end begin, as token and character indices.

    The search skips the first `keep` tokens and `start` characters. If it finds nothing, both indices are the full
    length.
    """
    found, at = (len(ids), len(typed)), len(typed)
    for i in range(len(ids) - 1, keep - 1, -1):
        if at - len(shown[i]) < start or not typed.endswith(shown[i], start, at):
            break
        at -= len(shown[i])
        if ids[i] in special:
            found = i, at
    return found
