"""Translatable errors: each has a key, an English sentence (errors.json) and values for its placeholders."""

from __future__ import annotations

import json
from numbers import Number
from pathlib import Path
from typing import Any

MAX_QUOTED_CHARS = 40
SENTENCES: dict[str, str] = json.loads(Path(__file__).with_name("errors.json").read_text(encoding="utf-8"))


class GPTError(ValueError):
    """An error whose message can be translated.

    Values other than numbers, strings, None and errors are stored as strings, to keep every error picklable.

    Args:
        key: Key of the sentence in errors.json and in the translations.
        sentence: English sentence with placeholders for `str.format`, if it is not in errors.json.
        values: Values for the placeholders.
    """

    def __init__(self, key: str, sentence: str | None = None, /, **values: object) -> None:
        self.key, self.sentence = key, SENTENCES[key] if sentence is None else sentence
        kept = (str, Number, GPTError, type(None))
        self.values = {
            name: x if isinstance(x, kept) else Verbatim(x.__name__ if isinstance(x, type) else x)
            for name, x in values.items()
        }
        super().__init__(self.sentence.format(**self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueError.__new__, (type(self), str(self)), vars(self)


class Verbatim(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def quoted(value: object) -> Verbatim:
    return Verbatim(repr(value)[:MAX_QUOTED_CHARS])
