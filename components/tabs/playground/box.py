"""The text in the box: what is typed becomes the document, as plain text or as a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from components.api.arguments import checked_text
from components.concepts import kept_edits
from components.parts import Lines
from components.state.admission import admitted
from components.state.adoption import settle
from components.state.hidden import CLICKS, hide
from components.state.session import Session
from components.state.snapshot import Message
from components.state.typed_text import kept_tokens, offered_text, rest_ids, shown_text, shown_tokens, words_of
from components.tabs.playground.prediction import arcs, effects, stages_of
from components.widgets.composer import EMPTY, box_line
from gpt import Generation, LoadedModel, get_model
from gpt.documents.document import History, common_prefix_length
from gpt.models.checkpoints.vocabularies import Characters
from gpt.tokenizer import Vocabulary, hold_back, prompt_ids, start_ids

READY = Message("status.ready")
MAX_RUNS = 20  # runs of edits that the browser keeps for the server


class Typed(NamedTuple):
    """A text from the box, and two times in ms on the browser's clock."""

    text: str
    edited: float  # the last key press
    run: float  # the first of the edits that a single undo takes back


def model_of(session: Session) -> LoadedModel:
    return get_model(session.model) if session.document is None else session.document.loaded


def changed(session: Session, change: Callable[[LoadedModel], object]) -> Iterator[None]:
    """Wait for the model, change the text, and let the model read it."""
    loaded = model_of(session)
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.lock.changing():
            change(loaded)
            if session.document is not None:
                session.document.read()


