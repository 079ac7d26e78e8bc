"""A sparse autoencoder that learns a model's concepts from its activations (Gao et al., arXiv 2406.04093)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

DEAD_TOKENS = 100_000  # a feature that stays inactive for this many tokens is dead
N_REVIVED, REVIVAL = 64, 1 / 32  # number of dead features that model the error, and the weight of their loss
LEARNING_RATE = 1e-3


class Autoencoder:
    """TopK autoencoder for normalised activations (N, C). The decoder's rows have length 1."""

    def __init__(self, n_embd: int, width: int, active: int, generator: torch.Generator) -> None:
        rows = F.normalize(torch.randn(width, n_embd, generator=generator), dim=1)
        self.active = active
        self.encoder, self.decoder = rows.clone().requires_grad_(), rows.clone().requires_grad_()
        self.bias, self.center = torch.zeros(width, requires_grad=True), torch.zeros(n_embd, requires_grad=True)
        self.silent = torch.zeros(width)  # tokens since each feature was last active
        self.optimizer = torch.optim.Adam(self.parameters, lr=LEARNING_RATE, betas=(0.9, 0.999), fused=True)

    @property
    def parameters(self) -> list[Tensor]:
        """Encoder, decoder, bias and center."""
        return [self.encoder, self.decoder, self.bias, self.center]

    def update(self, x: Tensor, rate: float) -> float:
        """Make one update and return the unexplained fraction of the variance."""
        pre = F.linear(x - self.center.detach(), self.encoder, self.bias)
        values, features = pre.topk(self.active, dim=-1, sorted=False)
        error = self._decoded(values, features) + self.center - x
        total = x.square().sum()
        loss = error.square().sum() / total
        unexplained = loss.item()
        dead = (self.silent > DEAD_TOKENS).nonzero()[:, 0]
        if len(dead):
            values_, which = pre[:, dead].topk(min(N_REVIVED, len(dead)), dim=-1, sorted=False)
            rest = self._decoded(values_, dead[which]) + error.detach()
            loss = loss + REVIVAL * rest.square().sum() / error.detach().square().sum()
        loss.backward()
        self.optimizer.param_groups[0]["lr"] = LEARNING_RATE * rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        with torch.no_grad():
            self.decoder.copy_(F.normalize(self.decoder, dim=1))
        self.silent += len(x)
        self.silent[features[values > 0]] = 0
        return unexplained

    def _decoded(self, values: Tensor, features: Tensor) -> Tensor:
        return F.embedding_bag(features, self.decoder, per_sample_weights=values.relu(), mode="sum")

    @property
    def n_dead(self) -> int:
        """Number of features that were inactive for the last DEAD_TOKENS tokens."""
        return int((self.silent > DEAD_TOKENS).sum())

    def state(self) -> dict[str, Any]:
        """Return the state for `load`."""
        tensors = [parameter.detach() for parameter in self.parameters]
        return {"parameters": tensors, "silent": self.silent, "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `state`."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(value)
        self.silent = state["silent"]
        self.optimizer.load_state_dict(state["optimizer"])

    def dictionary(self, mean: Tensor, scale: Tensor) -> dict[str, Any]:
        """Return encoder, decoder, bias and center for streams (N, C) that have not been normalised."""
        encoder, decoder, bias, center = (each.detach() for each in self.parameters)
        center = mean + scale * center
        return {"encoder": encoder, "decoder": decoder, "bias": scale * bias - encoder @ center, "center": center}
