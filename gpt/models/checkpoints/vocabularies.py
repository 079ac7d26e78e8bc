"""Find, read and write the vocabulary of a checkpoint: BPE, a table of characters or words, or none."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

from gpt.checks import check_token_id
from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import (
    MERGES_TXT,
    TOKENIZER_JSON,
    VOCAB_JSON,
    bpe_tokenizer,
    special_tokens,
    write_gpt2_files,
)
from gpt.models.checkpoints.hugging_face_tokenizer import (
    HuggingFaceTokenizer,
    byte_level_tokenizer,
    library_file,
    read_hugging_face_tokenizer,
)
from gpt.models.checkpoints.other_vocabularies import SENTENCE_PIECE, VOCAB_TXT, is_bert, lines_of
from gpt.models.checkpoints.token_table import Characters, TokenTable, Words, table_inside, token_table, tokens_of
from gpt.models.checkpoints.tokenizer_json import wrong_size
from gpt.models.checkpoints.torch_file import read_pickle
from gpt.models.checkpoints.untrusted import read_bytes, read_json
from gpt.tokenizer import (
    END_OF_TEXT,
    Tokenizer,
    Vocabulary,
    gpt2_tokenizer,
    missing_bytes,
    parse_ranks,
    save_vocabulary,
    tiktoken_tokenizer,
)

BPE, CHARACTERS, WORDS, NANOGPT = "vocab.tiktoken", "characters.json", "words.json", "meta.pkl"
FILES = (BPE, VOCAB_JSON, MERGES_TXT, TOKENIZER_JSON, CHARACTERS, WORDS, NANOGPT, VOCAB_TXT, *SENTENCE_PIECE)
NOT_READ = (VOCAB_JSON, MERGES_TXT)  # cannot be read on their own
GPT2_SIZES = (50257, 50304)  # nanoGPT rounds up to a multiple of 64


class PlainIds(Vocabulary):
    """Vocabulary for models without a tokenizer: text is a list of token ids separated by spaces, such as "15 3 8".

    problem: why the model's vocabulary cannot be read, if it has one.
    """

    def __init__(self, n_vocab: int, problem: GPTError | None = None) -> None:
        self.n_vocab, self.problem = n_vocab, problem

    def encode(self, text: str) -> list[int]:
        ids = []
        for word in text.split():
            if not (word.isascii() and word.isdigit() and len(word) < 20):
                raise self._not_an_id(word[:20])
            check_token_id(int(word), self.n_vocab)
            ids.append(int(word))
        return ids

    def _not_an_id(self, word: str) -> GPTError:
        """Return the error for a word that is not a token id."""
        if self.problem is None:
            return GPTError("vocabulary.none", last=self.n_vocab - 1, word=word)
        return GPTError("vocabulary.unread", reason=self.problem, last=self.n_vocab - 1, word=word)

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return f" {token_id}".encode()


def find_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Read the vocabulary in a folder for a model with n_vocab tokens. If there is none, return `gpt2_or_ids(n_vocab)`.

    Also reads SETTINGS_FILES and config.json in the same folder, but not the weights, so a vocabulary can be checked
    before the weights are downloaded. Ids missing from the vocabulary become tokens such as "<50300>".

    Raises:
        ValueError: If a file is damaged, has an unsupported format, or has more tokens than the model.
    """
    found: Tokenizer | TokenTable
    file = library_file(folder)
    if (folder / BPE).is_file():
        ranks = parse_ranks(read_bytes(folder / BPE), BPE)
        if missing_bytes(ranks):
            return byte_level_tokenizer(ranks, n_vocab, BPE)
        found = tiktoken_tokenizer(ranks)
    elif (folder / CHARACTERS).is_file():
        found = Characters(read_json(folder / CHARACTERS, list))
    elif (folder / WORDS).is_file():
        found = Words(read_json(folder / WORDS, list))
    elif file is not None and (file != VOCAB_TXT or is_bert(lines_of(folder / file))):
        return read_hugging_face_tokenizer(folder, file, n_vocab)
    elif (folder / NANOGPT).is_file():
        found = read_nanogpt_meta(folder / NANOGPT)
    elif file is not None:
        found = token_table(lines_of(folder / file))
    elif (folder / VOCAB_JSON).is_file() and (table := read_table(folder / VOCAB_JSON, n_vocab)):
        found = token_table(table)
    elif others := [name for name in NOT_READ if (folder / name).is_file()]:
        raise GPTError("vocabulary.not_read", file=others[0], needed=TOKENIZER_JSON)
    else:
        return gpt2_or_ids(n_vocab)
    return pad_vocabulary(found, n_vocab)


def vocabulary_or_ids(read: Callable[[], Vocabulary], n_vocab: int) -> Vocabulary:
    """Return a vocabulary, or ids, with a warning, if it cannot be read."""
    try:
        return read()
    except GPTError as problem:
        warnings.warn(f"the vocabulary cannot be read, so tokens are shown as ids: {problem}", stacklevel=2)
        return PlainIds(n_vocab, problem)


def gpt2_or_ids(n_vocab: int) -> Vocabulary:
    """Return GPT-2's vocabulary if n_vocab is in GPT2_SIZES, else plain ids."""
    return pad_vocabulary(gpt2_tokenizer(), n_vocab) if n_vocab in GPT2_SIZES else PlainIds(n_vocab)


def pad_vocabulary(found: Tokenizer | TokenTable, n_vocab: int) -> Tokenizer | TokenTable:
    """Pad a vocabulary to n_vocab tokens. Raises ValueError if it is larger."""
    if found.n_vocab == n_vocab:
        return found
    if found.n_vocab > n_vocab:
        raise wrong_size(found.n_vocab, n_vocab)
    if isinstance(found, Tokenizer):
        return bpe_tokenizer(found.encoding._mergeable_ranks, special_tokens(found), n_vocab)
    return found.padded(n_vocab)


def read_table(path: Path, n_vocab: int) -> list[str] | None:
    """Return the characters or words in a JSON file, or None if it is a BPE vocabulary, in which words begin with Ġ."""
    content = read_json(path, object)
    table = table_inside({"vocab": content}, n_vocab)
    return None if table is None or any(token.startswith("Ġ") for token in table) else table


def read_nanogpt_meta(path: Path) -> TokenTable:
    """Read nanoGPT's meta.pkl: a pickled {"itos": {id: character}, ...}."""
    meta = read_pickle(path)
    tokens = tokens_of(meta.get("itos")) if isinstance(meta, dict) else None
    if tokens is None:
        raise GPTError("vocabulary.nanogpt", file=path.name)
    return token_table(tokens)


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """Write a vocabulary to files that `find_vocabulary` reads.

    A tiktoken vocabulary with special tokens other than end-of-text is written as GPT-2's two files. `PlainIds` needs
    no file."""
    if isinstance(vocabulary, TokenTable):
        text = json.dumps(vocabulary.tokens, ensure_ascii=False)
        (folder / (WORDS if isinstance(vocabulary, Words) else CHARACTERS)).write_text(text + "\n", encoding="utf-8")
    elif isinstance(vocabulary, Tokenizer):
        ranks = vocabulary.encoding._mergeable_ranks
        special = {name: i for name, i in special_tokens(vocabulary).items() if name != f"<{i}>"}
        if special == {END_OF_TEXT: len(ranks)}:
            save_vocabulary(ranks, folder / BPE)
        else:
            write_gpt2_files(vocabulary, folder)
    elif isinstance(vocabulary, HuggingFaceTokenizer):
        vocabulary.write(folder)
