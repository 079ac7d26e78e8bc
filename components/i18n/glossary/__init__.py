"""The page's technical terms: one file per language, a list of {"word", "forms", "says"}.

forms: spellings that link to the definition wherever they occur in a sentence; empty for a word that is too frequent.
says: the definition, in one line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from components.i18n.catalogue import FALLBACK, LANGUAGES, Language


class Term(TypedDict):
    word: str
    forms: list[str]
    says: str


def _load(language: Language) -> list[Term]:
    path = Path(__file__).parent / f"{language}.json"
    terms: list[Term] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else _load(FALLBACK)
    return terms


GLOSSARY: dict[Language, list[Term]] = {language: _load(language) for language in LANGUAGES}
