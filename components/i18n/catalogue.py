"""Loads the catalogues, `<language>.json` beside this file: flat objects of key -> text.

Another language is another file with the keys of `en.json`; a missing key is shown in English. Placeholders are
`{name}` of `str.format`. Two keys describe the language itself: `language.name` is its label in the language switch,
and `language.spacing` is "cjk" if words are not separated by spaces. Errors of gpt state their English sentence
themselves; in another language it stands under `error.` and their key.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

Language = str  # a key of LANGUAGES
FALLBACK: Language = "en"
FOLDER = Path(__file__).parent


def load_catalogues(folder: Path = FOLDER) -> dict[Language, dict[str, str]]:
    """The catalogues of a folder by language, English first."""
    paths = sorted(folder.glob("*.json"), key=lambda path: (path.stem != FALLBACK, path.stem))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


CATALOGUES = load_catalogues()
LANGUAGES: dict[Language, str] = {language: texts["language.name"] for language, texts in CATALOGUES.items()}


def has_text(key: str) -> bool:
    """Whether the catalogue has that key."""
    return key in CATALOGUES[FALLBACK]


def t(key: str, language: Language, **values: object) -> str:
    """The text of a key in a language with its values filled in. Raises KeyError for an unknown key.

    The singular is the key with ".one", where there is one: for 1 as the value `tokens`, else as `n`.
    """
    catalogue = CATALOGUES[language]
    if str(values.get("tokens", values.get("n"))) == "1" and has_text(f"{key}.one"):
        key = f"{key}.one"
    sentence = catalogue.get(key) or CATALOGUES[FALLBACK][key]
    if values and catalogue.get("language.spacing") == "cjk":
        sentence = _without_cjk_spaces(sentence, values)
    return sentence.format(**values) if values else sentence


def _without_cjk_spaces(sentence: str, values: dict[str, object]) -> str:
    """Remove the space between a placeholder and the text around it if its value is Chinese there, except beside a
    "·"."""
    for name, value in values.items():
        text = str(value)
        if _is_cjk(text[:1]):
            sentence = _space_before(name).sub(f"{{{name}}}", sentence)
        if _is_cjk(text[-1:]):
            sentence = _space_after(name).sub(f"{{{name}}}", sentence)
    return sentence


@cache
def _space_before(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!·) \{{{re.escape(name)}\}}")


@cache
def _space_after(name: str) -> re.Pattern[str]:
    return re.compile(rf"\{{{re.escape(name)}\}} (?!·)")


def _is_cjk(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"
