"""The training loop, with the loss on held-out text."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gpt.experiments.minimal.batches import Batches
from gpt.experiments.minimal.loss import cross_entropy
from gpt.experiments.minimal.optimizer import AdamW


class Trainer:
    """Updates a model's weights, batch by batch."""

    def __init__(self, model: nn.Module, batches: Batches, lr: float = 4e-3) -> None:
        self.model, self.batches = model, batches
        self.optimizer = AdamW(model.parameters(), lr)

    def loss(self, part: str) -> Tensor:
        idx, targets = self.batches.batch(part, size=8)
        return cross_entropy(self.model(idx).flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def held_out_loss(self, n: int = 10) -> float:
        self.model.eval()
        mean = sum(self.loss("held_out").item() for _ in range(n)) / n
        self.model.train()
        return mean

    def train(self, steps: int) -> Iterator[float]:
        """Yield the loss before each update."""
        self.model.train()
        for _ in range(steps):
            loss = self.loss("train")
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            yield loss.item()
