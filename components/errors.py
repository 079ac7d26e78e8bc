"""Error messages in the language of the page."""

from __future__ import annotations

from pydantic import ValidationError

from components.i18n import spoken, t
from components.i18n.catalogue import CATALOGUES, FALLBACK
from gpt.errors import GPTError


class PageError(GPTError):
    """An error raised by the page itself. Its key is a catalogue key."""

    def __init__(self, key: str, /, **values: object) -> None:
        super().__init__(key, CATALOGUES[FALLBACK][key], **values)


class NothingToShow(PageError):
    """There is nothing to draw or compute, such as without a text. Pictures that read it are empty, not in error."""

    def __init__(self, key: str = "error.no_text", /, **values: object) -> None:
        super().__init__(key, **values)


class Question(PageError):
    """A question that a view shows. It ends the event like an error, but without a pop-up message."""


def localize_error(problem: object) -> str:
    """Translate an error, including errors among its values; convert any other object to a string."""
    if isinstance(problem, ValidationError):
        first = problem.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if not isinstance(problem, GPTError):
        return str(problem)
    values = {
        name: localize_error(value) if isinstance(value, GPTError) else value for name, value in problem.values.items()
    }
    if isinstance(problem, PageError):
        return t(problem.key, **values)
    key = f"error.{problem.key}"
    return t(key, **values) if key in CATALOGUES[spoken()] else problem.sentence.format(**values)


def message_of(problem: object) -> str:
    """Translate an error that stands alone: with a capital letter, unless it begins with the name of an argument."""
    text = localize_error(problem)
    first_word = problem.sentence.partition(" ")[0] if isinstance(problem, GPTError) else ""
    return text[:1].upper() + text[1:] if first_word.isalpha() else text
