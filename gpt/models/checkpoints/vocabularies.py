"""Find, read and write the vocabulary of a checkpoint: BPE, a table of characters or words, or none."""

from __future__ import annotations

import re
import string
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpt.errors import GPTError, check_token_id, is_integer, require
from gpt.models.checkpoints import hugging_face_tokenizer as library
from gpt.models.checkpoints import tokenizer_formats as formats
from gpt.models.checkpoints.hugging_face_tokenizer import TOKENIZER_JSON
from gpt.models.checkpoints.tokenizer_formats import LIBRARY_FILES, MERGES_TXT, PAIRS, VOCAB_JSON, VOCAB_TXT, lines_of
from gpt.models.checkpoints.untrusted import read_json, read_pickle, reading
from gpt.tokenizer import END_OF_TEXT, PlainIds, Tokenizer, Vocabulary, gpt2_tokenizer, load_vocabulary, save_vocabulary

BPE, CHARACTERS, WORDS, NANOGPT = "vocab.tiktoken", "characters.json", "words.json", "meta.pkl"
FILES = (BPE, CHARACTERS, WORDS, NANOGPT, *LIBRARY_FILES, *PAIRS.values())
GPT2_SIZES = (50257, 50304)  # nanoGPT rounds up to a multiple of 64
MAX_LISTED_TOKENS = 80  # maximum number of tokens in an error message
VISIBLE = {"\n": "⏎", "\t": "⇥", " ": "␣"}
CONTROL = re.compile(r"<[^<>\s]+>|\[[A-Za-z_]+\]")  # control tokens such as <eos> and [PAD]
ENDS = ("<|endoftext|>", "<eos>", "<eot>", "<end>", "</s>", "[eos]", "[end]")
UNKNOWN = ("<unk>", "<|unk|>", "[unk]", "<unknown>")
WORD = re.compile(r"\s|\w+|--|[^\w\s]")  # words, punctuation marks and spaces
MAX_PADDING = 256
# Names of entries that contain a table, in a checkpoint or a nested dictionary. Tables may map in either direction.
TABLE = re.compile(
    r"itos|stoi|(id|idx|int)(_to_|2)(char|word|token|str)|(char|word|token|str)(_to_|2)(id|idx|int)"
    r"|vocab(ulary)?|char(acter)?s|alphabet"
)


def find_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Read the vocabulary in a folder for a model with n_vocab tokens. If there is none, guess GPT-2's, or return ids.

    Also reads SETTINGS_FILES and config.json, but not the weights. Ids missing from the vocabulary become tokens such
    as "<50300>". Raises ValueError if a file is damaged, has another format, or has more tokens than the model.
    """
    found: Tokenizer | TokenTable
    files = {name for name in FILES if (folder / name).is_file()}
    file = next((name for name in LIBRARY_FILES if {name, PAIRS.get(name, name)} <= files), None)
    is_list = file == VOCAB_TXT and files.isdisjoint((BPE, CHARACTERS, WORDS))
    lines = lines_of(folder / VOCAB_TXT) if is_list else []  # of WordPiece, or characters or words
    if BPE in files:
        found = load_vocabulary(folder / BPE)
    elif CHARACTERS in files:
        found = Characters(read_json(folder / CHARACTERS, list))
    elif WORDS in files:
        found = Words(read_json(folder / WORDS, list))
    elif file is not None and (not lines or "[UNK]" in lines or any(line.startswith("##") for line in lines)):
        with reading(file, "vocabulary.invalid"):
            return formats.read_hugging_face_tokenizer(folder, file, n_vocab)
    elif NANOGPT in files:
        with reading(NANOGPT, "vocabulary.invalid"):
            tokens = tokens_of(read_pickle(folder / NANOGPT)["itos"])
            require(tokens, "vocabulary.invalid", file=NANOGPT, reason="itos")
            found = token_table(tokens or ())
    elif lines:
        found = token_table(lines)
    elif VOCAB_JSON in files and (table := table_inside({"vocab": read_json(folder / VOCAB_JSON, object)}, n_vocab)):
        found = token_table(table)
    elif others := files & {VOCAB_JSON, MERGES_TXT}:  # which cannot be read on their own
        raise GPTError("vocabulary.not_read", file=max(others), needed=TOKENIZER_JSON)
    elif n_vocab in GPT2_SIZES:
        found = gpt2_tokenizer()
    else:
        return PlainIds(n_vocab)
    return pad_vocabulary(found, n_vocab)


def read_vocabulary(folder: Path, entries: Mapping[str, object], n_vocab: int) -> Vocabulary:
    """Return the vocabulary among a checkpoint's entries or in its folder, for a model with n_vocab tokens."""
    if table := table_inside(entries, n_vocab):
        return pad_vocabulary(token_table(table), n_vocab)
    config = entries.get("config")
    dataset = str(config.get("dataset", ".") if isinstance(config, dict) else ".")
    data = folder.resolve().parent / "data" / dataset  # in nanoGPT
    if data.name == dataset and data.is_dir() and not any((folder / name).is_file() for name in FILES):
        folder = data
    return vocabulary_or_ids(lambda: find_vocabulary(folder, n_vocab), n_vocab)


