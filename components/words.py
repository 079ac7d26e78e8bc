"""A text's words: the units that visitors can hide and sentences can name."""

from __future__ import annotations

from collections.abc import Sequence

from components.i18n import t
from components.labels import visible
from components.state.typed_text import shown_tokens
from gpt.tokenizer import Vocabulary

_APOSTROPHES = "'’"


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


_PART = "\ufffd"  # stands for part of a character


def _goes_on(before: str, text: str) -> bool:
    """Return whether a token continues the previous token's word."""
    first, last = text[:1], before[-1]
    inside = last.isalnum() or last in _APOSTROPHES
    return inside and not _is_cjk(first) and (first.isalnum() or (first in _APOSTROPHES and text[1:2].isalpha()))


def _is_cjk(character: str) -> bool:
    return "\u2e80" <= character <= "\u9fff"


def word_name(tokenizer: Vocabulary, ids: Sequence[int], word: Sequence[int]) -> str:
    """Name a word for use inside a sentence. If the word is repeated, the name states which occurrence it is."""
    texts = shown_tokens(tokenizer, ids)

    def text_of(positions: Sequence[int]) -> str:
        return "".join(texts[position] for position in positions).strip(" ")

    text = text_of(word)
    same = [each for each in words_of(tokenizer, ids) if text_of(each) == text]
    name = f"“{visible(text or ' ')}”"
    if len(same) < 2 or word[0] not in (firsts := [each.start for each in same]):
        return name
    return t("word.nth", word=name, n=firsts.index(word[0]) + 1)
