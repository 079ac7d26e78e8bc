"""What the model thought of each token of a text that it has read, from the states that it left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.model import GPT

PORTION = 2**23  # logits in memory at once: 32 MB in float32


@dataclass(frozen=True)
class TokenStatistics:
    """One token, by the raw softmax before it: no temperature, nothing removed.

    probability; rank: 1 is the best; surprisal: -log2 probability, bits; entropy: the surprisal that was to be
    expected there, bits.
    """

    probability: float
    rank: int
    entropy: float
    surprisal: float


@dataclass(frozen=True)
class TextStatistics:
    """The tokens of a text from one position on, and the surprisal of them all."""

    tokens: tuple[TokenStatistics, ...]

    @property
    def mean_surprisal(self) -> float:
        """Bits a token; NaN for no token."""
        return math.fsum(token.surprisal for token in self.tokens) / len(self.tokens) if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """2^mean_surprisal: among how many equally likely tokens the model was as unsure."""
        return torch.tensor(self.mean_surprisal, dtype=torch.float64).exp2().item()


@torch.inference_mode()
def text_statistics(model: GPT, states: Tensor, ids: Sequence[int]) -> TextStatistics:
    """states: (n, C), after the last norm, of the positions before each of the n ids. A few rows at a time."""
    chosen = torch.tensor(list(ids), dtype=torch.long, device=states.device)[:, None]  # (n, 1)
    n = max(1, PORTION // model.config.vocab_size)
    tokens: list[TokenStatistics] = []
    for start in range(0, len(chosen), n):
        logits = model.lm_head(states[start : start + n]).float()  # (n, vocab_size)
        scores = logits.gather(1, chosen[start : start + n])
        log_p = logits.log_softmax(dim=1)
        nats = -log_p.gather(1, chosen[start : start + n])[:, 0]
        columns = (
            (-nats).exp().tolist(),
            (1 + (logits > scores).sum(dim=1)).tolist(),
            (torch.special.entr(log_p.exp()).sum(dim=1) / math.log(2)).tolist(),
            (nats / math.log(2)).tolist(),
        )
        tokens += [TokenStatistics(*row) for row in zip(*columns, strict=True)]
    return TextStatistics(tuple(tokens))