def vocabulary_or_ids(read: Callable[[], Vocabulary], n_vocab: int) -> Vocabulary:
    """Return a vocabulary, or ids, with a warning, if it cannot be read."""
    try:
        return read()
    except GPTError as problem:
        warnings.warn(f"the vocabulary cannot be read, so tokens are shown as ids: {problem}", stacklevel=2)
        return PlainIds(n_vocab, problem)


def pad_vocabulary(found: Tokenizer | TokenTable, n_vocab: int) -> Tokenizer | TokenTable:
    """Pad a vocabulary to n_vocab tokens. Raises ValueError if it is larger."""
    if found.n_vocab == n_vocab:
        return found
    require(found.n_vocab <= n_vocab, "vocabulary.size", n=found.n_vocab, n_vocab=n_vocab)
    return found.padded(n_vocab)


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """Write a vocabulary, except for `PlainIds`, to files that `find_vocabulary` reads.

    A tiktoken vocabulary with special tokens other than end-of-text is written as GPT-2's two files.
    """
    if isinstance(vocabulary, TokenTable):
        library.write_json(folder / (WORDS if isinstance(vocabulary, Words) else CHARACTERS), vocabulary.tokens)
    elif isinstance(vocabulary, Tokenizer):
        ranks = vocabulary.encoding._mergeable_ranks
        special = {name: i for name, i in vocabulary.special_names.items() if name != f"<{i}>"}
        if special == {END_OF_TEXT: len(ranks)}:
            save_vocabulary(ranks, folder / BPE)
        else:
            formats.write_gpt2_files(vocabulary, folder)
    elif isinstance(vocabulary, library.HuggingFaceTokenizer):
        vocabulary.write(folder)


