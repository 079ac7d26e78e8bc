"""One matrix for two tasks: the token embedding, which is also the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from gpt.config import GPTConfig
from gpt.experiments.shapes import count_parameters
from gpt.model import GPT


@dataclass(frozen=True)
class Tying:
    """Parameters with one matrix for embedding and head (`tied`) and with one each (`untied`)."""

    tied: int
    untied: int

    @property
    def saved(self) -> int:
        """vocab_size x n_embd."""
        return self.untied - self.tied


@dataclass(frozen=True)
class SharedMatrix:
    """What it means to share, on a fresh model and a text; each number a share of the vocabulary from 0 to 1.

    own_row_first: tokens whose own embedding, sent straight to the head, scores that token highest.
    rows_taught: rows of the embedding that one update changes: all where the head teaches them too, else those of
    the tokens in the text.
    """

    own_row_first: float
    rows_taught: float


def tying(config: GPTConfig) -> Tying:
    """The parameters of one shape, tied and untied."""
    return Tying(*(count_parameters(replace(config, tie_weights=tied)) for tied in (True, False)))


def shared_matrix(config: GPTConfig, ids: Sequence[int], *, seed: int = 0) -> SharedMatrix:
    """Look at the matrices at both ends of a fresh model, tied or not as `config` says; for small models."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed))
    rows, head = model.wte.weight.detach(), model.lm_head.weight.detach()  # (vocab_size, C) each
    best = (rows @ head.T).argmax(dim=1)  # (vocab_size,)
    own = (best == torch.arange(config.vocab_size)).float().mean()
    text = torch.tensor([list(ids)])
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(model.loss(text[:, :-1], text[:, 1:]), model.wte.weight)
    return SharedMatrix(own.item(), gradient.any(dim=1).float().mean().item())
