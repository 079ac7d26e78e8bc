"""The text in the box: what is typed becomes the document, as plain text or as a chat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from components.api.arguments import checked_text
from components.concepts import kept_edits
from components.parts import Lines
from components.state.admission import admitted
from components.state.adoption import remark
from components.state.hidden import CLICKS, hide
from components.state.session import Session
from components.state.snapshot import LastAction, Message
from components.state.text import NEWEST, Text
from components.state.typed_text import kept_tokens, offered_text, rest_ids, shown_text, shown_tokens, words_of
from components.tabs.playground.prediction import arcs, effects, stages_of, tab
from components.widgets.composer import EMPTY, box_line
from gpt import Generation, LoadedModel, get_model
from gpt.documents.document import History, common_prefix_length
from gpt.models.checkpoints.vocabularies import Characters
from gpt.tokenizer import Vocabulary, hold_back, prompt_ids, start_ids

READY = Message("status.ready")
MAX_RUNS = 20  # runs of edits that the browser keeps for the server


@tab.state
class Box:
    """too_long: number of tokens in an overlong prompt, else 0."""

    too_long: int = 0


class Typed(NamedTuple):
    """A text from the box.

    edited: time of the last key press; run: time of the first of the edits that a single undo takes back. Both are in
    ms on the browser's clock.
    """

    text: str
    edited: float
    run: float


def type_text(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Make the text in the box the document, and predict its next token.

    Newer text replaces text that is still waiting. Text that the model cannot read leaves the document unchanged,
    and the page explains why. For `sent`, see `read_box`.
    """
    typed = read_box(session, sent)
    if not typed:
        return
    loaded = get_model(session.model) if session.document is None else session.document.loaded
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.changing(), suppress(ValueError):  # the page shows the number of tokens or the unknown character
            if session.answered < session.edited == typed[-1].edited:
                take_all(session, loaded, typed)
                if session.document is not None:
                    session.document.read()


def take_typed(session: Session, sent: dict[str, Any]) -> None:
    """Make the text in the box the document without running the model, before an action that changes the text.

    Text that the model cannot read leaves the document unchanged. For `sent`, see `read_box`.
    """
    if not (typed := read_box(session, sent)):
        return
    loaded = get_model(session.model) if session.document is None else session.document.loaded
    with session.changing(), suppress(ValueError):
        take_all(session, loaded, typed)


