"""Save and load documents as JSON, with the token tree and the origin of each token, but without activations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gpt.checks import check_integer, is_integer
from gpt.documents.document import CHOSEN, MAX_TOKENS, TYPED, Origin, Token, TokenTree
from gpt.documents.edit_text import parse_edits
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams
from gpt.tokenizer import SPACES

FORMAT, VERSION = "glassbox-gpt document", 1
MAX_FILE_CHARS = 2**24


@dataclass(frozen=True)
class SavedDocument:
    """The contents of a document file.

    model: name of the model. vocab_size: the model's vocabulary size. tokens: nodes of the `TokenTree`; the first
    n_prompt form the prompt. current: the last node of the current text. edits: in the format of
    `gpt.documents.edit_text`. dropped: ids before the first token (see `Document`). held: pairs of a node and the
    white space typed after it.
    """

    model: str
    vocab_size: int
    n_prompt: int
    current: int
    tokens: tuple[Token, ...]
    edits: str = ""
    dropped: tuple[int, ...] = ()
    held: tuple[tuple[int, str], ...] = ()

    def to_json(self) -> str:
        """Serialise the document. Tokens with equal settings share one settings entry."""
        settings = list(dict.fromkeys(token.origin.params for token in self.tokens if token.origin.params is not None))
        numbers = {params: number for number, params in enumerate(settings)}
        tokens = []
        for token in self.tokens:
            entry: dict[str, Any] = {"id": token.token_id, "after": token.parent, "how": token.origin.kind}
            if token.origin.params is not None:
                entry["settings"] = numbers[token.origin.params]
            if token.origin.held:
                entry["held"] = token.origin.held
            tokens.append(entry)
        head = {"format": FORMAT, "version": VERSION, "model": self.model, "vocab_size": self.vocab_size}
        body: dict[str, Any] = {"prompt_tokens": self.n_prompt, "current": self.current}
        more = {"edits": self.edits, "dropped": self.dropped, "held": self.held}
        body |= {name: value for name, value in more.items() if value}
        return json.dumps(
            head | body | {"settings": [params.given() for params in settings], "tokens": tokens}, indent=1
        )

    @classmethod
    def from_json(cls, text: str) -> SavedDocument:
        """Parse an untrusted file. Raises ValueError if it is invalid. `check` compares the document with a model."""
        if len(text) > MAX_FILE_CHARS:
            raise GPTError("document_file.too_long", n=len(text), limit=MAX_FILE_CHARS)
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise GPTError("document_file.not_json") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise GPTError("document_file.format", format=FORMAT)
        if data.get("version") != VERSION or not is_integer(data["version"]):
            raise GPTError("document_file.version", version=data.get("version"), known=VERSION)
        if not isinstance(data.get("model"), str):
            raise GPTError("document_file.model", value=data.get("model"))
        vocab_size = integer_of(data, "vocab_size", 1, 2**31)
        entries = list_of(data, "tokens")
        if not 1 <= len(entries) <= MAX_TOKENS:
            raise GPTError("document_file.length", limit=MAX_TOKENS, n=len(entries))
        settings = [read_settings(entry) for entry in list_of(data, "settings")]
        tokens = tuple(read_token(entry, settings, vocab_size) for entry in entries)
        n_prompt = integer_of(data, "prompt_tokens", 1, len(tokens))
        if any(token.origin != TYPED or token.parent != n - 1 for n, token in enumerate(tokens[1:n_prompt], 1)):
            raise GPTError("document_file.prompt", n=n_prompt)
        if tokens[0].origin != TYPED:
            raise GPTError("document_file.first_token")
        TokenTree(tokens)  # raises unless they form a tree
        if not isinstance(edits := data.get("edits", ""), str):
            raise GPTError("document_file.edits", value=edits)
        current, dropped = integer_of(data, "current", 0, len(tokens) - 1), data.get("dropped", [])
        if not isinstance(dropped, list) or len(dropped) > MAX_TOKENS:
            raise no_list("dropped")
        for token_id in dropped:
            check_integer('"dropped"', token_id, 0, vocab_size - 1)
        held = tuple(read_held(pair, len(tokens)) for pair in list_of(data | {"held": data.get("held", [])}, "held"))
        return cls(data["model"], vocab_size, n_prompt, current, tokens, edits, tuple(dropped), held)

    def check(self, loaded: LoadedModel) -> None:
        """Raise ValueError unless the document fits a model's vocabulary and context."""
        config = loaded.model.config
        if self.vocab_size != config.vocab_size:
            raise GPTError("document_file.vocabulary", n=self.vocab_size, model=loaded.name, n_vocab=config.vocab_size)
        length = 1 + max(TokenTree(self.tokens).depths)
        if length > config.block_size + 1:
            raise GPTError("document_file.text_length", n=length, limit=config.block_size)
        if self.n_prompt > config.block_size:
            raise GPTError("document_file.prompt_length", n=self.n_prompt, limit=config.block_size)
        for token_id in (*self.dropped, *(token.token_id for token in self.tokens)):
            loaded.tokenizer.token_bytes(token_id)

    def edits_for(self, loaded: LoadedModel) -> Edits | None:
        """Compute any patches and return the edits, or None if there are no edits.

        Raises ValueError if they do not fit the model.
        """
        if not self.edits:
            return None
        edits = parse_edits(self.edits, loaded.model, loaded.concepts)
        edits.check(loaded.model.config)
        return edits


