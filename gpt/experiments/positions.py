"""Learned and rotary positions, and what becomes of both beyond the length that a model was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.checks import check_choice
from gpt.config import Position
from gpt.errors import GPTError
from gpt.model import rotary_angles, rotate
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch, Trainer

LETTERS, CERTAIN = 8, 0.9


@dataclass(frozen=True)
class Extrapolation:
    """Loss in nats at each position of texts longer than those that a model was trained on.

    by_position: one number for each predicted token, the first trained_length of them at trained positions.
    floor: the loss of the rule that the texts are made by, which no model can be below in the long run.
    steps: updates so far.
    """

    position: Position
    trained_length: int
    by_position: tuple[float, ...]
    floor: float
    steps: int

    @property
    def inside(self) -> float:
        """Mean loss at trained positions, without the first eight."""
        return mean(self.by_position[8 : self.trained_length])

    @property
    def beyond(self) -> float:
        """Mean loss at positions that training never reached."""
        return mean(self.by_position[self.trained_length :])


def extrapolation(
    position: Position, *, trained_length: int = 32, tested_length: int = 96, steps: int = 300, seed: int = 0
) -> Extrapolation:
    """Train a tiny model on short texts for some seconds, then let it read longer ones.

    The texts follow a rule that looks back two letters: each letter is decided by the two before it, nine times of
    ten. Learned positions have a vector for each place, and those of later places were never taught; rotary
    positions only know how far two tokens are apart. Raises ValueError for an unknown kind of position and for a
    tested length that is not longer than the trained one.
    """
    *_, last = extrapolation_steps(
        position, trained_length=trained_length, tested_length=tested_length, steps=steps, seed=seed, tests=1
    )
    return last


def extrapolation_steps(
    position: Position,
    *,
    trained_length: int = 32,
    tested_length: int = 96,
    steps: int = 300,
    seed: int = 0,
    tests: int = 20,
) -> Iterator[Extrapolation]:
    """The same, told as it learns: it reads the same long texts `tests` times, the last time after all updates."""
    check_choice("position", position, get_args(Position))
    if not 8 < trained_length < tested_length:
        raise GPTError("experiment.lengths", trained=trained_length, tested=tested_length)
    rule = ChanceRule(seed)
    recipe = replace(RECIPE, block_size=tested_length, steps=steps, seed=seed)
    trainer = Trainer(recipe.new_model(LETTERS, position), recipe)
    test = rule.batch(256, tested_length)
    for step in range(1, steps + 1):
        trainer.update(rule.batch(recipe.batch_size, trained_length))
        if step % max(1, steps // tests) == 0 or step == steps:
            with torch.inference_mode():
                logits = trainer.model(test.idx)  # (B, T, LETTERS)
            losses = F.cross_entropy(logits.transpose(1, 2), test.targets, reduction="none").mean(dim=0)  # (T,)
            yield Extrapolation(position, trained_length, tuple(losses.tolist()), rule.floor, step)


RECIPE = Recipe(n_layer=2, n_head=2, n_embd=32, batch_size=32, muon_lr=0.01, adamw_lr=0.01, warmup=10)


class ChanceRule:
    """Endless texts: with probability CERTAIN the letter that a table gives for the two before it, else any."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.table = torch.randint(LETTERS, (LETTERS, LETTERS), generator=self.generator)
        expected = torch.full((LETTERS,), (1 - CERTAIN) / LETTERS)
        expected[0] += CERTAIN
        self.floor = torch.special.entr(expected).sum().item()

    def batch(self, size: int, length: int) -> Batch:
        """`size` new texts of length + 1 letters."""
        text = torch.randint(LETTERS, (size, length + 1), generator=self.generator)  # (B, T + 1)
        follows = torch.rand(size, length + 1, generator=self.generator) < CERTAIN
        for t in range(2, length + 1):
            text[:, t] = torch.where(follows[:, t], self.table[text[:, t - 2], text[:, t - 1]], text[:, t])
        return Batch.of_rows(text)


def rotary_closeness(head_size: int, distances: Tensor) -> Tensor:
    """cos-like closeness of a query to an equal key so many tokens away: 1 at distance 0, float64.

    Both are vectors of ones, turned by their positions (RoFormer, arXiv 2104.09864, section 3.4.3).
    """
    ones = torch.ones(1, 1, len(distances), head_size, dtype=torch.float64)
    turned = rotate(ones, *(part.double() for part in rotary_angles(distances.double(), head_size)))
    return (turned[0, 0] * ones[0, 0]).mean(dim=-1)


def mean(values: tuple[float, ...]) -> float:
    """The average of some numbers."""
    return sum(values) / len(values)
