"""A tokenized text as a dataset. The end of the text is held back for validation."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gpt.checks import check_choice
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.bpe_files import bpe_tokenizer
from gpt.models.checkpoints.token_table import Characters
from gpt.models.loading import LoadedModel
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary
from gpt.training.corpus import decode_text, training_text
from gpt.training.dataset import Sample
from gpt.training.evaluation import sample
from gpt.training.trainer import Batch

Units = Literal["characters", "bytes"]
MAX_TEXT_BYTES = 1_000_000
VALIDATION_ROWS = 32
MAX_EXAMPLE_TOKENS = 48
MAX_START_CHARS = 32
SAMPLE_TOKENS = 120
SHAKESPEARE = Path(__file__).parent.parent / "assets" / "shakespeare" / "input.txt.gz"


def shakespeare_text() -> str:
    """Return 40,000 lines of Shakespeare's plays (1,115,394 characters), the text of nanoGPT's character experiment."""
    return gzip.decompress(SHAKESPEARE.read_bytes()).decode()


def read_upload(data: bytes, name: str = "this file") -> str:
    """Decode an uploaded file. Raises ValueError if it is too large or not text."""
    if len(data) > MAX_TEXT_BYTES:
        raise GPTError(
            "training.file_too_large",
            "{file} has {n:,} bytes, more than the limit of {limit:,}",
            file=name,
            n=len(data),
            limit=MAX_TEXT_BYTES,
        )
    text = decode_text(data, name)
    if "\0" in text:
        raise GPTError("training.file_binary", "{file} is not text: it contains a zero byte", file=name)
    return text


class TextDataset:
    """A text that is split into rows of one context; see `gpt.training.dataset.Dataset`.

    units: whether each token is a character or a byte. held_back: fraction at the end of the text to hold back for
    validation, at least one context. start: the first line, or its first words. vocabulary: vocabulary of the model
    whose training continues; defaults to a new one created from the text. Raises ValueError if the text is too short,
    repeats a single character, or has a character that the vocabulary lacks.
    """

    def __init__(
        self,
        text: str,
        *,
        units: Units = "characters",
        block_size: int = 64,
        seed: int = 0,
        held_back: float = 0.1,
        name: str = "text",
        vocabulary: Vocabulary | None = None,
    ) -> None:
        check_choice("units", units, get_args(Units))
        text = training_text(text)
        if not text.strip():
            raise GPTError("training.empty_text", "the text is empty: there is nothing to learn from")
        self.name, self.seed, self.block_size = name, seed, block_size
        own = byte_vocabulary() if units == "bytes" else Characters(sorted(set(text)))
        self.vocabulary: Vocabulary = vocabulary or own
        ids = list(text.encode()) if units == "bytes" else self.vocabulary.encode(text)
        if len(ids) < (least := self.min_tokens(block_size)):
            raise GPTError(
                "training.text_too_short",
                "the text has {n:,} {units}: with a context of {block_size} it needs {least:,}",
                n=len(ids),
                units=units,
                block_size=block_size,
                least=least,
            )
        if len(set(ids)) < 2:
            raise GPTError("training.one_character", "the text repeats a single character: there is nothing to predict")
        self.start = first_words(text) if len(first_words(text).encode()) <= block_size // 2 else text[0]
        n_training = int(len(ids) * (1 - held_back))
        n_validation = min(max(len(ids) - n_training, block_size + 1), len(ids) - block_size - 1)
        tokens = torch.tensor(ids, dtype=torch.int32)
        self.training_ids, self.validation_ids = tokens[:-n_validation], tokens[-n_validation:]
        starts = np.linspace(0, n_validation - block_size - 1, VALIDATION_ROWS, dtype=int)
        self.validation = self._rows(self.validation_ids, starts)
        self.example = self.validation_ids[: min(block_size, MAX_EXAMPLE_TOKENS)].tolist()
        self.query = len(self.example) // 2

    @staticmethod
    def min_tokens(block_size: int) -> int:
        """Return the minimum text length, in tokens."""
        return 4 * (block_size + 1)

    def batch(self, step: int, size: int) -> Batch:
        """Return rows that start at random positions of the training part."""
        rng = np.random.default_rng([self.seed, step])
        return self._rows(self.training_ids, rng.integers(0, len(self.training_ids) - self.block_size, size))

    def _rows(self, tokens: Tensor, starts: np.ndarray) -> Batch:
        return Batch.of_rows(tokens[torch.from_numpy(starts)[:, None] + torch.arange(self.block_size + 1)])

    def accuracy(self, model: GPT) -> None:
        """Return None, because a text has no correct continuation."""

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        """Return the model's continuation of `start`."""
        text = sample(loaded, self.start, seed=self.seed, max_new_tokens=SAMPLE_TOKENS)
        return (Sample(self.start, text.removeprefix(self.start)),)


def byte_vocabulary() -> Tokenizer:
    """Return a vocabulary of the 256 bytes and end-of-text."""
    return bpe_tokenizer({bytes([byte]): byte for byte in range(256)}, {END_OF_TEXT: 256}, 257)


def first_words(text: str) -> str:
    """Return the first non-empty line of a text, or its first three words if it exceeds MAX_START_CHARS."""
    line = text.strip().split("\n")[0]
    return line if len(line) <= MAX_START_CHARS else " ".join(line.split(" ")[:3])[:MAX_START_CHARS]
