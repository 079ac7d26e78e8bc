"""From a file of stories to batches of token ids: splitting, the vocabulary, the rows of an epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gpt.errors import GPTError
from gpt.tokenizer import END_OF_TEXT, GPT2_PATTERN, Tokenizer, Vocabulary, load_vocabulary, save_vocabulary


def read_stories(path: Path | str) -> list[str]:
    """The documents of a UTF-8 file, each followed by a line <|endoftext|>; stripped, empty ones left out.

    A file without that line is one document. Raises ValueError for a file that cannot be used.
    """
    path = Path(path)
    if not path.is_file():
        raise GPTError("training.no_file", path=path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GPTError("training.file_not_utf8", file=path, byte=error.start) from None
    stories = [story.strip() for story in text.split(END_OF_TEXT)]
    stories = [story for story in stories if story]
    if not stories:
        raise GPTError("training.no_text", path=path)
    return stories


def split_stories(stories: list[str], held_back: float, seed: int) -> tuple[list[str], list[str]]:
    """Shuffle, then hold back a share for validation: (training, validation), at least one story each.

    Of a single story the end is held back, at least a character.
    """
    if len(stories) == 1:
        cut = min(max(1, int(len(stories[0]) * (1 - held_back))), len(stories[0]) - 1)
        return [stories[0][:cut]], [stories[0][cut:]]
    order = np.random.default_rng(seed).permutation(len(stories))
    n = min(max(1, round(len(stories) * held_back)), len(stories) - 1)
    return [stories[i] for i in order[n:]], [stories[i] for i in order[:n]]


def fingerprint(stories: list[str]) -> str:
    """SHA-256 of the documents in their order: the same for the same text."""
    return hashlib.sha256(END_OF_TEXT.join(stories).encode()).hexdigest()


def train_vocabulary(stories: list[str], vocab_size: int) -> dict[bytes, int]:
    """Byte-level BPE with GPT-2's word pattern: {bytes of a token: id}, vocab_size - 1 of them.

    The last id is left for end-of-text. Fewer come back where the text has no more pairs to merge. Needs the
    tokenizers package (arXiv 1508.07909 describes the method).
    """
    if vocab_size < 257:
        raise GPTError("training.vocabulary_size", n=vocab_size)
    from tokenizers import Regex, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Trainable

    bpe = Trainable(models.BPE())
    pattern = Regex(GPT2_PATTERN.replace("++", "+"))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    bpe.train_from_iterator(stories, trainer)  # ties are broken by id: the same text gives the same tokens
    byte_of = {char: byte for byte, char in enumerate(_byte_alphabet())}
    return {bytes(byte_of[char] for char in token): rank for token, rank in bpe.get_vocab().items()}


def learn_tokenizer(stories: list[str], vocab_size: int) -> Tokenizer:
    """A vocabulary trained on these stories, read back from the format that it is kept in."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.tiktoken"
        save_vocabulary(train_vocabulary(stories, vocab_size), path)
        return load_vocabulary(path)


def _byte_alphabet() -> list[str]:
    """The printable character that GPT-2's byte-level BPE writes for each byte (its released encoder.py)."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def encode_stories(stories: list[str], tokenizer: Vocabulary, block_size: int, part: str) -> list[np.ndarray]:
    """Each story's ids after end-of-text, int32. `part` names the text in the ValueError if it is too short."""
    documents = [np.array([tokenizer.eot_id, *tokenizer.encode(story)], dtype=np.int32) for story in stories]
    n_tokens = sum(map(len, documents))
    if n_tokens <= block_size:
        raise GPTError("training.part_too_short", part=part, n=n_tokens, block_size=block_size)
    return documents


class Rows:
    """The rows of an epoch: block_size + 1 ids each, cut so that most start where a story starts.

    The stories of an epoch stand in a new order, each after its end-of-text token. A row starts at a
    story and runs on into the next; the one cut off at its end starts a row of its own; a story longer
    than a row goes on after half a context, as in evaluation. So that a prompt need not begin with
    end-of-text, a quarter of the rows leave it out and a tenth start somewhere inside their story.
    Raises ValueError if the text is shorter than one row.
    """

    def __init__(self, stories: list[str], tokenizer: Vocabulary, block_size: int, seed: int) -> None:
        self.documents = encode_stories(stories, tokenizer, block_size, "training")
        self.block_size, self.seed = block_size, seed

    def epoch(self, number: int) -> np.ndarray:
        """All rows of one epoch in a random order, (rows, block_size + 1); the same for the same seed."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(len(self.documents))
        stream = np.concatenate([self.documents[i] for i in order])
        width = self.block_size + 1
        starts: list[int] = []
        begin = 0
        for i in order:
            end = begin + len(self.documents[i])
            if not starts or end > starts[-1] + width:  # not whole in the row before
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
        """Batches (batch_size, block_size + 1) without end, from batch number `start` on."""
        done, number, rest = 0, 0, np.empty((0, self.block_size + 1), dtype=np.int32)
        while True:
            rest = np.concatenate([rest, self.epoch(number)])
            number += 1
            while len(rest) >= batch_size:
                if done >= start:
                    yield rest[:batch_size]
                rest = rest[batch_size:]
                done += 1
