"""Read stories from a file, split them, train a vocabulary, and make batches of token ids."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tokenizers import Regex, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Trainable

from gpt.errors import GPTError
from gpt.models.checkpoints.token_table import Characters
from gpt.tokenizer import END_OF_TEXT, GPT2_PATTERN, Tokenizer, Vocabulary, load_vocabulary, save_vocabulary


def training_text(text: str) -> str:
    r"""Clean a text for training: remove the byte order mark, end lines with \n, and turn lone surrogates into U+FFFD.

    Many Windows editors write the mark U+FEFF at the start of a file. It is not part of the text, but it survives
    decoding as "utf-8" and pasting.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace_surrogate").decode()


def decode_text(data: bytes, name: object) -> str:
    """Decode a UTF-8 file to its `training_text`. Raises ValueError, naming the file, if it is not valid UTF-8."""
    try:
        return training_text(data.decode())
    except UnicodeDecodeError as error:
        raise GPTError(
            "training.file_not_utf8",
            "{file} is not UTF-8 text: byte {byte} is not part of a character",
            file=name,
            byte=error.start,
        ) from None


def read_text(path: Path | str) -> str:
    """Read the `training_text` of a UTF-8 file. Raises ValueError if the file cannot be read or contains no text."""
    path = Path(path)
    if not path.is_file():
        raise GPTError("training.no_file", "there is no file {path}", path=path)
    text = decode_text(path.read_bytes(), path)
    if not text.replace(END_OF_TEXT, "").strip():
        raise GPTError("training.no_text", "{path} contains no text", path=path)
    return text


def read_stories(path: Path | str) -> list[str]:
    """Read the stories in a UTF-8 file, which are separated by <|endoftext|>. Strips them and drops empty ones.

    Raises the same errors as `read_text`.
    """
    stories = (story.strip() for story in read_text(path).split(END_OF_TEXT))
    return [story for story in stories if story]


def split_stories(stories: list[str], held_back: float, seed: int) -> tuple[list[str], list[str]]:
    """Shuffle the stories and split them into (training, validation), with at least one story each.

    held_back: fraction of the stories for validation. A single story is split instead, holding back its end, at least
    one character.
    """
    if len(stories) == 1:
        cut = min(max(1, int(len(stories[0]) * (1 - held_back))), len(stories[0]) - 1)
        return [stories[0][:cut]], [stories[0][cut:]]
    order = np.random.default_rng(seed).permutation(len(stories))
    n = min(max(1, round(len(stories) * held_back)), len(stories) - 1)
    return [stories[i] for i in order[n:]], [stories[i] for i in order[:n]]


def fingerprint(stories: list[str]) -> str:
    """Return the SHA-256 hash of the stories in their order."""
    return hashlib.sha256(END_OF_TEXT.join(stories).encode()).hexdigest()


def train_vocabulary(stories: list[str], vocab_size: int) -> dict[bytes, int]:
    """Train byte-level BPE with GPT-2's word pattern, and return {token bytes: id} for vocab_size - 1 tokens.

    The last id is reserved for end-of-text. The vocabulary is smaller if no pairs remain to be merged. Source:
    Sennrich et al., arXiv 1508.07909. Raises ValueError for vocab_size below 257.
    """
    if vocab_size < 257:
        raise GPTError(
            "training.vocabulary_size",
            "vocab_size must be at least 257 (256 bytes and end-of-text), not {n}",
            n=vocab_size,
        )
    bpe = Trainable(models.BPE())
    pattern = Regex(GPT2_PATTERN.replace("++", "+"))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    bpe.train_from_iterator(stories, trainer)  # breaks ties by id, so the same text gives the same tokens
    byte_of = {char: byte for byte, char in enumerate(_byte_alphabet())}
    return {bytes(byte_of[char] for char in token): rank for token, rank in bpe.get_vocab().items()}


def train_tokenizer(stories: list[str], vocab_size: int) -> Tokenizer:
    """Train a vocabulary on stories and return it, reloaded from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.tiktoken"
        save_vocabulary(train_vocabulary(stories, vocab_size), path)
        return load_vocabulary(path)


def character_vocabulary(stories: list[str], vocab_size: int) -> Characters:
    """Return a vocabulary of <unk>, the most frequent characters in the stories in descending order, and end-of-text.

    The vocabulary is smaller than vocab_size if the stories have fewer characters.
    """
    found = Counter(character for story in stories for character in story).most_common(vocab_size - 2)
    return Characters(["<unk>", *(character for character, _ in found), END_OF_TEXT])


def _byte_alphabet() -> list[str]:
    """Return the printable character that GPT-2's byte-level BPE uses for each byte (see GPT-2's encoder.py)."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def encode_stories(stories: list[str], tokenizer: Vocabulary, block_size: int, part: str) -> list[np.ndarray]:
    """Return the int32 ids of each story, preceded by end-of-text. Raises ValueError if there are too few ids.

    part: name of this part of the text, for the error message."""
    documents = [np.array([tokenizer.eot_id, *tokenizer.encode(story)], dtype=np.int32) for story in stories]
    n_tokens = sum(map(len, documents))
    if n_tokens <= block_size:
        raise GPTError(
            "training.part_too_short",
            "the {part} text has {n} tokens: fewer than one context of {block_size} plus one",
            part=part,
            n=n_tokens,
            block_size=block_size,
        )
    return documents


class StoryRows:
    """Training rows of block_size + 1 ids, most of which start at the beginning of a story.

    An epoch shuffles the stories, each preceded by end-of-text, and concatenates them. A row starts with a story
    and continues with the following stories. If its end truncates a story, the next row starts with that story. A story
    that is longer than a row continues in rows that start half a context apart, as in evaluation. A quarter of the rows
    omit the first end-of-text, and a tenth start inside a story, so that the model accepts prompts without end-of-text.
    Raises ValueError if the text is shorter than one row.
    """

    def __init__(self, stories: list[str], tokenizer: Vocabulary, block_size: int, seed: int) -> None:
        self.documents = encode_stories(stories, tokenizer, block_size, "training")
        self.block_size, self.seed = block_size, seed

    def epoch(self, number: int) -> np.ndarray:
        """Return all rows of one epoch in a random order that depends only on the seed: (n, block_size + 1)."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(len(self.documents))
        stream = np.concatenate([self.documents[i] for i in order])
        width = self.block_size + 1
        starts: list[int] = []
        begin = 0
        for i in order:
            end = begin + len(self.documents[i])
            if not starts or end > starts[-1] + width:  # truncated in the previous row
                starts.append(begin)
                while end > starts[-1] + width:
                    starts.append(starts[-1] + self.block_size // 2)
            begin = end
        at = np.array(starts)
        kind = rng.random(len(at))
        at += kind < 0.25
        at += np.where(kind > 0.9, rng.integers(0, self.block_size // 2, len(at)), 0)
        at = np.minimum(at, len(stream) - width)
        return stream[rng.permutation(at)[:, None] + np.arange(width)]

    def batches(self, batch_size: int, start: int = 0) -> Iterator[np.ndarray]:
        """Yield batches (batch_size, block_size + 1) indefinitely, starting with batch number `start`."""
        done, number, rest = 0, 0, np.empty((0, self.block_size + 1), dtype=np.int32)
        while True:
            rest = np.concatenate([rest, self.epoch(number)])
            number += 1
            while len(rest) >= batch_size:
                if done >= start:
                    yield rest[:batch_size]
                rest = rest[batch_size:]
                done += 1
