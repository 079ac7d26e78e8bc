"""The text in the Write tab's box: the document's text, unless a person has typed something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.i18n import is_exact, t
from components.labels import token_text, visible
from components.state.text import Version
from gpt import Generation
from gpt.tokenizer import TextDecoder, Vocabulary, is_chat, prompt_ids, start_ids


@dataclass(frozen=True)
class TypedText:
    text: str
    version: Version | None  # of the document to which it was compared; None if there was none
    is_current: bool  # whether it became that document's text
    n_after: int = 0  # number of characters that a chat template added after it
    run: float | None = None  # the run of edits (see `components.tabs.playground.box`); None if it was not typed
    can_undo: bool = False  # whether there is something to undo for this run


def ends_text(tokenizer: Vocabulary, token_id: int) -> bool:
    """Return whether a token separates two texts. In a chat, it is a control token like any other."""
    return token_id in tokenizer.eot_ids and not tokenizer.is_chat


def shown_tokens(tokenizer: Vocabulary, ids: Sequence[int], *, names: bool = False) -> list[str]:
    """Return the characters that the box shows for each token.

    An end-of-text token is shown as a line break, any other control token as its name. Part of a character is shown as
    "", and so are the control tokens at the start of a text that is not a chat.
    names: whether to show all control tokens by name, except for those that precede every text.
    """
    decoder, start = TextDecoder(tokenizer), list(tokenizer.prefix_ids) if names else start_ids(tokenizer)
    n_start = len(start) if list(ids[: len(start)]) == start and not is_chat(tokenizer, ids) else 0

    def shown(position: int, token_id: int) -> str:
        if token_id not in tokenizer.special_ids or position < n_start:
            return decoder.feed(token_id)
        return "\n" if ends_text(tokenizer, token_id) and not names else token_text(tokenizer, token_id)

    return [shown(*each) for each in enumerate(ids)]


def shown_text(document: Generation, *, names: bool = False) -> str:
    """Return the characters that the box shows for a document. names: see `shown_tokens`."""
    return "".join(shown_tokens(document.tokenizer, document.ids, names=names)) + document.held


def offered_text(tokenizer: Vocabulary, ids: Sequence[int], token_id: int, held: str = "") -> str:
    """Return the characters that a token would add to the box after those ids and the white space held back.

    The result is "" if they cannot be typed, as for part of a character or an end-of-text token.
    """
    if ends_text(tokenizer, token_id):
        return ""
    try:
        text = tokenizer.token_bytes(token_id).decode()
        return text[1:] if held else text
    except UnicodeDecodeError:
        text = shown_tokens(tokenizer, [*ids, token_id])[-1]
        return "" if "\ufffd" in text else text


def kept_tokens(document: Generation, typed: str, *, special: bool = False, names: bool = False) -> tuple[int, str]:
    """Return the number of leading document tokens that a typed text begins with, and the rest of the text.

    A token that would change if it were encoded together with the rest belongs to the rest. special: whether names of
    control tokens in the text become control tokens. names: see `shown_tokens`. Raises ValueError if a character is
    not in the vocabulary.
    """
    ids, tokenizer = document.ids, document.loaded.tokenizer
    shown = shown_tokens(tokenizer, ids, names=names)
    keep = end = 0
    while keep < len(shown) and typed.startswith(shown[keep], end):
        end += len(shown[keep])
        keep += 1
    while 0 < keep < len(shown) and not shown[keep - 1]:  # parts of a character that the typed text does not contain
        keep -= 1
    for start, after in name_spans(tokenizer, typed) if special else ():  # a name that the rest completes
        while keep and start < end < after:
            keep -= 1
            end -= len(shown[keep])
    rest = typed[end:]
    while rest and keep and ids[keep - 1] not in tokenizer.special_ids:
        if rest_ids(tokenizer, ids[: keep - 1], shown[keep - 1] + rest, special=special)[0] == ids[keep - 1]:
            break
        keep -= 1
        rest = shown[keep] + rest
    return keep, rest


def name_spans(tokenizer: Vocabulary, text: str) -> list[tuple[int, int]]:
    """Return where each name of a control token starts and ends in a text."""
    return [name.span() for name in tokenizer.name_pattern.finditer(text)]


def rest_ids(tokenizer: Vocabulary, kept: Sequence[int], rest: str, *, special: bool = False) -> list[int]:
    """Return the token ids of a text that follows the kept tokens. special: see `kept_tokens`."""
    if not kept:
        return prompt_ids(tokenizer, rest, special=special)
    is_first = tokenizer.special_ids.issuperset(kept)
    if special:
        return tokenizer.encode_special(rest, is_start=is_first)
    return tokenizer.encode(rest) if is_first else tokenizer.encode_continuation(rest)


_APOSTROPHES = "'’"
_PART = "\ufffd"  # stands for part of a character


def words_of(tokenizer: Vocabulary, ids: Sequence[int]) -> list[range]:
    """Return each word's positions, without control tokens. Tokens that form one character belong together."""
    words: list[range] = []
    before = ""  # text of the previous token; "" after a control token
    for position, text in enumerate(shown_tokens(tokenizer, ids)):
        if ids[position] in tokenizer.special_ids:
            before = ""
            continue
        if before and (before == _PART or _goes_on(before, text)):
            words[-1] = range(words[-1].start, position + 1)
        else:
            words.append(range(position, position + 1))
        before = text or _PART
    return words


def _goes_on(before: str, text: str) -> bool:
    """Return whether a token continues the previous token's word."""
    first, last = text[:1], before[-1]
    inside, is_cjk = last.isalnum() or last in _APOSTROPHES, "\u2e80" <= first <= "\u9fff"
    return inside and not is_cjk and (first.isalnum() or (first in _APOSTROPHES and text[1:2].isalpha()))


def word_name(tokenizer: Vocabulary, ids: Sequence[int], word: Sequence[int]) -> str:
    """Name a word for use inside a sentence. If the word is repeated, the name states which one it is."""
    texts, words = shown_tokens(tokenizer, ids), words_of(tokenizer, ids)
    names = [f"“{visible(''.join(texts[each.start : each.stop]).strip(' ') or ' ')}”" for each in words]
    at = next((i for i, each in enumerate(words) if each.start == word[0]), None)
    if at is None:
        return f"“{visible(''.join(texts[position] for position in word).strip(' ') or ' ')}”"
    same = [i for i, each in enumerate(names) if each == names[at]]
    if len(same) < 2:
        return names[at]
    if is_exact():
        return t("word.nth", word=names[at], n=same.index(at) + 1)
    if at in (same[0], same[-1]):
        return t("word.first" if at == same[0] else "word.last", word=names[at])
    if sum(names[i - 1] == names[at - 1] for i in same) == 1:
        return t("word.after", word=names[at], before=names[at - 1])
    return t("word.nth", word=names[at], n=same.index(at) + 1)
