"""Argument checks shared by the page and the endpoints.

Each raises a ValueError that names the argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.errors import PageError
from components.limits import MAX_CHARACTERS, MAX_SCORED_TOKENS
from components.state.settings import checked_number
from gpt import Generation, LoadedModel, get_model
from gpt import inputs as prompts
from gpt.checks import check_choice, is_integer
from gpt.errors import quoted


class Endpoints:
    """Endpoints that take the name of a model; "" is the model the app was started with."""

    def __init__(self, default_model: str) -> None:
        self.default_model = default_model

    def find_model(self, name: object) -> LoadedModel:
        """Return the shared model with this name, which may be one that a visitor has trained."""
        return get_model(str(name) or self.default_model)


def read(loaded: LoadedModel, prompt: object, *, special: object = False) -> Generation:
    """Create a document with this prompt and run the model on it. special: see `checked_special`."""
    document = Generation(loaded, checked_text("prompt", prompt), special=checked_special(special))
    document.read()
    return document


def checked_text(name: str, value: object) -> str:
    """Return the checked text. Raises ValueError if it is not a string or is too long."""
    if not isinstance(value, str):
        raise PageError("error.not_text", name=name, type=type(value))
    if len(value) > MAX_CHARACTERS:
        raise PageError("error.text_too_long", name=name, n=len(value), limit=MAX_CHARACTERS)
    return value


def checked_special(value: object) -> bool:
    """Return whether names of control tokens become control tokens. Raises ValueError if the value is not a boolean."""
    check_choice("special", value, (True, False))
    return bool(value)


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


def checked_texts(name: str, value: object) -> list[str]:
    """Return the non-empty strings in a list; None means none. Raises ValueError for anything else."""
    return [text for each in _checked_list(name, value) if (text := checked_text(name, each))]


def check_scored_length(n: int) -> None:
    """Raise ValueError if there are too few or too many tokens to score."""
    if n < 2:
        raise PageError("loss.error.one" if n else "loss.error.empty")
    if n > MAX_SCORED_TOKENS:
        raise PageError("loss.error.tokens", n=f"{n:,}", limit=f"{MAX_SCORED_TOKENS:,}")


def checked_position(value: object, n: int) -> int:
    """Return a position among n tokens; negative positions count from the end, as in a list."""
    return int(checked_number("position", value, -n, n - 1)) % n


def checked_token_id(name: str, value: object, loaded: LoadedModel) -> int:
    return int(checked_number(name, value, 0, loaded.model.config.vocab_size - 1))


def checked_heads(value: object) -> list[tuple[int, int]]:
    """Return (layer, head) pairs from a list of lists; None means no heads.

    Does not check whether a model has these heads.
    """
    heads = [tuple(head) if isinstance(head, list) else head for head in _checked_list("heads", value)]
    for head in heads:
        if not (isinstance(head, tuple) and len(head) == 2 and all(map(is_integer, head))):
            raise PageError("error.edits.head", value=quoted(head))
    return heads


def checked_layers(name: str, value: object) -> list[int]:
    """Return the layer numbers in a list; None means no layers. Does not check whether a model has these layers."""
    layers = _checked_list(name, value)
    for layer in layers:
        if not is_integer(layer):
            raise PageError("error.edits.layer", value=quoted(layer))
    return layers


def _checked_list(name: str, value: object) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise PageError("error.not_list", name=name, type=type(value))
    return value or []
