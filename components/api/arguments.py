"""Argument checks shared by the page and the endpoints.

Each raises a ValueError that names the argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.errors import PageError
from components.limits import MAX_CHARACTERS, MAX_SCORED_TOKENS
from gpt import Generation, LoadedModel, get_model
from gpt import inputs as prompts
from gpt.errors import check_integer


class Endpoints:
    """Endpoints that take the name of a model; "" is the model the app was started with."""

    def __init__(self, default_model: str) -> None:
        self.default_model = default_model

    def find_model(self, name: object) -> LoadedModel:
        """Return the shared model with this name, which may be one that a visitor has trained."""
        return get_model(str(name) or self.default_model)


def read(loaded: LoadedModel, prompt: str, *, special: bool) -> Generation:
    """Create a document with this prompt and run the model on it. special: whether control tokens are read as such."""
    document = Generation(loaded, checked_text("prompt", prompt), special=special)
    document.read()
    return document


def checked_text(name: str, value: str) -> str:
    """Return the text. Raises ValueError if it is too long."""
    if len(value) > MAX_CHARACTERS:
        raise PageError("error.text_too_long", name=name, n=len(value), limit=MAX_CHARACTERS)
    return value


def checked_messages(value: Sequence[object], prompt: str) -> list[dict[str, str]]:
    """Validate a chat's messages and return them.

    Raises:
        ValueError: If messages are malformed, the text is too long, or a prompt is also given.
    """
    messages = prompts.checked_messages(value)
    if prompt:
        raise PageError("error.prompt_and_messages")
    checked_text("messages", "".join(message["role"] + message["content"] for message in messages))
    return messages


def check_scored_length(n: int) -> None:
    """Raise ValueError if there are too few or too many tokens to score."""
    if n < 2:
        raise PageError("loss.error.one" if n else "loss.error.empty")
    if n > MAX_SCORED_TOKENS:
        raise PageError("loss.error.tokens", n=f"{n:,}", limit=f"{MAX_SCORED_TOKENS:,}")


def checked_position(position: int, n: int) -> int:
    """Return a position among n tokens; negative positions count from the end, as in a list."""
    check_integer("position", position, -n, n - 1)
    return position % n
