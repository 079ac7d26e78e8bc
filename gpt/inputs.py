"""Convert the arguments of public functions: models in any form; texts, token ids or the messages of a chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from gpt.errors import GPTError, check_token_id, quoted, require
from gpt.model import GPT
from gpt.tokenizer import PlainIds, Vocabulary, as_token_ids, prompt_ids, start_ids


class HasModel(Protocol):
    """A model and its tokenizer, such as `gpt.LoadedModel`."""

    @property
    def model(self) -> GPT: ...

    @property
    def tokenizer(self) -> Vocabulary: ...


AnyModel = GPT | HasModel | str | Path  # str and Path: name or path of a model to load
Text = str | Sequence[int] | Tensor  # a text or its token ids
Texts = list[str] | list[list[int]] | list[Tensor]
Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]  # a text, its token ids or the messages of a chat
named: list[Callable[[str | Path], HasModel]] = []  # functions that look up a model; filled by `gpt.models.registry`


class NoTokenizer(PlainIds):
    """Vocabulary for a model without a tokenizer. Decodes every token as its number."""

    def encode(self, text: str) -> list[int]:
        raise GPTError("model.no_tokenizer")


def with_tokenizer(model: AnyModel) -> tuple[GPT, Vocabulary]:
    """Return a model and its tokenizer. Raises ValueError for an unknown name or an object that is not a model."""
    if isinstance(model, GPT):
        return model, NoTokenizer(model.config.vocab_size)
    if isinstance(model, (str, Path)):
        model = named[0](model)
    try:
        return model.model, model.tokenizer
    except AttributeError:
        raise GPTError("model.not_loaded", type=type(model)) from None


def gpt_of(model: AnyModel) -> GPT:
    return with_tokenizer(model)[0]


def ids_of(model: AnyModel, text: Text | Prompt, *, special: bool = False) -> list[int]:
    """Return the token ids of a text, with the prefix that the model expects. Token ids are returned unchanged.

    special: see `encode_prompt`. An empty text becomes `start_ids`. Raises ValueError if `text` is a string and the
    model has no tokenizer, if ids are invalid or out of range, or if the result is empty.
    """
    network, tokenizer = with_tokenizer(model)
    ids = token_ids(tokenizer, text, special=special) or start_ids(tokenizer)
    require(ids, "prompt.empty")
    for token_id in (min(ids), max(ids)):
        check_token_id(token_id, network.config.vocab_size)
    return ids


def encode_prompt(model: AnyModel, prompt: Prompt, *, special: bool = False) -> list[int]:
    """Return the validated token ids of a prompt. Raises the same errors as `Generation`.

    special: whether names of control tokens in a text, such as `<|endoftext|>`, become control tokens. They are
        characters otherwise, and always in the messages of a chat.
    """
    network, tokenizer = with_tokenizer(model)
    ids = ids_of(model, prompt, special=special)
    check_prompt_length(len(ids), network.config.block_size)
    for token_id in ids:
        tokenizer.token_bytes(token_id)  # raises for an unknown id
    return ids


def check_prompt_length(n: int, limit: int) -> None:
    require(n <= limit, "context.prompt_too_long", n=n, excess=n - limit, limit=limit)


def token_ids(tokenizer: Vocabulary, prompt: Text | Prompt, *, special: bool = False) -> list[int]:
    """Return the token ids for a prompt of any length; [] for "". Raises the same errors as `encode_chat`."""
    if isinstance(prompt, str):
        return prompt_ids(tokenizer, prompt, special=special)
    if isinstance(prompt, list | tuple) and any(isinstance(message, Mapping) for message in prompt):
        return tokenizer.encode_chat(checked_messages(prompt))
    return as_token_ids(prompt)


def checked_messages(messages: Any) -> list[dict[str, str]]:
    """Return a chat's messages as {"role", "content"} dictionaries. Raises ValueError for anything else."""
    require(isinstance(messages, list | tuple) and messages, "chat.messages", value=quoted(messages))
    for number, message in enumerate(messages, start=1):
        fits = isinstance(message, Mapping) and set(message) == {"role", "content"}
        fits = fits and all(isinstance(value, str) for value in message.values())
        require(fits, "chat.message", number=number, value=quoted(message))
    return [dict(message) for message in messages]