def read_box(session: Session, sent: dict[str, Any]) -> list[Typed]:
    """Return the texts in the box that have not been taken yet: the last of each run of edits, oldest first.

    sent: unchecked, with "text", "edited", "run" and "before": the fields of `Typed`, and earlier texts as lists of
    them.
    """
    try:
        before = list(sent.get("before", ()))[-MAX_RUNS:]
        texts = [*before, (sent["text"], sent["edited"], sent.get("run", 0))]
        typed = [Typed(text, float(edited), float(run)) for text, edited, run in texts if isinstance(text, str)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    typed = [each for each in typed if each.edited > session.answered]
    if not typed or typed[-1].edited < session.edited:
        return []
    session.edited = typed[-1].edited
    return typed


def take_all(session: Session, loaded: LoadedModel, typed: Sequence[Typed]) -> bool:
    """Take each text in turn, see `take_text`. Returns whether the newest fits into the context."""
    for text, _, run in typed[:-1]:
        with suppress(ValueError):
            take_text(session, loaded, text, run)
    return take_text(session, loaded, typed[-1].text, typed[-1].run)


def take_text(session: Session, loaded: LoadedModel, typed: str, run: float = 0) -> bool:
    """Make the typed text the document without running the model. Returns False if it exceeds the context.

    The caller must hold the lock. Text typed after generated tokens becomes a branch of their document; any other text
    is a prompt. Consecutive edits of the same run form one action for `undo`; if they restore the text before them,
    there is no action. Raises ValueError for characters outside the vocabulary, leaving the document unchanged.
    """
    document, before, replaced = session.document, session.typed, session.unwritten
    shown = None if document is None else Text.of(document)
    is_new_run = before is None or before.at(shown) is None or before.run != run
    goes_on = before is not None and before.can_undo and not is_new_run
    special = session.special
    names = special and bool(session.prompt)
    if document is not None and document.loaded is not loaded:
        document = None
    if document is None or replaced is not None or typed != shown_text(document, names=names):
        _clear_redo(session)
    replaced = replaced if is_new_run else None
    session.chat = session.is_chat
    session.set_typed(typed, is_current=False, run=run, can_undo=goes_on)
    tokenizer = loaded.tokenizer
    checked_text("prompt", typed)
    if document is not None and typed == shown_text(document, names=names):
        if replaced is not None:
            _archive(session, document, replaced)
        _take(session, typed, run, can_undo=goes_on or replaced is not None)
        return True
    is_prompt = document is not None and _is_prompt(document)
    back = session.undo_stack[-1] if session.undo_stack and goes_on and is_prompt else None
    if back is not None and (back.text, back.model) == (typed, loaded.name):
        session.undo_stack.pop()
        session.document, session.prompt = back.restored(), back.prompt
        _take(session, typed, run, can_undo=False)
        return True
    if session.chat and tokenizer.is_chat and typed:
        return _take_chat(session, loaded, document, typed, run, goes_on=goes_on)
    text, held = hold_back(tokenizer, typed)
    if document is not None and not is_prompt:
        keep, rest = kept_tokens(document, text, special=special, names=names)
        if keep > _n_typed(document) or (keep and not rest):
            if replaced is not None:
                _archive(session, document, replaced)
            new = rest_ids(tokenizer, document.ids[:keep], rest, special=special)
            document.retype(new, keep, held, joined=goes_on)
            _take(session, typed, run, can_undo=True)
            return True
    ids = prompt_ids(tokenizer, text, special=special)
    if len(ids) > loaded.model.config.block_size:
        session.change(Box, too_long=len(ids))
        return False
    if not (goes_on and is_prompt):
        session.push_undo(replaced)
    keep = common_prefix_length(ids, document.ids) if document is not None and is_prompt else 0
    if not typed and (session.chat or not start_ids(tokenizer)):
        session.document = None
    elif document is not None and keep:
        document.retype(ids[keep:], keep, held)
    else:
        session.document = Generation(loaded, typed, edits=kept_edits(session, loaded), special=special)
    session.prompt, session.model = typed, loaded.name
    _take(session, typed, run, can_undo=True)
    return True


def _take_chat(
    session: Session, loaded: LoadedModel, document: Generation | None, text: str, run: float, *, goes_on: bool
) -> bool:
    """Like `take_text`, but for a chat; see `chat_edit`."""
    edit = chat_edit(loaded.tokenizer, document, text)
    if (n := edit.keep + len(edit.ids)) > loaded.model.config.block_size:
        session.change(Box, too_long=n)
        return False
    is_prompt = document is not None and _is_prompt(document)
    if (is_prompt or not edit.keep) and not (goes_on and is_prompt):
        session.push_undo()
    if document is not None and edit.keep:
        document.retype(edit.ids, edit.keep, edit.held, joined=goes_on)
    else:
        document = session.document = Generation(loaded, edit.ids, edits=kept_edits(session, loaded))
        session.model = loaded.name
    session.prompt = message_of(loaded.tokenizer, document.ids) or text
    _take(session, text, run, can_undo=True, n_after=edit.n_after)
    return True


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
            settle(session)


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


def _clear_redo(session: Session) -> None:
    session.redo_stack.clear()
    if session.document is not None:
        session.document.history.clear_redo()


def _archive(session: Session, document: Generation, replaced: str) -> None:
    """Archive the document with a text that is being replaced in the box. Its earlier actions are undone after that."""
    session.push_undo(replaced)
    document.history = History(document.path[-1])


def _n_typed(document: Generation) -> int:
    """Return the number of tokens before the first one that was not typed."""
    n = len(document.ids)
    return next((i for i in range(n) if document.origin(i).kind != "typed"), n)


def _is_prompt(document: Generation) -> bool:
    """Return whether the document consists only of its prompt, without branches."""
    return len(document.tree) == len(document.prompt_ids) == len(document.ids)


def _take(session: Session, typed: str, run: float, *, can_undo: bool, n_after: int = 0) -> None:
    session.set_typed(typed, is_current=True, n_after=n_after, run=run, can_undo=can_undo)
    settle(session)


def settle(session: Session, action: LastAction = READY) -> None:
    """Show an action that has changed the text, and the newest token. The caller must hold the lock."""
    session.throughput = session.finish_reason = None
    session.last_action, session.notice = action, remark(session)
    session.selection = replace(session.selection, position=NEWEST)
    session.change(Box, too_long=0)


# The picture


def box(s: Any) -> dict[str, Any]:
    lines, data = Lines(), EMPTY | {"chat": s.chat, "unwritten": s.unwritten, "generating": s.generating}
    data |= {"lines": lines, "edited": s.answered, "n": s.handled.get(CLICKS, 0)}
    if s.text is None or s.written is None:
        return data
    document, statistics = s.written.document, s.token_statistics.of(s.written.document)
    tokenizer, ids = s.written.tokenizer, s.written.ids
    shown, special = shown_tokens(tokenizer, ids, names=s.special and bool(s.prompt)), tokenizer.special_ids
    pieces = as_typed(shown, s)
    for position, (token_id, piece) in enumerate(zip(ids, pieces, strict=True)):
        measured = statistics[position] if document.origin(position).kind == "sampled" else None
        lines.append(box_line(piece, None if measured is None else measured.probability, control=token_id in special))
    typed = s.typed and s.typed.at(s.written)
    stages = s.cached(stages_of)
    is_last = s.position == len(s.text.ids) - 1
    best_id = None if stages is None or not is_last else int(stages.final.argmax())
    return data | {
        "words": [word.start for word in words_of(tokenizer, ids)],
        "hidden": sorted(s.hidden),
        "selected": s.written.framed(s.selection),
        "ghost": "" if best_id is None else offered_text(tokenizer, s.text.ids, best_id, document.held),
        "arcs": [[position, round(weight, 4)] for position, weight in s.cached(arcs)],
        "effects": [[position, round(p, 6), round(q, 6)] for position, p, q in s.cached(effects)],
        "coming": s.settings.length if s.generating else 0,
        "held": document.held,
        "typed": typed.text if typed is not None and typed.text != "".join(pieces) + document.held else None,
        "n_after": 0 if typed is None else typed.n_after,
    }


def as_typed(pieces: list[str], s: Any) -> list[str]:
    """Return the pieces of the text, restoring characters of the prompt that the model reads as <unk>."""
    tokenizer = s.written.tokenizer
    if not isinstance(tokenizer, Characters):
        return pieces
    unknown = [i for i, token in enumerate(s.written.ids[: len(s.prompt)]) if token == tokenizer.unknown_id]
    return [s.prompt[i] if i in unknown else piece for i, piece in enumerate(pieces)] if unknown else pieces


def hide_words(session: Session, sent: dict[str, Any]) -> None:
    """Hide exactly these words, unless a later click has been handled or the text has been edited since.

    `sent` is an unvalidated payload from `components.widgets.composer`. "hidden" is a list with the position of any
    token in each word.
    """
    given, n = sent.get("hidden"), sent.get("n", 0)
    with session.lock.reading():  # two clicks may arrive at the same time, in any order
        s = session.snapshot()
        is_old = type(n) is int and n > 0 and not session.is_new(*CLICKS, n)
        is_edited = sent.get("edited", session.edited) != session.edited
        if s.written is None or not isinstance(given, list) or is_old or is_edited:
            return
        wanted = {each for each in given if type(each) is int}
        words = [word for word in words_of(s.written.tokenizer, s.written.ids) if wanted & {*word}]
        hide(session, [position for word in words for position in word])


def select(session: Session, sent: dict[str, Any]) -> None:
    """Select the token clicked in the box, which also shows hidden words."""
    position, document = sent.get("index"), session.document
    if document is not None and type(position) is int and 0 <= position < len(document.ids):
        session.selection = replace(session.selection, position=position)


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
