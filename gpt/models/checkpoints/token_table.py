"""Vocabularies of small GPTs: a table with one token per character or per word."""

from __future__ import annotations

import re
import string
import unicodedata
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpt.checks import check_token_id, is_integer
from gpt.errors import GPTError
from gpt.tokenizer import Vocabulary

MAX_LISTED_TOKENS = 80  # maximum number of tokens in an error message
VISIBLE = {"\n": "⏎", "\t": "⇥", " ": "␣"}
CONTROL = re.compile(r"<[^<>\s]+>|\[[A-Za-z_]+\]")  # control tokens such as <eos> and [PAD]
ENDS = ("<|endoftext|>", "<eos>", "<eot>", "<end>", "</s>", "[eos]", "[end]")
UNKNOWN = ("<unk>", "<|unk|>", "[unk]", "<unknown>")
WORDS = re.compile(r"\s|\w+|--|[^\w\s]")  # words, punctuation marks and spaces
MAX_PADDING = 256
# Names of entries that contain a table, in a checkpoint or a nested dictionary. Tables may map in either direction.
TABLES = (
    *("itos", "stoi", "idx_to_char", "char_to_idx", "idx2char", "char2idx", "int_to_char", "char_to_int"),
    *("id_to_token", "token_to_id", "idx2word", "word2idx", "idx_to_word", "word_to_idx", "int_to_str", "str_to_int"),
    *("vocab", "vocabulary", "chars", "characters", "alphabet"),
)


def ambiguous_table() -> GPTError:
    """Return the error for a table that does not list each token exactly once."""
    return GPTError("vocabulary.table")


class TokenTable(Vocabulary):
    """A vocabulary that lists each token's text. Names such as <eos> are control tokens.

    Raises ValueError unless the tokens are distinct strings.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        found = different_texts(tokens)
        if found is None:
            raise ambiguous_table()
        self.tokens = found
        self.n_vocab = len(tokens)
        self._ids = {token: token_id for token_id, token in enumerate(tokens)}
        self.special_ids = frozenset(i for token, i in self._ids.items() if len(token) > 1 and CONTROL.fullmatch(token))
        named = {token.lower(): i for token, i in self._ids.items() if i in self.special_ids}
        self.eot_id = next((named[name] for name in ENDS if name in named), None)
        self.eot_ids = frozenset() if self.eot_id is None else frozenset({self.eot_id})
        self.unknown_id = next((named[name] for name in UNKNOWN if name in named), None)

    @abstractmethod
    def split(self, text: str) -> Iterator[str]:
        """Split a text into parts that should each be a token."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. Unknown parts become <unk>; raises ValueError if there is no <unk>."""
        ids = [self._ids.get(part, self.unknown_id) for part in self.split(text)]
        if None in ids:
            raise self.unknown(next(part for part in self.split(text) if part not in self._ids))
        return [token_id for token_id in ids if token_id is not None]

    def padded(self, n_vocab: int) -> TokenTable:
        """Return this vocabulary with n_vocab tokens. Further ids become control tokens such as "<65>"."""
        return type(self)([*self.tokens, *(f"<{i}>" for i in range(self.n_vocab, n_vocab))])

    def as_tokenizer_json(self) -> dict[str, Any]:
        """Return the contents of a tokenizer.json that gives the same ids.

        One difference remains: if a table contains both cases, a word that it has in lower case only must be typed so.
        """
        splits, is_lower = self._library_splits(), all(token == token.lower() for token in self._plain())
        unknown = "<unk>" if self.unknown_id is None else self.tokens[self.unknown_id]
        return {
            "version": "1.0",
            "added_tokens": [
                {"id": i, "content": self.tokens[i], "special": True, "normalized": False}
                | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
                for i in sorted(self.special_ids)
            ],
            "normalizer": {"type": "Lowercase"} if is_lower and isinstance(self, Words) else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
            "post_processor": None,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}
            if self.strips_space
            else {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": self._ids, "unk_token": unknown},
        }

    @abstractmethod
    def _library_splits(self) -> list[dict[str, Any]]:
        """Return what `split` does as parts of a tokenizer.json."""

    def _plain(self) -> list[str]:
        """Return the tokens that are not control tokens."""
        return [token for token, token_id in self._ids.items() if token_id not in self.special_ids]

    @abstractmethod
    def unknown(self, part: str) -> GPTError:
        """Return the error for a part that is missing from the table."""

    def listed(self, separator: str) -> str:
        """Return the first tokens in the vocabulary, for an error message."""
        plain = self._plain()
        more = "…" if len(plain) > MAX_LISTED_TOKENS else ""
        return separator.join(visible(token) for token in plain[:MAX_LISTED_TOKENS]) + more


