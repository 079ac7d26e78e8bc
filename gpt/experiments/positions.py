"""Sinusoidal, learned and rotary positions, and how the latter two affect the loss beyond the trained length."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.config import Position
from gpt.experiments.minimal import sine_positions
from gpt.rotary import rotary_angles
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch, Trainer

N_LETTERS, RULE_PROBABILITY = 8, 0.9  # properties of the random text
OTHER_PROBABILITY = (1 - RULE_PROBABILITY) / N_LETTERS  # that of each letter that breaks the rule
LIKELIEST = RULE_PROBABILITY + OTHER_PROBABILITY
# Expected loss, in nats, of a model that knows the rule behind the text
FLOOR = -LIKELIEST * math.log(LIKELIEST) - (N_LETTERS - 1) * OTHER_PROBABILITY * math.log(OTHER_PROBABILITY)
FIRST_TOKENS = 8  # excluded from the mean loss at trained positions because they have little context
TEST_ROWS = 256
TRAINED: tuple[Position, ...] = ("learned", "rotary")
RECIPE = Recipe(n_layer=2, n_head=2, n_embd=32, batch_size=32, muon_lr=0.01, adamw_lr=0.01, warmup=10)


def train_extrapolation(
    *, trained_length: int = 32, tested_length: int = 96, steps: int = 300, seed: int = 0, tests: int = 20
) -> Iterator[tuple[int, dict[Position, list[float]]]]:
    """Train tiny models with learned and with rotary positions on short texts, and test them on longer texts.

    Yields the step and both models' loss on each predicted token, in nats, at `tests` steps, including the last.
    Learned positions have an embedding per position, and those beyond trained_length are never trained. Rotary
    positions depend only on the distance between two tokens.
    """
    text = SecondOrderText(seed)
    recipe = replace(RECIPE, block_size=tested_length, steps=steps, seed=seed)
    trainers = {position: Trainer(recipe.new_model(N_LETTERS, position), recipe) for position in TRAINED}
    test = text.batch(TEST_ROWS, tested_length)
    for step in range(1, steps + 1):
        batch = text.batch(recipe.batch_size, trained_length)
        for trainer in trainers.values():
            trainer.update(batch)
        if step % max(1, steps // tests) == 0 or step == steps:
            losses = {}
            for position, trainer in trainers.items():
                with torch.inference_mode():
                    logits = trainer.model(test.idx).transpose(1, 2)  # (B, N_LETTERS, T)
                losses[position] = F.cross_entropy(logits, test.targets, reduction="none").mean(dim=0).tolist()
            yield step, losses


def inside_and_beyond(losses: Sequence[float], trained_length: int) -> tuple[float, float]:
    """Return the mean loss at trained positions, without the first FIRST_TOKENS, and beyond the trained length."""
    return fmean(losses[FIRST_TOKENS:trained_length]), fmean(losses[trained_length:])


class SecondOrderText:
    """Random letters. The last two determine the next one with RULE_PROBABILITY; otherwise, it is uniformly random."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.table = torch.randint(N_LETTERS, (N_LETTERS, N_LETTERS), generator=self.generator)

    def batch(self, size: int, length: int) -> Batch:
        """Draw `size` texts of length + 1 letters."""
        text = torch.randint(N_LETTERS, (size, length + 1), generator=self.generator)  # (B, T + 1)
        follows = torch.rand(size, length + 1, generator=self.generator) < RULE_PROBABILITY
        for t in range(2, length + 1):
            text[:, t] = torch.where(follows[:, t], self.table[text[:, t - 2], text[:, t - 1]], text[:, t])
        return Batch.of_rows(text)


def sinusoidal_positions(n: int, width: int) -> Tensor:
    """Return the position vectors of the original Transformer (arXiv 1706.03762, section 3.5), (n, width), width even.

    Element 2i of position p is sin(p / 10000^(2i / width)), and element 2i + 1 is the cosine of the same angle.
    """
    return sine_positions(n, width)


def rotary_closeness(head_size: int, distances: Tensor) -> Tensor:
    """Return the scaled dot product of a query and an identical key per distance in tokens: float64, 1 at distance 0.

    Both are vectors of ones before they are rotated (RoFormer, arXiv 2104.09864, section 3.4.3).
    """
    cos, _ = rotary_angles(distances.double(), head_size)
    return cos.double().mean(dim=-1)