class TokenTable(Vocabulary):
    """A vocabulary that lists each token's text. Names such as <eos> are control tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens, self.n_vocab = tokens_of(tokens) or [], len(tokens)
        require(self.tokens, "vocabulary.table")
        self._ids = {token: token_id for token_id, token in enumerate(tokens)}
        self.special_ids = frozenset(i for token, i in self._ids.items() if len(token) > 1 and CONTROL.fullmatch(token))
        self._plain = [token for token, i in self._ids.items() if i not in self.special_ids]
        named = {token.lower(): i for token, i in self._ids.items() if i in self.special_ids}
        self.eot_id = next((named[name] for name in ENDS if name in named), None)
        self.eot_ids = frozenset() if self.eot_id is None else frozenset({self.eot_id})
        self.unknown_id = next((named[name] for name in UNKNOWN if name in named), None)

    def split(self, text: str) -> Iterator[str]:
        """Split a text into parts that should each be a token: characters by default."""
        return iter(text)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. Unknown parts become <unk>; raises ValueError if there is no <unk>."""
        ids = [self._ids.get(part, self.unknown_id) for part in self.split(text)]
        if None in ids:
            part, plain = next(part for part in self.split(text) if part not in self._ids), self._plain
            known = (" " if max(map(len, plain)) > 1 else "").join(map(visible, plain[:MAX_LISTED_TOKENS]))
            known += "…" if len(plain) > MAX_LISTED_TOKENS else ""
            raise GPTError("vocabulary.unknown", part=visible(part), n=len(plain), known=known)
        return [token_id for token_id in ids if token_id is not None]

    def padded(self, n_vocab: int) -> TokenTable:
        """Return this vocabulary with n_vocab tokens. Further ids become control tokens such as "<65>"."""
        return type(self)([*self.tokens, *(f"<{i}>" for i in range(self.n_vocab, n_vocab))])

    def as_library_vocabulary(self) -> library.HuggingFaceTokenizer:
        """Return a vocabulary that gives the same ids.

        One difference remains: if a table contains both cases, a word that it has in lower case only must be typed so.
        """
        is_lower = isinstance(self, Words) and all(token == token.lower() for token in self._plain)
        roles = {"eos_token": self.eot_id, "unk_token": self.unknown_id}
        names = {role: self.tokens[i] for role, i in roles.items() if i is not None}
        spaced = {"type": "WordPiece", "prefix": "##", "cleanup": True}
        content = {
            "normalizer": {"type": "Lowercase"} if is_lower else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": self._splitters()},
            "decoder": spaced if self.strips_space else {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": self._ids, "unk_token": names.get("unk_token", "<unk>")},
        }
        control = [{"id": i, "content": self.tokens[i], "special": True} for i in sorted(self.special_ids)]
        return library.HuggingFaceTokenizer(content, self.n_vocab, TOKENIZER_JSON, tokens=names, more=control)

    def _splitters(self) -> list[dict[str, Any]]:
        """Return what `split` does as parts of a tokenizer.json."""
        return [library.splitter(r"[\s\S]")]

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        token = self.tokens[token_id]
        is_word = self.strips_space and not token.isspace() and token not in string.punctuation
        return (f" {token}" if is_word else token).encode("utf-8", "replace")


class Characters(TokenTable):
    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        require(not any(len(token) > 1 for token in self._plain), "vocabulary.table")


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
            parts = [chunk] if is_token else WORD.findall(chunk)
            yield from (self._known(part) for part in parts if part in self._ids or not part.isspace())

    def _splitters(self) -> list[dict[str, Any]]:
        plain = self._plain
        spaces = "".join(re.escape(token) for token in plain if len(token) == 1 and token.isspace())
        joined = [re.escape(token) for token in plain if not WORD.fullmatch(token)]
        whole = [rf"\A(?:{'|'.join(joined)})\z"] if joined else []
        return [
            library.splitter(rf"[^\S{spaces}]", "Removed"),
            library.splitter(r"\s"),
            library.splitter("|".join([*whole, WORD.pattern])),
        ]

    def _known(self, word: str) -> str:
        return word.lower() if word not in self._ids and word.lower() in self._ids else word


def visible(text: str) -> str:
    """Make text readable in an error message: show white space as marks and invisible characters as code points."""
    unseen = {each for each in text if not each.isprintable() or unicodedata.category(each).startswith("M")}
    marks = {each: f"[U+{ord(each):04X}]" for each in unseen} | VISIBLE
    return "".join(marks.get(each, each) for each in text)


def token_table(tokens: Sequence[str]) -> TokenTable:
    """Return Characters if every token except control tokens is a single character, else Words."""
    is_long = (isinstance(token, str) and len(token) > 1 and not CONTROL.fullmatch(token) for token in tokens)
    return Words(tokens) if any(is_long) else Characters(tokens)


def table_inside(entries: Mapping[str, object], n_vocab: int) -> list[str] | None:
    """Find the table for a model with n_vocab tokens among a checkpoint's entries and its nested dictionaries.

    The table may lack a few tokens, because embeddings are often padded; see MAX_PADDING. Skips byte-level BPE, in
    which words begin with "Ġ"; alone, this is a letter of Maltese.
    """
    places = (entries, *(value for value in entries.values() if isinstance(value, Mapping)))
    named = (value for place in places for name, value in place.items() if TABLE.fullmatch(str(name)))
    found = [tokens_of(table) or [] for table in named]
    fitting = [tokens for tokens in found if tokens and 0 <= n_vocab - len(tokens) < MAX_PADDING]
    texts = [each for each in fitting if not any(token.startswith("Ġ") and token != "Ġ" for token in each)]
    return max(texts, key=len, default=None)


def tokens_of(table: object) -> list[str] | None:
    """Return the tokens in order of id, or None unless the table has one string for each id, starting at 0.

    table: A list or a string of tokens, or a dictionary that maps tokens to ids or ids (strings in JSON) to tokens.
    """
    if isinstance(table, Mapping):
        if all(is_integer(value) for value in table.values()):
            by_id = {value: key for key, value in table.items()}
        else:
            by_id = {int(key) if str(key).isdecimal() else key: value for key, value in table.items()}
        table = [by_id.get(token_id) for token_id in range(len(table))]
    tokens = list(table) if isinstance(table, str | list | tuple) else []
    is_table = all(isinstance(token, str) for token in tokens) and len(set(tokens)) == len(tokens)
    return tokens if tokens and is_table else None
