"""Training rows of random tokens that are repeated: to predict the repetition, a model needs induction heads."""

from __future__ import annotations

import numpy as np
import torch

from gpt.tokenizer import Vocabulary
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch

LENGTHS = (8, 120)  # tokens of a sequence
WITH_START = 0.8  # share of the rows that begin with end-of-text


def with_repeats(rows: np.ndarray, tokenizer: Vocabulary, recipe: Recipe, step: int) -> Batch:
    """The training rows (B, T + 1) of an update, some of the first replaced by random sequences, repeated.

    Their number has the mean B x recipe.repeats(step). Only the targets from the second token of the second copy on
    are counted: what comes before cannot be predicted.
    Source: the repeated random tokens of Olsson et al. (2022), arXiv 2209.11895.
    """
    batch = Batch.of_rows(rows)
    if not (recipe.repeats_first or recipe.repeats_last):
        return batch
    batch = Batch(batch.idx.clone(), batch.targets.clone())  # they share their memory
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
