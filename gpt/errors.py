"""The errors of this package: each has a key, the values of its placeholders, and an English sentence made of them."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from string import Formatter

from gpt.messages import MESSAGES


class GPTError(ValueError):
    """An error with a message key. `key` is one of MESSAGES, `values` fill its placeholders, `str` is in English.

    Values that are not numbers, strings, None or errors are stored as strings, so that every error can be pickled.
    Raises KeyError for an unknown key and TypeError for missing or additional values.
    """

    def __init__(self, key: str, /, **values: object) -> None:
        template = self.template(key)
        expected = {name for _, name, _, _ in Formatter().parse(template) if name}
        if values.keys() != expected:
            raise TypeError(f"{key} needs the values {sorted(expected)}, not {sorted(values)}")
        self.key = key
        self.values = {name: _picklable(value) for name, value in values.items()}
        super().__init__(template.format(**self.values))

    @staticmethod
    def template(key: str) -> str:
        """The English sentence of a key, with placeholders."""
        return MESSAGES[key]

    def __reduce__(self) -> tuple[Callable[..., GPTError], tuple[object, ...]]:
        return _restore, (type(self), self.key, self.values)


class Verbatim(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def _picklable(value: object) -> object:
    if value is None or isinstance(value, (str, Number, GPTError)):
        return value
    return Verbatim(value.__name__ if isinstance(value, type) else value)


def _restore(kind: type[GPTError], key: str, values: dict[str, object]) -> GPTError:
    return kind(key, **values)
