"""Somebody's own text as material to learn from: checked, cut into tokens, its end held back."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import torch

from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.bpe_files import encoding
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.loading import LoadedModel
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary
from gpt.training.evaluation import sample
from gpt.training.learner import Batch
from gpt.training.tasks import RECIPE, Sample

Units = Literal["characters", "bytes"]
LARGEST = 1_000_000  # bytes
MOST_CHARACTERS = 512  # different ones
HELD_BACK = 0.1  # share of the text that is not trained on
TEST_ROWS = 32
SAMPLE_TOKENS = 120
TEXT_RECIPE = replace(RECIPE, block_size=64, batch_size=16, steps=1500)


def read_upload(data: bytes, name: str = "this file") -> str:
    """The text of an uploaded file. Raises ValueError if it is too large, empty or no text."""
    if len(data) > LARGEST:
        raise GPTError("training.file_too_large", file=name, n=len(data), limit=LARGEST)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GPTError("training.file_not_utf8", file=name, byte=error.start) from None
    if "\0" in text:
        raise GPTError("training.file_binary", file=name)
    return text


class TextMaterial:
    """A text as batches; see `gpt.training.live_run.Material`.

    units: a token for each character, or for each byte. The last tenth is held back, a context at least.
    Raises ValueError for a text that is too long or too short, or has too many different characters.
    """

    name = "text"

    def __init__(self, text: str, *, units: Units = "characters", block_size: int = 64, seed: int = 0) -> None:
        if units not in get_args(Units):
            raise GPTError("argument.choice", name="units", choices=", ".join(get_args(Units)), value=units)
        text = text.replace("\r\n", "\n").encode("utf-8", "replace_surrogate").decode()
        if not text.strip():
            raise GPTError("training.empty_text")
        if (n_bytes := len(text.encode())) > LARGEST:
            raise GPTError("training.text_too_large", n=n_bytes, limit=LARGEST)
        self.seed, self.block_size, self.start = seed, block_size, text[0]
        self.vocabulary: Vocabulary = every_byte() if units == "bytes" else characters_of(text)
        ids = list(text.encode()) if units == "bytes" else self.vocabulary.encode(text)
        if len(ids) < (least := self.least(block_size)):
            raise GPTError("training.text_too_short", n=len(ids), units=units, block_size=block_size, least=least)
        if len(set(ids)) < 2:
            raise GPTError("training.one_character")
        held_back = max(int(len(ids) * HELD_BACK), block_size + 1)
        tokens = torch.tensor(ids, dtype=torch.int16)  # no vocabulary here is larger
        self.training, self.testing = tokens[:-held_back], tokens[-held_back:]
        starts = np.linspace(0, held_back - block_size - 1, TEST_ROWS, dtype=int)
        self.held_back = self.rows(self.testing, starts)
        self.watched = self.testing[: min(block_size, 48)].tolist()

    @staticmethod
    def least(block_size: int) -> int:
        """Tokens that a text must have."""
        return 4 * (block_size + 1)

    def batch(self, step: int, size: int) -> Batch:
        """Rows from anywhere in the training part."""
        rng = np.random.default_rng([self.seed, step])
        return self.rows(self.training, rng.integers(0, len(self.training) - self.block_size, size))

    def rows(self, tokens: torch.Tensor, starts: np.ndarray) -> Batch:
        """One context from each start, and the tokens that follow."""
        rows = tokens[torch.from_numpy(starts)[:, None] + torch.arange(self.block_size + 1)].long()
        return Batch(rows[:, :-1], rows[:, 1:])

    def accuracy(self, model: GPT) -> None:
        """A text has no right answer."""
        return None

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        """What the model writes after the first character of the text."""
        text = sample(loaded, self.start, seed=self.seed, max_new_tokens=SAMPLE_TOKENS)
        return (Sample(self.start, text.removeprefix(self.start)),)


def every_byte() -> Tokenizer:
    """A vocabulary of the 256 bytes and end-of-text."""
    return encoding({bytes([byte]): byte for byte in range(256)}, {END_OF_TEXT: 256}, 257)


def characters_of(text: str) -> Characters:
    """A vocabulary of the characters of a text. Raises ValueError if there are too many."""
    found = sorted(set(text))
    if len(found) > MOST_CHARACTERS:
        raise GPTError("training.too_many_characters", n=len(found), limit=MOST_CHARACTERS)
    return Characters(found)
