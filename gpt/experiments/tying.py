"""Tied weights: one matrix for the token embedding and the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from gpt.config import GPTConfig
from gpt.experiments.shapes import count_parameters
from gpt.model import GPT


@dataclass(frozen=True)
class ParameterCounts:
    """Parameters of one shape with tied and with untied weights."""

    tied: int
    untied: int

    @property
    def saved(self) -> int:
        """vocab_size x n_embd."""
        return self.untied - self.tied


@dataclass(frozen=True)
class EmbeddingEffects:
    """Embedding and head of an untrained model; each number is a share of the vocabulary, 0 to 1.

    own_token_best: tokens whose embedding, multiplied by the head, gives that token the highest logit.
    rows_with_gradient: rows of the embedding with a gradient for a text: all if tied, else those of its tokens.
    """

    own_token_best: float
    rows_with_gradient: float


def tied_and_untied(config: GPTConfig) -> ParameterCounts:
    """The parameters of one shape, tied and untied."""
    return ParameterCounts(*(count_parameters(replace(config, tie_weights=tied)) for tied in (True, False)))


def embedding_effects(config: GPTConfig, ids: Sequence[int], *, seed: int = 0) -> EmbeddingEffects:
    """Measure an untrained model, tied or not as `config` says; for small models."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed))
    embedding, head = model.wte.weight.detach(), model.lm_head.weight.detach()  # (vocab_size, C) each
    best = (embedding @ head.T).argmax(dim=1)  # (vocab_size,)
    own = (best == torch.arange(config.vocab_size)).float().mean()
    text = torch.tensor([list(ids)])
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(model.loss(text[:, :-1], text[:, 1:]), model.wte.weight)
    return EmbeddingEffects(own.item(), gradient.any(dim=1).float().mean().item())