def type_text(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Make the text in the box the document, and predict its next token. Newer text replaces text that waits."""

    def take(loaded: LoadedModel) -> None:
        if session.answered < session.edited == typed[-1].edited:
            take_all(session, loaded, typed)

    if typed := read_box(session, sent):
        yield from changed(session, take)


def take_typed(session: Session, sent: dict[str, Any]) -> None:
    """Make the text in the box the document without running the model, before an action that changes the text."""
    if typed := read_box(session, sent):
        loaded = model_of(session)
        with session.lock.changing():
            take_all(session, loaded, typed)


def read_box(session: Session, sent: dict[str, Any]) -> list[Typed]:
    """Return the texts in the box that have not been taken yet: the last of each run of edits, oldest first.

    sent: unchecked; the fields of `Typed`, and "before", earlier texts as lists of them.
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


def take_all(session: Session, loaded: LoadedModel, typed: Sequence[Typed]) -> None:
    """Take each text in turn, see `take_text`. Text that the model cannot read leaves the document unchanged."""
    for text, _, run in typed:
        with suppress(ValueError):  # the page shows the number of tokens or the unknown character
            take_text(session, loaded, text, run)


class Edit(NamedTuple):
    """A typed text as tokens: the document's first `keep` tokens, then `ids`."""

    keep: int
    ids: list[int]
    held: str = ""  # white space at its end (see `gpt.tokenizer.hold_back`)
    n_after: int = 0  # number of characters that a chat's template puts after a new message


def take_text(
    session: Session,
    loaded: LoadedModel,
    typed: str,
    run: float | None = None,
    *,
    fresh: bool = False,
    chat: bool | None = None,
) -> bool:
    """Make the text the document without running the model. Returns False if it exceeds the context.

    The caller must hold the lock. Text typed after generated tokens becomes a branch of their document; any other text
    is a prompt. Consecutive edits of the same run form one action for `undo`; if they restore the text before them,
    there is no action. Raises ValueError for characters outside the vocabulary, leaving the document unchanged.

    run: see `Typed`; None if the text was not typed. fresh: whether to begin a new document in any case. chat: whether
    a prompt is a chat message; defaults to what the present one is.
    """
    document, before, replaced, special = session.document, session.typed, session.unwritten, session.special
    is_new_run = run is None or before is None or before.run != run
    goes_on = before is not None and before.can_undo and not is_new_run
    if document is not None and (fresh or document.loaded is not loaded):
        document = None
    names = special and bool(session.prompt)
    shown = None if document is None else shown_text(document, names=names)
    if replaced is not None or typed != shown:
        session.redo_stack.clear()
        if session.document is not None:
            session.document.history.future.clear()
    if not is_new_run or replaced == typed:
        replaced = None
    session.chat = loaded.tokenizer.is_chat and (session.is_chat if chat is None else chat)
    session.set_typed(typed, is_current=False, run=run, can_undo=goes_on)
    checked_text("prompt", typed)
    if document is not None and typed == shown:
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
    tokenizer, is_message = loaded.tokenizer, session.chat and bool(typed)
    if is_message:
        edit = chat_edit(tokenizer, document, typed)
    else:
        edit = plain_edit(tokenizer, document, typed, special=special, names=names)
    is_branch, n = edit.keep > 0 and not is_prompt, edit.keep + len(edit.ids)
    if n > loaded.model.config.block_size + (1 if is_branch else 0):  # the last token of a full text is never read
        session.too_long = n
        return False
    if document is not None and is_branch:
        if replaced is not None:
            _archive(session, document, replaced)
    elif not (goes_on and is_prompt):
        session.push_undo(replaced)
    if not typed and (session.chat or not start_ids(tokenizer)):
        document = None
    elif document is not None and edit.keep:
        document.retype(edit.ids, edit.keep, edit.held, joined=goes_on)
    else:
        document = Generation(loaded, edit.ids, edits=kept_edits(session, loaded), held=edit.held)
    session.document, session.model = document, loaded.name
    if document is not None and is_message:
        session.prompt = message_of(tokenizer, document.ids) or typed
    elif not is_branch:
        session.prompt = typed
    _take(session, typed, run, can_undo=True, n_after=edit.n_after)
    return True


def plain_edit(tokenizer: Vocabulary, document: Generation | None, typed: str, *, special: bool, names: bool) -> Edit:
    """Return the change that a typed text makes to a text. special, names: see `kept_tokens`."""
    text, held = hold_back(tokenizer, typed)
    if document is not None and not _is_prompt(document):
        keep, rest = kept_tokens(document, text, special=special, names=names)
        n = len(document.ids)
        n_typed = next((i for i in range(n) if document.origin(i).kind != "typed"), n)
        if keep > n_typed or (keep and not rest):
            return Edit(keep, rest_ids(tokenizer, document.ids[:keep], rest, special=special), held)
        document = None
    ids = prompt_ids(tokenizer, text, special=special)
    keep = 0 if document is None else common_prefix_length(ids, document.ids)
    return Edit(keep, ids[keep:], held)


def switch_chat(session: Session, on: object) -> Iterator[None]:
    """Turn the prompt into a chat message, or back into a prompt, and predict the next token."""

    def switch(loaded: LoadedModel) -> None:
        document, chat = session.document, bool(on) and loaded.tokenizer.is_chat
        if chat == session.is_chat:
            return
        message = None if chat or document is None else message_of(loaded.tokenizer, document.ids)
        take_text(session, loaded, session.next_prompt if message is None else message, fresh=True, chat=chat)

    yield from changed(session, switch)


def _archive(session: Session, document: Generation, replaced: str) -> None:
    """Archive the document with a text that is being replaced in the box. Its earlier actions are undone after that."""
    session.push_undo(replaced)
    document.history = History()


def _is_prompt(document: Generation) -> bool:
    """Return whether the document consists only of its prompt, without branches."""
    return len(document.tree) == len(document.prompt_ids) == len(document.ids)


def _take(session: Session, typed: str, run: float | None, *, can_undo: bool, n_after: int = 0) -> None:
    session.set_typed(typed, is_current=True, n_after=n_after, run=run, can_undo=can_undo)
    settle(session, READY)


def box(s: Any) -> dict[str, Any]:
    lines, data = Lines(), EMPTY | {"chat": s.is_chat, "unwritten": s.unwritten, "generating": s.generating}
    data |= {"lines": lines, "edited": s.answered, "n": s.handled.get(CLICKS, 0)}
    if s.text is None or s.written is None:
        return data
    document, statistics = s.written.document, s.token_statistics.of(s.written.document)
    tokenizer, ids = s.written.tokenizer, s.written.ids
    pieces, special = shown_tokens(tokenizer, ids, names=s.special and bool(s.prompt)), tokenizer.special_ids
    if isinstance(tokenizer, Characters):  # show what was typed where the model reads <unk>
        typed_pieces = zip(pieces, ids, s.prompt, strict=False)
        pieces[: len(s.prompt)] = [c if i == tokenizer.unknown_id else piece for piece, i, c in typed_pieces]
    for position, (token_id, piece) in enumerate(zip(ids, pieces, strict=True)):
        measured = statistics[position] if document.origin(position).kind == "sampled" else None
        lines.append(box_line(piece, None if measured is None else measured.probability, control=token_id in special))
    typed = s.typed
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


def hide_words(session: Session, sent: dict[str, Any]) -> None:
    """Hide exactly these words, unless a later click has been handled or the text has been edited since.

    sent: see `components.widgets.composer`; unchecked. The position of any of its tokens stands for a word.
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


def chat_edit(tokenizer: Vocabulary, document: Generation | None, typed: str) -> Edit:
    """Return the change that a typed text makes to a chat.

    Control tokens are kept where the text still contains their names; text typed between them is encoded as characters.
    New text, or text typed after the end of a turn, is a user message. The model's answer after a change is dropped.
    Raises ValueError if the template fails.
    """
    ids = [] if document is None else document.ids
    shown, controls = shown_tokens(tokenizer, ids), [token_id in tokenizer.special_ids for token_id in ids]
    keep, start = _unchanged(shown, controls, typed)
    backwards = [text[::-1] for text in reversed(shown[keep:])]
    n_last, n_end = _unchanged(backwards, controls[keep:][::-1], typed[start:][::-1])
    last, end = len(ids) - n_last, len(typed) - n_end
    middle = typed[start:end]
    if document is None or (keep == 0 and last == len(ids)):
        return _message(tokenizer, 0, typed, first=True)
    if last == len(ids) and ids[keep - 1] in tokenizer.eot_ids and middle.strip():
        return _message(tokenizer, keep, middle, first=False)
    given = range(last, next((i for i in range(last, len(ids)) if document.origin(i).kind != "typed"), len(ids)))
    if given:
        return Edit(keep, tokenizer.encode_continuation(middle) + ids[given.start : given.stop])
    text, held = hold_back(tokenizer, typed[:end])
    keep, rest = kept_tokens(document, text)
    return Edit(keep, rest_ids(tokenizer, ids[:keep], rest) if rest else [], held)


def message_of(tokenizer: Vocabulary, ids: Sequence[int]) -> str | None:
    """Return the user's first message in a chat, or None if it is not where the template puts it."""
    before, after = tokenizer.chat_frame()
    text = "".join(shown_tokens(tokenizer, ids))
    end = text.find(after, len(before))
    return text[len(before) : end] if text.startswith(before) and end >= 0 else None


def _message(tokenizer: Vocabulary, keep: int, text: str, *, first: bool) -> Edit:
    ids = tokenizer.encode_message(text, first=first)
    end = next((i for i, token_id in enumerate(ids) if token_id in tokenizer.eot_ids), len(ids))
    if not first and not tokenizer.decode(ids[:end]).strip():  # the previous turn has ended; Llama 2 adds a space
        ids = ids[end + 1 :]
    return Edit(keep, ids, n_after=len(tokenizer.chat_frame(first=first)[1]))


def _unchanged(shown: Sequence[str], controls: Sequence[bool], typed: str) -> tuple[int, int]:
    """Count the leading tokens and characters that are unchanged, up to and including the last control token."""
    found, end = (0, 0), 0
    for number, (text, is_control) in enumerate(zip(shown, controls, strict=True), 1):
        if not typed.startswith(text, end):
            break
        end += len(text)
        if is_control:
            found = number, end
    return found
