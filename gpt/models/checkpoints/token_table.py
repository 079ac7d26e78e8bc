"""Vocabularies that are a table: a token for each character or each word, as small GPTs are trained with."""

from __future__ import annotations

import re
import string
import unicodedata
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from gpt.checks import check_token_id, is_integer
from gpt.errors import GPTError
from gpt.tokenizer import Vocabulary

MAX_LISTED_TOKENS = 80  # of a vocabulary, in an error message
VISIBLE = {"\n": "⏎", "\t": "⇥", " ": "␣"}
CONTROL = re.compile(r"<[^<>\s]+>|\[[A-Za-z_]+\]")  # control tokens among characters or words: <eos>, [PAD]
ENDS = ("<|endoftext|>", "<eos>", "<eot>", "<end>", "</s>", "[eos]", "[end]")
UNKNOWN = ("<unk>", "<|unk|>", "[unk]", "<unknown>")
# Entries of a checkpoint, and of dictionaries in it, that hold a table. Either direction is understood.
TABLES = (
    *("itos", "stoi", "idx_to_char", "char_to_idx", "idx2char", "char2idx", "int_to_char", "char_to_int"),
    *("id_to_token", "token_to_id", "idx2word", "word2idx", "idx_to_word", "word_to_idx", "int_to_str", "str_to_int"),
    *("vocab", "vocabulary", "chars", "characters", "alphabet"),
)


def ambiguous_table() -> GPTError:
    """Return the error of a table that does not list each token once."""
    return GPTError("vocabulary.table", "a vocabulary of characters or words must list each of them once")


class TokenTable(Vocabulary):
    """A vocabulary that lists the text of each token. Names such as <eos> are control tokens.

    Raises ValueError unless the tokens are texts, each once.
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
        """Yield the parts of a text that are tokens, unless they are unknown."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. A part that the table lacks is its <unk>; without one, it raises ValueError."""
        ids = [self._ids.get(part, self.unknown_id) for part in self.split(text)]
        if None in ids:
            raise self.unknown(next(part for part in self.split(text) if part not in self._ids))
        return [token_id for token_id in ids if token_id is not None]

    @abstractmethod
    def unknown(self, part: str) -> GPTError:
        """Return the error for a part that the table lacks."""

    def listed(self, separator: str) -> str:
        """Return the first tokens, for an error message."""
        more = "…" if self.n_vocab > MAX_LISTED_TOKENS else ""
        return separator.join(visible(token) for token in self.tokens[:MAX_LISTED_TOKENS]) + more

    def decode(self, ids: list[int]) -> str:
        text = b"".join(map(self.token_bytes, ids)).decode("utf-8")
        return text.removeprefix(" ") if self.strips_space else text


class Characters(TokenTable):
    """One token for each character, as in nanoGPT's character models."""

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        if any(len(token) > 1 and token_id not in self.special_ids for token, token_id in self._ids.items()):
            raise ambiguous_table()

    def split(self, text: str) -> Iterator[str]:
        return iter(text)

    def unknown(self, part: str) -> GPTError:
        part, known = visible(part), self.listed("")
        return GPTError(
            "vocabulary.unknown_character",
            "this model does not know “{character}”: it was trained on {n} characters: {known}",
            character=part,
            n=self.n_vocab,
            known=known,
        )

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return self.tokens[token_id].encode("utf-8", "replace")


class Words(TokenTable):
    """One token for each word and punctuation mark.

    A text is split at spaces; a part that the table lacks is split further, into words and punctuation marks. A word
    that is known in lower case only is read as that. If the table has no token for the space, spaces are left out when
    a text is encoded, and each word but no punctuation mark gets one before it when it is decoded.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        self.strips_space = " " not in self._ids

    def split(self, text: str) -> Iterator[str]:
        for chunk in re.findall(r"\s|\S+", text):
            is_token = self._ids.get(self._known(chunk), -1) not in {-1, *self.special_ids}  # <eos> is characters here
            parts = [chunk] if is_token else re.findall(r"\s|\w+|--|[^\w\s]", chunk)
            yield from (self._known(part) for part in parts if part in self._ids or not part.isspace())

    def unknown(self, part: str) -> GPTError:
        return GPTError(
            "vocabulary.unknown_word",
            "this model does not know the word “{word}”: it was trained on {n:,} words: {known}",
            word=part,
            n=self.n_vocab,
            known=self.listed(" "),
        )

    def _known(self, word: str) -> str:
        return word if word in self._ids else word.lower() if word.lower() in self._ids else word

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        token = self.tokens[token_id]
        is_word = self.strips_space and not token.isspace() and token not in string.punctuation
        return (f" {token}" if is_word else token).encode("utf-8", "replace")


def visible(text: str) -> str:
    """Return a text for an error message: marks for white space, code points for what would not be seen."""

    def mark(character: str) -> str:
        unseen = not character.isprintable() or unicodedata.category(character).startswith("M")
        return VISIBLE.get(character) or (f"[U+{ord(character):04X}]" if unseen else character)

    return "".join(map(mark, text))


def token_table(tokens: Sequence[str]) -> TokenTable:
    """Return the vocabulary of these tokens: of characters, if none but control tokens is longer, else of words."""
    is_long = (isinstance(token, str) and len(token) > 1 and not CONTROL.fullmatch(token) for token in tokens)
    return Words(tokens) if any(is_long) else Characters(tokens)


def table_inside(entries: Mapping[str, object], n_vocab: int) -> list[str] | None:
    """Return the table of a model with n_vocab tokens among the entries of a checkpoint and of dictionaries in it."""
    for place in (entries, *(value for value in entries.values() if isinstance(value, Mapping))):
        for name in TABLES:
            if (tokens := tokens_of(place.get(name))) is not None and len(tokens) == n_vocab:
                return tokens
    return None


def tokens_of(table: object) -> list[str] | None:
    """Return the tokens in the order of their ids; None unless the table gives each id from 0 on one text.

    table: A list or text of tokens, or a dictionary from tokens to ids or from ids (in JSON, as text) to tokens.
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
    """Return the values if they are texts, each once."""
    texts = [value for value in values if isinstance(value, str)]
    return texts if texts and len(set(texts)) == len(values) else None
