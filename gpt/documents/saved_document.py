"""Save and load documents as JSON, with the token tree and the origin of each token, but without activations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from gpt.documents.document import TYPED, Origin, Token, TokenTree
from gpt.documents.edit_text import parse_edits
from gpt.edits import Edits
from gpt.errors import GPTError, is_integer, require
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams
from gpt.tokenizer import SPACES

FORMAT, VERSION = "glassbox-gpt document", 1
MAX_FILE_CHARS = 2**24
MAX_ID = 2**31  # larger numbers can have equal hashes, which would make a `TokenTree` slow


@dataclass(frozen=True)
class SavedDocument:
    """The contents of a document file.

    model: name of the model. vocab_size: the model's vocabulary size. tree: its first prompt_tokens nodes form the
    prompt. current: the last node of the current text. edits: in the format of `gpt.documents.edit_text`. dropped: ids
    before the first token (see `Document`). held: pairs of a node and the white space typed after it.
    """

    model: str
    vocab_size: int
    prompt_tokens: int
    current: int
    tree: TokenTree
    edits: str = ""
    dropped: Sequence[int] = ()
    held: Sequence[tuple[int, str]] = ()

    def to_json(self) -> str:
        """Serialise the document. Tokens with equal settings share one settings entry."""
        all_params = [token.origin.params for token in self.tree.tokens if token.origin.params is not None]
        settings, tokens = [*dict.fromkeys(all_params)], []
        for token in self.tree.tokens:
            origin = token.origin
            entry: dict[str, Any] = {"id": token.token_id, "after": token.parent, "how": origin.kind}
            entry |= {} if origin.params is None else {"settings": settings.index(origin.params)}
            entry |= {"held": origin.held} if origin.held else {}
            tokens.append(entry)
        written = {"settings": [params.given() for params in settings], "tokens": tokens}
        others = {name: value for name, value in vars(self).items() if name != "tree"}
        return json.dumps({"format": FORMAT, "version": VERSION} | others | written, indent=1)

    @classmethod
    def from_json(cls, text: str) -> SavedDocument:
        """Parse an untrusted file. Raises ValueError if it is invalid. `edits_for` compares it with a model."""
        require(len(text) <= MAX_FILE_CHARS, "document_file.too_long", n=len(text), limit=MAX_FILE_CHARS)
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise GPTError("document_file.not_json") from None
        data = data if isinstance(data, dict) else {}
        require(data.get("format") == FORMAT, "document_file.format", format=FORMAT)
        version = data.get("version")
        require(version == VERSION, "document_file.version", version=version, known=VERSION)
        try:
            settings = [SamplingParams(**entry) for entry in data["settings"]]
            given = {each.name: data[each.name] for each in fields(cls) if each.name in data}
            saved = cls(**given | {"tree": TokenTree([read_token(entry, settings) for entry in data["tokens"]])})
            require(saved._is_sound(), "document_file.damaged")
        except GPTError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError):
            raise GPTError("document_file.damaged") from None
        return saved

    def _is_sound(self) -> bool:
        """Return whether all numbers are in their ranges, and the first tokens are a typed prompt."""
        tokens, n = self.tree.tokens, len(self.tree)
        prompt = enumerate(tokens[: self.prompt_tokens])
        ids = [*self.dropped, *(token.token_id for token in tokens)]
        held = [*(text for _, text in self.held), *(token.origin.held for token in tokens)]
        return (
            isinstance(self.model, str)
            and isinstance(self.edits, str)
            and all(map(is_integer, (self.prompt_tokens, self.current, *ids)))
            and 1 <= self.prompt_tokens <= n
            and 0 <= self.current < n
            and all(0 <= token_id < self.vocab_size for token_id in ids)
            and all((token.origin, token.parent) == (TYPED, i - 1 if i else None) for i, token in prompt)
            and all(is_integer(node) and 0 <= node < n for node, _ in self.held)
            and not any(text.strip(SPACES + "\t") for text in held)
        )

    def edits_for(self, loaded: LoadedModel) -> Edits:
        """Compute any patches and return the edits. Raises ValueError if the document does not fit the model."""
        config = loaded.model.config
        n, n_vocab = self.vocab_size, config.vocab_size
        require(n == n_vocab, "document_file.vocabulary", n=n, model=loaded.name, n_vocab=n_vocab)
        length = 1 + max(self.tree.depths)
        require(length <= config.block_size + 1, "document_file.text_length", n=length, limit=config.block_size)
        for token_id in (*self.dropped, *(token.token_id for token in self.tree.tokens)):
            loaded.tokenizer.token_bytes(token_id)
        edits = parse_edits(self.edits, loaded.model, loaded.concepts)
        edits.check(config)
        return edits


def read_token(entry: dict[str, Any], settings: list[SamplingParams]) -> Token:
    require(is_integer(entry["id"]) and 0 <= entry["id"] < MAX_ID, "document_file.damaged")
    params = settings[entry["settings"]] if entry["how"] == "sampled" else None
    return Token(entry["id"], entry["after"], Origin(entry["how"], params, entry.get("held", "")))
