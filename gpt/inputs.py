"""Convert the arguments of public functions: models in any form, and texts or token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from gpt.checks import check_token_id
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.tokenizer import Vocabulary, as_token_ids, prompt_ids, start_ids


class HasModel(Protocol):
    """A model and its tokenizer, such as `gpt.LoadedModel`."""

    @property
    def model(self) -> GPT: ...

    @property
    def tokenizer(self) -> Vocabulary: ...


AnyModel = GPT | HasModel | str | Path  # str and Path: name or path of a model to load
Text = str | Sequence[int] | Tensor  # a text or its token ids
Texts = list[str] | list[list[int]] | list[Tensor]
named: list[Callable[[str | Path], HasModel]] = []  # functions that look up a model; filled by `gpt.models.registry`


class TokenNumbers(Vocabulary):
    """Vocabulary for a model without a tokenizer. Decodes every token as its number."""

    def __init__(self, n_vocab: int) -> None:
        self.n_vocab = n_vocab

    def encode(self, text: str) -> list[int]:
        raise GPTError("model.no_tokenizer")

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode()

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return b" %d" % token_id


def with_tokenizer(model: AnyModel) -> tuple[GPT, Vocabulary]:
    """Return a model and its tokenizer. Raises ValueError for an unknown name or an object that is not a model."""
    if isinstance(model, GPT):
        return model, TokenNumbers(model.config.vocab_size)
    if isinstance(model, (str, Path)):
        model = named[0](model)
    try:
        return model.model, model.tokenizer
    except AttributeError:
        raise GPTError("model.not_loaded", type=type(model)) from None


def gpt_of(model: AnyModel) -> GPT:
    """Return a model's network. Raises the same errors as `with_tokenizer`."""
    return with_tokenizer(model)[0]


def ids_of(model: AnyModel, text: Text) -> list[int]:
    """Return the token ids of a text, with the prefix that the model expects. Token ids are returned unchanged.

    An empty text becomes `start_ids`. Raises ValueError if `text` is a string and the model has no tokenizer, if ids
    are invalid or out of range, or if the result is empty.
    """
    network, tokenizer = with_tokenizer(model)
    ids = prompt_ids(tokenizer, text) if isinstance(text, str) else as_token_ids(text)
    ids = ids or start_ids(tokenizer)
    if not ids:
        raise GPTError("prompt.empty")
    for token_id in (min(ids), max(ids)):
        check_token_id(token_id, network.config.vocab_size)
    return ids
