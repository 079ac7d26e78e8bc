"""The text of a training run: split, encoded, batched, and described for the model card."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from gpt.tokenizer import Vocabulary
from gpt.training.corpus import (
    StoryRows,
    character_vocabulary,
    encode_stories,
    fingerprint,
    read_stories,
    read_text,
    split_stories,
    train_tokenizer,
)
from gpt.training.recipe import Recipe
from gpt.training.text_dataset import TextDataset, first_words, shakespeare_text
from gpt.training.trainer import Batch

LENGTHS = (8, 120)  # tokens per sequence
WITH_START = 0.8  # share of the rows that start with end-of-text


class RunCorpus(Protocol):
    """The text of a run.

    fingerprint: hash of the whole text. held_back: texts to score. prompts: prompts for samples; the card uses the
    first. vocabulary_text, split_text, score_text: descriptions of the vocabulary, the split and the score for the
    card.
    """

    tokenizer: Vocabulary
    fingerprint: str
    held_back: list[str]
    prompts: tuple[str, ...]
    vocabulary_text: str
    split_text: str
    score_text: str

    def batches(self, batch_size: int, start: int) -> Iterator[Batch]:
        """Yield batches indefinitely, starting with batch number `start`."""


class StoryCorpus:
    """Stories, with a vocabulary trained on their training part; see `RunCorpus`.

    tokenizer: vocabulary to use; None trains a new one. Raises ValueError if the text cannot be read or is too short.
    """

    prompts: tuple[str, ...] = ("Once upon a time", "Tom and Lily", "The little dog said")
    score_text = (
        "Bits per byte: -log2 of the probability of a story's tokens given end-of-text, divided by its UTF-8 "
        "bytes.\nStories longer than the context are read in windows that overlap by half a context."
    )

    def __init__(self, path: Path, recipe: Recipe, tokenizer: Vocabulary | None = None) -> None:
        stories = read_stories(path)
        self._recipe = recipe
        self.fingerprint = fingerprint(stories)
        training, self.held_back = split_stories(stories, recipe.held_back, recipe.seed)
        make = character_vocabulary if recipe.vocabulary == "characters" else train_tokenizer
        self.tokenizer = tokenizer or make(training, recipe.vocab_size)
        self._rows = StoryRows(training, self.tokenizer, recipe.block_size, recipe.seed)
        encode_stories(self.held_back, self.tokenizer, recipe.block_size, "held-back")  # raises ValueError if too short
        n_vocab = self.tokenizer.n_vocab
        if recipe.vocabulary == "characters":
            self.prompts = tuple(map(first_words, self.held_back[:3]))
            self.vocabulary_text = (
                f"a vocabulary of\n{n_vocab:,} tokens: characters of the same text and two special tokens"
            )
        else:
            self.vocabulary_text = f"a byte-level BPE vocabulary of\n{n_vocab:,} tokens trained on the same text"
        n_bytes = sum(len(story.encode()) for story in stories)
        self.split_text = (
            f"{len(stories):,} stories, {n_bytes:,} bytes. Split: shuffled with seed {recipe.seed}, with a share of "
            f"{recipe.held_back} held\nback. Weights and vocabulary were trained on {len(training):,} stories and not "
            f"on the {len(self.held_back):,}\nstories held back."
        )

    def batches(self, batch_size: int, start: int) -> Iterator[Batch]:
        rows = self._rows.batches(batch_size, start)
        batches = (with_repeats(each, self.tokenizer, self._recipe, step) for step, each in enumerate(rows, start))
        return (without_unknown(batch, self.tokenizer.unknown_id) for batch in batches)


class CharacterCorpus:
    """A text with one token per character; see `RunCorpus`.

    path: defaults to Shakespeare's text. tokenizer: vocabulary to use; None creates one from the text. Raises
    ValueError if the text cannot be read, is too short, or has a character that the vocabulary lacks.
    """

    score_text = (
        "Bits per byte: -log2 of the probability of the held-back text's characters after the first, divided by "
        "their UTF-8 bytes.\nThe text is read in windows that overlap by half a context."
    )

    def __init__(self, path: Path | None, recipe: Recipe, tokenizer: Vocabulary | None = None) -> None:
        text = shakespeare_text() if path is None else read_text(path)
        self._dataset = TextDataset(
            text,
            block_size=recipe.block_size,
            seed=recipe.seed,
            held_back=recipe.held_back,
            name="characters",
            vocabulary=tokenizer,
        )
        dataset = self._dataset
        self.tokenizer = dataset.vocabulary
        self.fingerprint = fingerprint([dataset.name, text])
        self.held_back = [self.tokenizer.decode(dataset.validation_ids.tolist())]
        self.prompts: tuple[str, ...] = (dataset.start,)
        of_text = "different characters of the text" if tokenizer is None else "characters of the initial model"
        self.vocabulary_text = f"a vocabulary of the\n{self.tokenizer.n_vocab} {of_text}"
        n_training, n_held_back = len(dataset.training_ids), len(dataset.validation_ids)
        self.split_text = (
            f"{n_training + n_held_back:,} characters. Split: the last {n_held_back:,} (a share of {recipe.held_back}) "
            f"are held back, and the {n_training:,}\nbefore them are used for training."
        )

    def batches(self, batch_size: int, start: int) -> Iterator[Batch]:
        return (self._dataset.batch(step, batch_size) for step in count(start))


def without_unknown(batch: Batch, unknown_id: int | None) -> Batch:
    """Exclude <unk> from the targets, so that the model never learns to write it."""
    if unknown_id is None:
        return batch
    return Batch(batch.idx, batch.targets.masked_fill(batch.targets == unknown_id, -100))


def with_repeats(rows: np.ndarray, tokenizer: Vocabulary, recipe: Recipe, step: int) -> Batch:
    """Replace the first few training rows (B, T + 1) of an update with repeated random sequences.

    On average, this replaces B x recipe.repeats(step) rows. In these rows, targets count only from the second token of
    the second copy, because earlier tokens cannot be predicted.
    Source: the repeated random tokens in Olsson et al. (2022), arXiv 2209.11895.
    """
    batch = Batch.of_rows(rows)
    if not (recipe.repeats_first or recipe.repeats_last):
        return batch
    batch = Batch(batch.idx.clone(), batch.targets.clone())  # idx and targets share memory
    rng = np.random.default_rng([recipe.seed, step, 1])
    expected = len(rows) * recipe.repeats(step)
    for row in range(int(expected + rng.random())):
        length = int(rng.integers(LENGTHS[0], min(LENGTHS[1], (rows.shape[1] - 1) // 2) + 1))
        start = [tokenizer.eot_id] if tokenizer.eot_id is not None and rng.random() < WITH_START else []
        sequence = rng.integers(0, tokenizer.n_vocab - len(start), length)  # end-of-text has the last id
        ids = torch.from_numpy(np.concatenate([start, np.resize(sequence, rows.shape[1] - len(start))])).long()
        batch.idx[row], batch.targets[row] = ids[:-1], ids[1:]
        batch.targets[row, : len(start) + length] = -100
    return batch
