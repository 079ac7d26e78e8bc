"""Probability, rank, entropy and surprisal of each token of a text, from the final-norm states before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.analysis.predictions import MAX_CHUNK_LOGITS
from gpt.model import GPT
from gpt.sampling import entropy_bits


@dataclass(frozen=True)
class TokenStatistics:
    """One token, by the raw softmax that predicts it.

    probability; rank (1 = best); entropy: of the softmax, bits; surprisal: -log2 probability, bits.
    top: (id, probability) of the most likely tokens, best first.
    """

    probability: float
    rank: int
    entropy: float
    surprisal: float
    top: tuple[tuple[int, float], ...] = ()

    @property
    def nats(self) -> float:
        """Surprisal in nats: the cross-entropy loss of this token."""
        return self.surprisal * math.log(2)


@dataclass(frozen=True)
class TextStatistics:
    """The tokens of a text, and their mean surprisal and perplexity."""

    tokens: tuple[TokenStatistics, ...]

    @property
    def mean_surprisal(self) -> float:
        """Bits per token; NaN for no token."""
        return math.fsum(token.surprisal for token in self.tokens) / len(self.tokens) if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """2^mean_surprisal; infinite beyond the largest float."""
        return torch.tensor(self.mean_surprisal, dtype=torch.float64).exp2().item()


@torch.inference_mode()
def text_statistics(model: GPT, states: Tensor, ids: Sequence[int], top_k: int = 0) -> TextStatistics:
    """Statistics of n ids from the final-norm states (n, C) before them, each with its top_k most likely tokens.

    The head runs in the model's dtype, in chunks of at most MAX_CHUNK_LOGITS logits.
    """
    targets = torch.tensor(list(ids), dtype=torch.long, device=states.device)[:, None]  # (n, 1)
    n = max(1, MAX_CHUNK_LOGITS // model.config.vocab_size)
    tokens: list[TokenStatistics] = []
    for chunk, target in zip(states.split(n), targets.split(n), strict=True):
        logits = model.logits(chunk).float()  # (n, vocab_size)
        log_p = logits.log_softmax(dim=1)
        own = log_p.gather(1, target)  # (n, 1)
        top = log_p.topk(min(top_k, log_p.shape[1]), dim=1)
        columns = (
            own[:, 0].exp().tolist(),
            (1 + (logits > logits.gather(1, target)).sum(dim=1)).tolist(),
            entropy_bits(log_p.exp()).tolist(),
            [-nats / math.log(2) for nats in own[:, 0].tolist()],
            [
                tuple(zip(*pair, strict=True))
                for pair in zip(top.indices.tolist(), top.values.exp().tolist(), strict=True)
            ],
        )
        tokens += [TokenStatistics(*row) for row in zip(*columns, strict=True)]
    return TextStatistics(tuple(tokens))
