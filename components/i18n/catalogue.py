"""Catalogues: one flat JSON object (key -> text) per language, `<language>.json` in this folder.

To add a language, add a file with the keys from `en.json`; missing keys are shown in English. Placeholders are written
`{name}`, as for `str.format`. Two keys describe the language itself: `language.name` is its label in the language
switch, and `language.spacing` is "cjk" if words are not separated by spaces. gpt's errors contain their English
sentence; a translation's key is the error's key, prefixed with `error.`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypedDict

Language = str  # a key of LANGUAGES
FALLBACK: Language = "en"
FOLDER = Path(__file__).parent


def load_catalogues(folder: Path = FOLDER) -> dict[Language, dict[str, str]]:
    """Return the catalogues in a folder by language, English first."""
    paths = sorted(folder.glob("*.json"), key=lambda path: (path.stem != FALLBACK, path.stem))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


CATALOGUES = load_catalogues()
LANGUAGES: dict[Language, str] = {language: texts["language.name"] for language, texts in CATALOGUES.items()}


def has_text(key: str) -> bool:
    return key in CATALOGUES[FALLBACK]


_speaking: ContextVar[tuple[Language, bool]] = ContextVar("speaking", default=(FALLBACK, False))


@contextmanager
def speaking(language: Language, *, exact: bool) -> Iterator[None]:
    """Set the language of texts made in this context, and whether they show all digits (the page's Numbers switch)."""
    token = _speaking.set((language, exact))
    try:
        yield
    finally:
        _speaking.reset(token)


def spoken() -> Language:
    return _speaking.get()[0]


def is_exact() -> bool:
    """Return whether texts made in this context show all digits."""
    return _speaking.get()[1]


def t(key: str, **values: object) -> str:
    """Return the text for a key in the context's language (see `speaking`), with its values filled in.

    For a count of 1, the key with the suffix ".one" is used if it exists; the count is `tokens` or, if absent, `n`.
    Raises KeyError if the key is unknown.
    """
    catalogue = CATALOGUES[spoken()]
    if str(values.get("tokens", values.get("n"))) == "1" and has_text(f"{key}.one"):
        key = f"{key}.one"
    sentence = catalogue.get(key) or CATALOGUES[FALLBACK][key]
    if values and catalogue.get("language.spacing") == "cjk":
        sentence = _without_cjk_spaces(sentence, values)
    return sentence.format(**values) if values else sentence


def in_all_languages(key: str, **values: object) -> dict[Language, str]:
    texts = {}
    for language in LANGUAGES:
        with speaking(language, exact=False):
            texts[language] = t(key, **values)
    return texts


def _without_cjk_spaces(sentence: str, values: dict[str, object]) -> str:
    """Remove the space between a placeholder and the text around it if the value is Chinese or quoted at that end.

    Spaces beside a "·" are kept.
    """

    def needs_no_space(name: str, end: slice) -> bool:
        edge = str(values.get(name, ""))[end]
        return "\u4e00" <= edge <= "\u9fff" or edge in ("“", "”")

    def before(found: re.Match[str]) -> str:
        return "" if needs_no_space(found[1], slice(1)) else " "

    def after(found: re.Match[str]) -> str:
        return found[1] if needs_no_space(found[2], slice(-1, None)) else f"{found[1]} "

    sentence = re.sub(r"(?<!·) (?=\{(\w+)\})", before, sentence)
    return re.sub(r"(\{(\w+)\}) (?!·)", after, sentence)


# The technical terms: one file per language, a list of {"word", "forms", "says"}


class Term(TypedDict):
    word: str
    forms: list[str]
    says: str


def _load(language: Language) -> list[Term]:
    path = FOLDER / "glossary" / f"{language}.json"
    terms: list[Term] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else _load(FALLBACK)
    return terms


GLOSSARY: dict[Language, list[Term]] = {language: _load(language) for language in LANGUAGES}
