"""Translatable errors: each has a key, an English sentence (errors.json) and values for its placeholders."""

from __future__ import annotations

import json
from collections.abc import Callable
from numbers import Number
from pathlib import Path

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

    def __reduce__(self) -> tuple[Callable[..., GPTError], tuple[object, ...]]:
        return restored, (type(self), self.key, self.sentence, self.values)


class Verbatim(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def quoted(value: object) -> Verbatim:
    return Verbatim(repr(value)[:MAX_QUOTED_CHARS])


def restored(kind: type[GPTError], key: str, sentence: str, values: dict[str, object]) -> GPTError:
    error = kind.__new__(kind)
    GPTError.__init__(error, key, sentence, **values)
    return error
