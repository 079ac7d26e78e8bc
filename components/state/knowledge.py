"""A text's language and need for factual knowledge, and the models that were trained on such texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from gpt.models.sources import corpus_of

MIN_LETTERS = 2  # minimum number of letters that identify a script
MIN_WORDS = 3  # minimum number of words to identify a language in the Latin script
_SCRIPTS = {  # a script's most likely language; kana are checked before Chinese characters
    "ja": r"[\u3040-\u30ff]",
    "zh": r"[\u4e00-\u9fff]",
    "ko": r"[\uac00-\ud7af]",
    "ru": r"[\u0400-\u04ff]",
    "ar": r"[\u0600-\u06ff]",
    "th": r"[\u0e00-\u0e7f]",
    "hi": r"[\u0900-\u097f]",
    "he": r"[\u0590-\u05ff]",
    "el": r"[\u0370-\u03ff]",
}
_COMMON_WORDS = {  # frequent words that do not occur in the other languages
    "en": "the and is was of to in he she it they that with his her you on had not",
    "de": "der die das und ist ein eine nicht ich wir mit auf war den dem es sie",
    "fr": "le les des une est et dans pas que qui je il elle un du avec sur",
    "es": "el los las una es y en que no por con un su se del era",
    "it": "il gli una di che non per con un è sono era della nel",
    "pt": "o os uma não que em um com para ele ela era do da",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON_WORDS.items()}
_QUESTION = re.compile(
    r"(who|when|where|which|what|how (many|much|old|far|tall|long)) [^.!?\"“”]*\?"
    r"|.*\b(capital|president|prime minister|population|inventor|currency) of\b.*"
    r"|.*\b(was|were) (born|founded|invented|discovered) (in|by)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(
    r"^\s*(def|class|function) \w+\s*[({:]|^\s*(import|#include|const|var) \S|=>|==|!=|&&|</?\w+>"
    r"|\w\([^()\n]*\)\s*[:{;=]|[{}]\s*$",
    re.MULTILINE,
)
MAX_QUESTION_WORDS = 20


@lru_cache(maxsize=32)
def language_of(text: str) -> str:
    """Return a text's language as an ISO 639-1 code; English if there is no evidence."""
    for language, letters in _SCRIPTS.items():
        if len(re.findall(letters, text)) >= MIN_LETTERS:
            return language
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = Counter({language: sum(word in known for word in words) for language, known in _WORDS.items()})
    best, most = counts.most_common(1)[0]
    return best if len(words) >= MIN_WORDS and most > counts["en"] and most * 4 >= len(words) else "en"


def is_about_facts(text: str) -> bool:
    """Return whether a text asks for a fact or begins to state one."""
    return len(text.split()) <= MAX_QUESTION_WORDS and _QUESTION.fullmatch(text.strip()) is not None


def is_known_to(model: str, text: str) -> bool:
    """Return whether a model was trained on texts like this one, or True if unknown."""
    corpus = corpus_of(model)
    if corpus is None or len(text) < MIN_LETTERS:
        return True
    if not any(map(str.isalpha, text)) or _CODE.search(text):  # numbers or code
        return corpus.facts
    return corpus.fits(language_of(text), facts=is_about_facts(text))


def fitting_model(models: Sequence[str], text: str) -> str | None:
    """Return the first model that was trained on texts like this one, or None if none was."""
    return next((name for name in models if corpus_of(name) is not None and is_known_to(name, text)), None)
