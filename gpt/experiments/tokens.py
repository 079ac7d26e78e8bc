"""Byte-pair encoding step by step, and the number of tokens that a vocabulary needs for a text."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import regex

from gpt.tokenizer import Tokenizer, Vocabulary, valid_text

SAMPLES = {  # the same sentence in several languages
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


class MergeStep(NamedTuple):
    """One step in the encoding of a word.

    parts: the word's bytes, as merged so far. at: index of the first of the two parts to merge next. rank: token id of
    their concatenation, the lowest among all neighbouring pairs. Both are None in the last step.
    """

    parts: tuple[bytes, ...]
    at: int | None = None
    rank: int | None = None


def split_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """Split a text into words (pre-tokenisation). Bytes are merged only within a word."""
    return regex.findall(tokenizer.encoding._pat_str, valid_text(text))


def merge_steps(tokenizer: Tokenizer, word: str) -> list[MergeStep]:
    """Return the merges of a word's bytes. The pair with the lowest rank is merged first; ties merge left to right.

    The parts of the last step are the word's tokens.
    Source: Sennrich et al., arXiv 1508.07909, applied to bytes as in GPT-2.
    """
    ranks = tokenizer.encoding._mergeable_ranks
    parts = tuple(bytes([byte]) for byte in valid_text(word).encode())
    steps: list[MergeStep] = []
    while joinable := [(ranks[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]:
        rank, at = min(joinable)
        steps.append(MergeStep(parts, at, rank))
        parts = (*parts[:at], parts[at] + parts[at + 1], *parts[at + 2 :])
    return [*steps, MergeStep(parts)]


def tokens_per_character(vocabulary: Vocabulary) -> dict[str, float]:
    """Return the number of tokens per character (Unicode code point) that a vocabulary needs for each of SAMPLES."""
    return {language: len(vocabulary.encode(text)) / len(text) for language, text in SAMPLES.items()}