class Characters(TokenTable):
    """One token for each character, as in nanoGPT's character models."""

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        if any(len(token) > 1 for token in self._plain()):
            raise ambiguous_table()

    def split(self, text: str) -> Iterator[str]:
        return iter(text)

    def _library_splits(self) -> list[dict[str, Any]]:
        return [library_split(r"[\s\S]")]

    def unknown(self, part: str) -> GPTError:
        part, known = visible(part), self.listed("")
        return GPTError("vocabulary.unknown_character", character=part, n=len(self._plain()), known=known)

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return self.tokens[token_id].encode("utf-8", "replace")


class Words(TokenTable):
    """One token for each word and punctuation mark.

    A text is split at spaces. Parts missing from the table are split further, into words and punctuation marks.
    Words that the table contains only in lower case are lower-cased. If the table has no token for the space, encoding
    omits spaces, and decoding puts a space before each word, but not before punctuation marks.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        self.strips_space = " " not in self._ids

    def split(self, text: str) -> Iterator[str]:
        for chunk in re.findall(r"\s|\S+", text):
            is_token = self._ids.get(self._known(chunk), -1) not in {-1, *self.special_ids}  # <eos> is plain text here
            parts = [chunk] if is_token else WORDS.findall(chunk)
            yield from (self._known(part) for part in parts if part in self._ids or not part.isspace())

    def _library_splits(self) -> list[dict[str, Any]]:
        plain = self._plain()
        spaces = "".join(re.escape(token) for token in plain if len(token) == 1 and token.isspace())
        joined = [re.escape(token) for token in plain if not WORDS.fullmatch(token)]
        whole = [rf"\A(?:{'|'.join(joined)})\z"] if joined else []
        return [
            library_split(rf"[^\S{spaces}]", "Removed"),
            library_split(r"\s"),
            library_split("|".join([*whole, WORDS.pattern])),
        ]

    def unknown(self, part: str) -> GPTError:
        return GPTError("vocabulary.unknown_word", word=part, n=len(self._plain()), known=self.listed(" "))

    def _known(self, word: str) -> str:
        return word if word in self._ids else word.lower() if word.lower() in self._ids else word

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        token = self.tokens[token_id]
        is_word = self.strips_space and not token.isspace() and token not in string.punctuation
        return (f" {token}" if is_word else token).encode("utf-8", "replace")


def library_split(pattern: str, behavior: str = "Isolated") -> dict[str, Any]:
    """Return a part of a tokenizer.json that splits texts by a pattern."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def visible(text: str) -> str:
    """Make text readable in an error message: show white space as marks and invisible characters as code points."""

    def mark(character: str) -> str:
        unseen = not character.isprintable() or unicodedata.category(character).startswith("M")
        return VISIBLE.get(character) or (f"[U+{ord(character):04X}]" if unseen else character)

    return "".join(map(mark, text))


def token_table(tokens: Sequence[str]) -> TokenTable:
    """Return Characters if every token except control tokens is a single character, else Words."""
    is_long = (isinstance(token, str) and len(token) > 1 and not CONTROL.fullmatch(token) for token in tokens)
    return Words(tokens) if any(is_long) else Characters(tokens)


def table_inside(entries: Mapping[str, object], n_vocab: int) -> list[str] | None:
    """Find the table for a model with n_vocab tokens among a checkpoint's entries and its nested dictionaries.

    The table may lack a few tokens, because embeddings are often padded; see MAX_PADDING.
    """
    places = (entries, *(value for value in entries.values() if isinstance(value, Mapping)))
    found = [tokens for place in places for name in TABLES if (tokens := tokens_of(place.get(name))) is not None]
    fitting = [tokens for tokens in found if 0 <= n_vocab - len(tokens) < MAX_PADDING]
    return max(fitting, key=len, default=None)


def tokens_of(table: object) -> list[str] | None:
    """Return the tokens in order of id, or None unless the table has one string for each id, starting at 0.

    table: A list or a string of tokens, or a dictionary that maps tokens to ids or ids (strings in JSON) to tokens.
    """
    if isinstance(table, str) and len(set(table)) == len(table):
        return list(table) or None
    if isinstance(table, list | tuple):
        return different_texts(table)
    if not isinstance(table, Mapping) or not table:
        return None
    if all(is_integer(value) for value in table.values()):
        by_id = {value: key for key, value in table.items()}
    else:
        by_id = {int(key) if isinstance(key, str) and key.isdecimal() else key: value for key, value in table.items()}
    return different_texts([by_id.get(token_id) for token_id in range(len(table))])


def different_texts(values: Sequence[object]) -> list[str] | None:
    """Return the values if they are distinct strings, else None."""
    texts = [value for value in values if isinstance(value, str)]
    return texts if texts and len(set(texts)) == len(values) else None
