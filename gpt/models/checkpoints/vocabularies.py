"""The vocabularies that checkpoints come with: GPT-2's files, single characters, or none at all."""

from __future__ import annotations

import json
from pathlib import Path

from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import (
    MERGES,
    TOGETHER,
    WORDS,
    encoding,
    read_gpt2_files,
    read_tokenizer_file,
    specials,
    write_gpt2_files,
)
from gpt.models.checkpoints.untrusted import read_json, read_pickle
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary, gpt2_tokenizer, load_vocabulary, save_vocabulary

BPE, CHARACTERS, NANOGPT = "vocab.tiktoken", "characters.json", "meta.pkl"
FILES = (BPE, WORDS, MERGES, TOGETHER, CHARACTERS, NANOGPT)
SAID = 80  # characters of a vocabulary that are named where another one was asked for
MARKS = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "␍", " ": "␣"})
GPT2_SIZES = (50257, 50304)  # 50,304 is nanoGPT's: rounded up to a multiple of 64


class Characters:
    """A token for each character, as in nanoGPT's character models. Encoding any other is a ValueError."""

    eot_id = None

    def __init__(self, characters: list[str]) -> None:
        single = all(isinstance(character, str) and len(character) == 1 for character in characters)
        if not characters or not single or len(set(characters)) != len(characters):
            raise GPTError("vocabulary.characters")
        self.characters = characters
        self.n_vocab = len(characters)
        self._ids = {character: i for i, character in enumerate(characters)}

    def encode(self, text: str) -> list[int]:
        if unknown := [character for character in text if character not in self._ids]:
            known = "".join(self.characters[:SAID]) + ("…" if self.n_vocab > SAID else "")
            said, known = (text.translate(MARKS) for text in (unknown[0], known))
            raise GPTError("vocabulary.unknown_character", character=said, n=self.n_vocab, known=known)
        return [self._ids[character] for character in text]

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8")

    def token_bytes(self, token_id: int) -> bytes:
        check_id(token_id, self.n_vocab)
        return self.characters[token_id].encode("utf-8", "replace")


class PlainIds:
    """No vocabulary: a text is ids between spaces, "15 3 8". unfetched: there is one, but it could not be had."""

    eot_id = None

    def __init__(self, n_vocab: int, *, unfetched: bool = False) -> None:
        self.n_vocab, self.unfetched = n_vocab, unfetched

    def encode(self, text: str) -> list[int]:
        ids = []
        for word in text.split():
            if not (word.isascii() and word.isdigit() and len(word) < 20):
                if self.unfetched:
                    raise GPTError("vocabulary.unfetched", last=self.n_vocab - 1, word=word[:20])
                raise GPTError("vocabulary.none", last=self.n_vocab - 1, word=word[:20])
            check_id(int(word), self.n_vocab)
            ids.append(int(word))
        return ids

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode()

    def token_bytes(self, token_id: int) -> bytes:
        check_id(token_id, self.n_vocab)
        return f" {token_id}".encode()


def check_id(token_id: int, n_vocab: int) -> None:
    """Raise ValueError for an id outside of the vocabulary."""
    if not 0 <= token_id < n_vocab:
        raise GPTError("token.unknown", token=token_id, last=n_vocab - 1)


def find_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """The vocabulary beside a model with n_vocab tokens; else GPT-2's if the size is its, else plain ids.

    Rows of the model that no token belongs to (nanoGPT rounds up) are spelled "<50300>". Raises ValueError if the
    files are damaged or have more tokens than the model.
    """
    if (folder / BPE).is_file():
        found: Vocabulary = load_vocabulary(folder / BPE)
    elif (folder / WORDS).is_file() and (folder / MERGES).is_file():
        found = read_gpt2_files(folder / WORDS, folder / MERGES)
    elif (folder / TOGETHER).is_file():
        found = read_tokenizer_file(folder / TOGETHER)
    elif (folder / CHARACTERS).is_file():
        found = Characters(read_json(folder / CHARACTERS, list))
    elif (folder / NANOGPT).is_file():
        found = read_nanogpt_meta(folder / NANOGPT)
    else:
        return gpt2_or_ids(n_vocab)
    return fit(found, n_vocab)


def gpt2_or_ids(n_vocab: int) -> Vocabulary:
    """GPT-2's vocabulary for its size, if tiktoken has it or can fetch it; plain ids otherwise."""
    if n_vocab in GPT2_SIZES:
        try:
            return fit(gpt2_tokenizer(), n_vocab)
        except OSError:  # no copy and no network
            return PlainIds(n_vocab, unfetched=True)
    return PlainIds(n_vocab)


def fit(found: Vocabulary, n_vocab: int) -> Vocabulary:
    """A vocabulary with exactly the model's number of tokens."""
    if found.n_vocab == n_vocab:
        return found
    if found.n_vocab > n_vocab or not isinstance(found, Tokenizer):
        raise GPTError("vocabulary.size", n=found.n_vocab, n_vocab=n_vocab)
    return encoding(found.encoding._mergeable_ranks, specials(found), n_vocab)


def read_nanogpt_meta(path: Path) -> Characters:
    """nanoGPT's meta.pkl: a pickled {"itos": {id: character}, ...}."""
    meta = read_pickle(path)
    try:
        itos = meta["itos"]  # type: ignore[index]
        return Characters([itos[i] for i in range(len(itos))])
    except (LookupError, TypeError, ValueError) as error:
        raise GPTError("vocabulary.nanogpt", file=path.name, reason=error) from None


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """Write a vocabulary in the smallest of our forms, and take away what was there before."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    if isinstance(vocabulary, Characters):
        text = json.dumps(vocabulary.characters, ensure_ascii=False)
        (folder / CHARACTERS).write_text(text + "\n", encoding="utf-8")
    elif isinstance(vocabulary, Tokenizer):
        ranks = vocabulary.encoding._mergeable_ranks
        if specials(vocabulary) == {END_OF_TEXT: len(ranks)}:
            save_vocabulary(ranks, folder / BPE)
        else:
            write_gpt2_files(vocabulary, folder)
