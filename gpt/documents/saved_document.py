"""A document as a file: its tokens, how each came about, their tree. What the model made of them is computed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gpt.documents.branches import CHOSEN, MAX_TOKENS, TYPED, Branches, Origin, Token
from gpt.documents.edit_text import parse_edits
from gpt.edits import Edits
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams, is_whole

FORMAT, VERSION = "glassbox-gpt document", 1
MAX_CHARACTERS = 2**24


@dataclass(frozen=True)
class SavedDocument:
    """All that a document is made of.

    model: its name. vocab_size: how many ids the model has. tokens: of the tree, as in `Branches`; the first
    n_prompt are the prompt. current: the number of the token at which the current text ends. edits: of the model that
    wrote it, as `gpt.documents.edit_text` has them.
    """

    model: str
    vocab_size: int
    n_prompt: int
    current: int
    tokens: tuple[Token, ...]
    edits: str = ""

    def to_json(self) -> str:
        """The file's text; settings that many tokens share are written once."""
        settings = list(dict.fromkeys(token.origin.params for token in self.tokens if token.origin.params is not None))
        numbers = {params: number for number, params in enumerate(settings)}
        tokens = []
        for token in self.tokens:
            entry: dict[str, Any] = {"id": token.token_id, "after": token.parent, "how": token.origin.how}
            if token.origin.params is not None:
                entry["settings"] = numbers[token.origin.params]
            tokens.append(entry)
        head = {"format": FORMAT, "version": VERSION, "model": self.model, "vocab_size": self.vocab_size}
        body = {"prompt_tokens": self.n_prompt, "current": self.current} | ({"edits": self.edits} if self.edits else {})
        return json.dumps(
            head | body | {"settings": [asdict(params) for params in settings], "tokens": tokens}, indent=1
        )

    @classmethod
    def from_json(cls, text: str) -> SavedDocument:
        """Read a file, which anybody may have changed. Raises ValueError, with a sentence for a person, for a bad one.

        Whether it fits a model is for `check` to say.
        """
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"the file has {len(text):,} characters: a document has at most {MAX_CHARACTERS:,}")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("the file is no JSON, as a saved document is") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f'the file is no document of this program: it does not say "format": "{FORMAT}"')
        if data.get("version") != VERSION or not is_whole(data["version"]):
            raise ValueError(f"the file is of version {data.get('version')!r}: this program reads version {VERSION}")
        if not isinstance(data.get("model"), str):
            raise ValueError(f"the model must be named in quotes, not be {data.get('model')!r}")
        vocab_size = whole(data, "vocab_size", 1, 2**31)
        entries = items(data, "tokens")
        if not 1 <= len(entries) <= MAX_TOKENS:
            raise ValueError(f"a document holds 1 to {MAX_TOKENS:,} tokens, not {len(entries):,}")
        settings = [read_settings(entry) for entry in items(data, "settings")]
        tokens = tuple(read_token(entry, settings, vocab_size) for entry in entries)
        n_prompt = whole(data, "prompt_tokens", 1, len(tokens))
        if any(token.origin != TYPED or token.parent != n - 1 for n, token in enumerate(tokens[1:n_prompt], 1)):
            raise ValueError(
                f"the first {n_prompt} tokens are the prompt: each must be typed and follow the one before"
            )
        if tokens[0].origin != TYPED:
            raise ValueError("the first token must be typed")
        Branches(tokens)  # refuses what is no tree
        if not isinstance(edits := data.get("edits", ""), str):
            raise ValueError(f"the edits must stand in quotes, not be {edits!r}")
        return cls(data["model"], vocab_size, n_prompt, whole(data, "current", 0, len(tokens) - 1), tokens, edits)

    def check(self, loaded: LoadedModel) -> None:
        """Raise ValueError for a model whose vocabulary or context this document does not fit."""
        config = loaded.model.config
        if self.vocab_size != config.vocab_size:
            raise ValueError(
                f"the file is for a vocabulary of {self.vocab_size:,} tokens: that of {loaded.name} has "
                f"{config.vocab_size:,}"
            )
        length = 1 + max(Branches(self.tokens).depths)
        if length > config.block_size + 1:
            raise ValueError(f"the file has a text of {length:,} tokens, and the context is {config.block_size:,}")
        if self.n_prompt > config.block_size:
            raise ValueError(
                f"the file has a prompt of {self.n_prompt:,} tokens, and the context is {config.block_size:,}"
            )
        for token in self.tokens:
            loaded.tokenizer.token_bytes(token.token_id)

    def edits_for(self, loaded: LoadedModel) -> Edits | None:
        """The edits, with the values of patches computed. Raises ValueError where the model has no such parts."""
        if not self.edits:
            return None
        edits = parse_edits(self.edits, loaded.model)
        edits.check(loaded.model.config)
        return edits


def read_token(entry: Any, settings: list[SamplingParams], vocab_size: int) -> Token:
    """One entry of "tokens"; that it follows an earlier one is checked with the tree."""
    if not isinstance(entry, dict):
        raise ValueError(f"a token must be an object with id, after and how, not {entry!r}")
    how, parent = entry.get("how"), entry.get("after")
    if parent is not None and not is_whole(parent):
        raise ValueError(f'"after" must be the number of a token, not {parent!r}')
    token_id = whole(entry, "id", 0, vocab_size - 1)
    if how == "sampled":
        if not settings:
            raise ValueError("a token is said to be sampled, but the file has no settings")
        return Token(token_id, parent, Origin("sampled", settings[whole(entry, "settings", 0, len(settings) - 1)]))
    if how not in ("typed", "chosen"):
        raise ValueError(f"a token is typed, sampled or chosen, not {how!r}")
    return Token(token_id, parent, TYPED if how == "typed" else CHOSEN)


def read_settings(entry: Any) -> SamplingParams:
    """One entry of "settings", seed included."""
    names = {field.name for field in fields(SamplingParams)}
    if not isinstance(entry, dict) or not set(entry) <= names:
        raise ValueError(f"settings are an object of {', '.join(sorted(names))}, not {entry!r}")
    params = SamplingParams(**entry)
    if params.seed is None:
        raise ValueError(f"settings need a seed, and these have none: {entry!r}")
    return params


def whole(data: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """A whole number of the file between two limits."""
    value = data.get(name)
    if not is_whole(value) or not least <= value <= most:
        raise ValueError(f'"{name}" must be a whole number in {least}..{most}, not {value!r}')
    return value


def items(data: Mapping[str, Any], name: str) -> list[Any]:
    """A list of the file."""
    if not isinstance(data.get(name), list):
        raise ValueError(f'the file has no list "{name}"')
    return data[name]