def read_token(entry: Any, settings: list[SamplingParams], vocab_size: int) -> Token:
    """Parse an entry in "tokens"; `TokenTree` checks its parent."""
    if not isinstance(entry, dict):
        raise GPTError("document_file.token", value=entry)
    how, parent = entry.get("how"), entry.get("after")
    if parent is not None and not is_integer(parent):
        raise GPTError("document_file.after", value=parent)
    token_id = integer_of(entry, "id", 0, vocab_size - 1)
    if how == "sampled":
        if not settings:
            raise GPTError("document_file.no_settings")
        params = settings[integer_of(entry, "settings", 0, len(settings) - 1)]
        return Token(token_id, parent, Origin("sampled", params, white_space(entry.get("held", ""))))
    if how not in ("typed", "chosen"):
        raise GPTError("document_file.how", value=how)
    return Token(token_id, parent, TYPED if how == "typed" else CHOSEN)


def read_held(pair: Any, n_tokens: int) -> tuple[int, str]:
    """Parse an entry in "held". Raises ValueError if it is invalid."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise no_list("held")
    check_integer('"held"', pair[0], 0, n_tokens - 1)
    return pair[0], white_space(pair[1])


def white_space(value: Any) -> str:
    """Return white space that was held back. Raises ValueError for any other text."""
    if not isinstance(value, str) or len(value.strip(SPACES + "\t")) > 0:
        raise GPTError("document_file.held", value=value)
    return value


def read_settings(entry: Any) -> SamplingParams:
    """Parse an entry in "settings". Raises ValueError if it is invalid or has no seed."""
    names = {field.name for field in fields(SamplingParams)}
    if not isinstance(entry, dict) or not set(entry) <= names:
        raise GPTError("document_file.settings", names=", ".join(sorted(names)), value=entry)
    params = SamplingParams(**entry)
    if params.seed is None:
        raise GPTError("document_file.no_seed", value=entry)
    return params


def integer_of(data: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return the integer stored under a name. Raises ValueError unless it is between low and high."""
    value: Any = data.get(name)
    check_integer(f'"{name}"', value, low, high)
    return value


def list_of(data: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list stored under a name. Raises ValueError if it is missing."""
    if not isinstance(data.get(name), list):
        raise no_list(name)
    return data[name]


def no_list(name: str) -> GPTError:
    """Return the error for a missing list."""
    return GPTError("document_file.no_list", name=name)
