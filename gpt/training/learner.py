"""A model that learns from batches: one update at a time, on one processor, the same for the same seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gpt.config import Position
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.training.recipe import Recipe, make_optimizers, set_rate


@dataclass(frozen=True)
class Batch:
    """Rows to learn from: idx (B, T), ids; targets (B, T), the ids that follow, -100 where nothing is asked."""

    idx: Tensor
    targets: Tensor


class Learner:
    """The weights and how far they have come. step: updates made.

    The recipe's dropout must be 0: its random numbers would be torch's, which all threads share.
    Raises ValueError if it is not.
    """

    def __init__(self, recipe: Recipe, n_vocab: int, *, position: Position = "learned") -> None:
        if recipe.dropout:
            raise GPTError("training.dropout", dropout=recipe.dropout)
        self.recipe = recipe
        config = replace(recipe.model_config(n_vocab), position=position)
        generator = torch.Generator().manual_seed(recipe.seed)
        self.model = GPT(config, generator=generator).eval()  # without dropout, training is no different
        self.optimizers = make_optimizers(self.model, recipe)
        self.step = 0

    def rate(self, factor: float = 1.0) -> float:
        """The learning rate of the next update, of its main optimizer."""
        full = self.recipe.muon_lr if self.recipe.optimizer == "muon" else self.recipe.adamw_lr
        return full * factor * self.recipe.rate(self.step)

    def update(self, batch: Batch, factor: float = 1.0) -> float:
        """One update, at `factor` times the recipe's learning rates; returns the loss before it, in nats.

        Raises ValueError, before the weights are changed, if the loss or its gradient is not finite.
        """
        set_rate(self.optimizers, factor * self.recipe.rate(self.step))
        with torch.enable_grad():
            loss = self.model.loss(batch.idx, batch.targets)
            loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        if not (math.isfinite(loss.item()) and math.isfinite(norm)):
            raise GPTError("training.loss_infinite", step=self.step)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss.item()

    @torch.inference_mode()
    def loss(self, batch: Batch) -> float:
        """The loss of the weights of this moment, in nats. Raises ValueError if it is not finite."""
        loss = self.model.loss(batch.idx, batch.targets).item()
        if not math.isfinite(loss):
            raise GPTError("training.loss_infinite", step=self.step)
        return loss
