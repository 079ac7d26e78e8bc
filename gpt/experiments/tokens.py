"""Byte-pair encoding, opened up: how a token is built, and what a text costs in one vocabulary or another."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import regex

from gpt.errors import GPTError
from gpt.tokenizer import Tokenizer, Vocabulary, gpt2_tokenizer

SAMPLES = {  # one sentence in several languages: language code -> text
    "en": "The little dog wanted to play in the garden.",
    "de": "Der kleine Hund wollte im Garten spielen.",
    "fr": "Le petit chien voulait jouer dans le jardin.",
    "es": "El perrito quería jugar en el jardín.",
    "ru": "Маленькая собака хотела играть в саду.",
    "el": "Το μικρό σκυλί ήθελε να παίξει στον κήπο.",
    "ar": "أراد الكلب الصغير أن يلعب في الحديقة.",
    "hi": "छोटा कुत्ता बगीचे में खेलना चाहता था।",
    "zh": "小狗想在花园里玩。",
    "ja": "子犬は庭で遊びたかった。",
    "ko": "강아지는 정원에서 놀고 싶었어요.",
    "emoji": "🐶🌳🎾😀👍🏽👨‍👩‍👧",
    "code": "for dog in garden:\n    dog.play(hours=2)",
}
GPT2_URLS = tuple(  # tiktoken names its copies by the sum of these
    f"https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/{name}" for name in ("vocab.bpe", "encoder.json")
)


@dataclass(frozen=True)
class MergeStep:
    """One moment in the life of a word.

    parts: its bytes, as far as they are joined. at: the index of the left one of the two parts that are joined next;
    merged: what they make; rank: the id of that token, the lowest that any two neighbours make. All three are None
    in the last step: no two neighbours make a token.
    """

    parts: tuple[bytes, ...]
    at: int | None = None
    merged: bytes | None = None
    rank: int | None = None

    @property
    def pair(self) -> tuple[bytes, bytes] | None:
        """The two parts that are joined next."""
        return None if self.at is None else (self.parts[self.at], self.parts[self.at + 1])


@dataclass(frozen=True)
class Piece:
    """One token of a text: its id, its bytes, and where they lie among the UTF-8 bytes of the text."""

    token_id: int
    data: bytes
    start: int
    end: int


@dataclass(frozen=True)
class TextCost:
    """What a text takes: characters (Unicode code points), UTF-8 bytes, tokens."""

    characters: int
    n_bytes: int
    tokens: int

    @property
    def tokens_per_character(self) -> float:
        """Below 1 where a token holds several characters."""
        return self.tokens / self.characters


@dataclass(frozen=True)
class SideBySide:
    """One text in two vocabularies. cuts: byte positions inside the text where both begin a token."""

    first: tuple[Piece, ...]
    second: tuple[Piece, ...]
    cuts: tuple[int, ...]


def words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words that a text is cut into first: no token reaches from one into the next."""
    text = text.encode("utf-8", "replace_surrogate").decode()
    return [match.group() for match in regex.finditer(tokenizer.encoding._pat_str, text)]


def merge_steps(tokenizer: Tokenizer, word: str) -> list[MergeStep]:
    """How byte-pair encoding joins the bytes of a word: the pair of lowest rank first, the leftmost of equals.

    The parts of the last step are the word's tokens. Raises ValueError for a text that is cut into several words.
    Source: Sennrich et al., arXiv 1508.07909, on bytes as in GPT-2.
    """
    if len(found := words(tokenizer, word)) != 1:
        raise GPTError("experiment.several_words", text=word, n=len(found))
    ranks = tokenizer.encoding._mergeable_ranks
    parts = tuple(bytes([byte]) for byte in found[0].encode())
    steps: list[MergeStep] = []
    while joinable := [(ranks[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]:
        rank, at = min(joinable)
        merged = parts[at] + parts[at + 1]
        steps.append(MergeStep(parts, at, merged, rank))
        parts = (*parts[:at], merged, *parts[at + 2 :])
    return [*steps, MergeStep(parts)]


def pieces(vocabulary: Vocabulary, text: str) -> tuple[Piece, ...]:
    """The tokens of a text with their places."""
    found: list[Piece] = []
    end = 0
    for token_id in vocabulary.encode(text):
        data = vocabulary.token_bytes(token_id)
        found.append(Piece(token_id, data, end, end + len(data)))
        end += len(data)
    return tuple(found)


def text_cost(vocabulary: Vocabulary, text: str) -> TextCost:
    """How many tokens a text takes. Raises ValueError for an empty one."""
    if not text:
        raise GPTError("experiment.nothing_to_count")
    return TextCost(len(text), len(text.encode("utf-8", "replace_surrogate")), len(vocabulary.encode(text)))


def language_costs(vocabulary: Vocabulary) -> dict[str, TextCost]:
    """What each of SAMPLES takes."""
    return {language: text_cost(vocabulary, text) for language, text in SAMPLES.items()}


def side_by_side(first: Vocabulary, second: Vocabulary, text: str) -> SideBySide:
    """The tokens of one text in two vocabularies."""
    a, b = pieces(first, text), pieces(second, text)
    cuts = {piece.start for piece in a} & {piece.start for piece in b} - {0}
    return SideBySide(a, b, tuple(sorted(cuts)))


def gpt2_copy() -> Tokenizer | None:
    """GPT-2's vocabulary if tiktoken has a copy of it; nothing is fetched, None where there is none."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or Path(tempfile.gettempdir()) / "data-gym-cache"
    return (
        _gpt2() if all((Path(folder) / hashlib.sha1(url.encode()).hexdigest()).exists() for url in GPT2_URLS) else None
    )


@cache
def _gpt2() -> Tokenizer:
    return gpt2_tokenizer()
