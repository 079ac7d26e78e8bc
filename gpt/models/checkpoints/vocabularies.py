"""The vocabularies of checkpoints: BPE, single characters, or none."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from gpt.checks import check_token_id
from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import (
    MERGES_TXT,
    TOKENIZER_JSON,
    VOCAB_JSON,
    bpe_tokenizer,
    read_gpt2_files,
    read_tokenizer_file,
    special_tokens,
    write_gpt2_files,
)
from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer, read_hugging_face_tokenizer
from gpt.models.checkpoints.untrusted import read_bytes, read_json, read_pickle
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary, gpt2_tokenizer, parse_vocabulary, save_vocabulary

BPE, CHARACTERS, NANOGPT = "vocab.tiktoken", "characters.json", "meta.pkl"
FILES = (BPE, VOCAB_JSON, MERGES_TXT, TOKENIZER_JSON, CHARACTERS, NANOGPT)
MAX_LISTED_CHARACTERS = 80  # of a vocabulary, in an error message
VISIBLE = {"\n": "⏎", "\t": "⇥", " ": "␣"}
GPT2_SIZES = (50257, 50304)  # nanoGPT rounds up to a multiple of 64


class Characters(Vocabulary):
    """One token for each character, as in nanoGPT's character models. Raises ValueError for any other character."""

    def __init__(self, characters: list[str]) -> None:
        single = all(isinstance(character, str) and len(character) == 1 for character in characters)
        if not characters or not single or len(set(characters)) != len(characters):
            raise GPTError("vocabulary.characters")
        self.characters = characters
        self.n_vocab = len(characters)
        self._ids = {character: i for i, character in enumerate(characters)}

    def encode(self, text: str) -> list[int]:
        if unknown := [character for character in text if character not in self._ids]:
            more = "…" if self.n_vocab > MAX_LISTED_CHARACTERS else ""
            known = "".join(map(_visible, self.characters[:MAX_LISTED_CHARACTERS])) + more
            raise GPTError("vocabulary.unknown_character", character=_visible(unknown[0]), n=self.n_vocab, known=known)
        return [self._ids[character] for character in text]

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8")

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return self.characters[token_id].encode("utf-8", "replace")


def _visible(character: str) -> str:
    """Return a character for a terminal or a page: a mark for white space, a code point where nothing would be seen."""
    unseen = not character.isprintable() or unicodedata.category(character).startswith("M")
    return VISIBLE.get(character) or (f"[U+{ord(character):04X}]" if unseen else character)


class PlainIds(Vocabulary):
    """A text is token ids separated by spaces, "15 3 8"."""

    def __init__(self, n_vocab: int) -> None:
        self.n_vocab = n_vocab

    def encode(self, text: str) -> list[int]:
        ids = []
        for word in text.split():
            if not (word.isascii() and word.isdigit() and len(word) < 20):
                raise GPTError("vocabulary.none", last=self.n_vocab - 1, word=word[:20])
            check_token_id(int(word), self.n_vocab)
            ids.append(int(word))
        return ids

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode()

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return f" {token_id}".encode()


def find_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Read the vocabulary in a folder, for a model with n_vocab tokens; without one, as `gpt2_or_ids`.

    Ids of the model that the vocabulary lacks are tokens such as "<50300>". Raises ValueError if the files are damaged
    or have more tokens than the model.
    """
    found: Vocabulary
    if (folder / BPE).is_file():
        found = parse_vocabulary(read_bytes(folder / BPE), BPE)
    elif (folder / TOKENIZER_JSON).is_file():
        found = read_tokenizer_json(folder, n_vocab)
    elif (folder / VOCAB_JSON).is_file() and (folder / MERGES_TXT).is_file():
        found = read_gpt2_files(folder / VOCAB_JSON, folder / MERGES_TXT)
    elif (folder / CHARACTERS).is_file():
        found = Characters(read_json(folder / CHARACTERS, list))
    elif (folder / NANOGPT).is_file():
        found = read_nanogpt_meta(folder / NANOGPT)
    else:
        return gpt2_or_ids(n_vocab)
    return pad_vocabulary(found, n_vocab)


def read_tokenizer_json(folder: Path, n_vocab: int) -> Vocabulary:
    """Read tokenizer.json and the settings beside it: by tiktoken if it is of GPT-2's kind, else by its own library."""
    return read_tokenizer_file(folder / TOKENIZER_JSON) or read_hugging_face_tokenizer(folder, n_vocab)


def gpt2_or_ids(n_vocab: int) -> Vocabulary:
    """GPT-2's vocabulary for a model of its size, else plain ids."""
    return pad_vocabulary(gpt2_tokenizer(), n_vocab) if n_vocab in GPT2_SIZES else PlainIds(n_vocab)


def pad_vocabulary(found: Vocabulary, n_vocab: int) -> Vocabulary:
    """The vocabulary with exactly n_vocab tokens. Raises ValueError if it has more, or is not BPE and has fewer."""
    if found.n_vocab == n_vocab:
        return found
    if found.n_vocab > n_vocab or not isinstance(found, Tokenizer):
        raise GPTError("vocabulary.size", n=found.n_vocab, n_vocab=n_vocab)
    return bpe_tokenizer(found.encoding._mergeable_ranks, special_tokens(found), n_vocab)


def read_nanogpt_meta(path: Path) -> Characters:
    """Read nanoGPT's meta.pkl: a pickled {"itos": {id: character}, ...}."""
    meta = read_pickle(path)
    try:
        itos = meta["itos"]  # type: ignore[index]
        return Characters([itos[i] for i in range(len(itos))])
    except (LookupError, TypeError, ValueError) as error:
        raise GPTError("vocabulary.nanogpt", file=path.name, reason=error) from None


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """Write the file that `find_vocabulary` reads: that of the kind; for tiktoken with other special tokens than
    end-of-text GPT-2's two files, nothing for plain ids."""
    if isinstance(vocabulary, Characters):
        text = json.dumps(vocabulary.characters, ensure_ascii=False)
        (folder / CHARACTERS).write_text(text + "\n", encoding="utf-8")
    elif isinstance(vocabulary, Tokenizer):
        ranks = vocabulary.encoding._mergeable_ranks
        if special_tokens(vocabulary) == {END_OF_TEXT: len(ranks)}:
            save_vocabulary(ranks, folder / BPE)
        else:
            write_gpt2_files(vocabulary, folder)
    elif isinstance(vocabulary, HuggingFaceTokenizer):
        vocabulary.write(folder)
