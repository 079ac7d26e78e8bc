"""Log-probabilities of final-norm states, and the Kullback-Leibler divergence between two predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import to_float32
from gpt.errors import GPTError
from gpt.layers import softcap
from gpt.model import GPT

MAX_CHUNK_LOGITS = 2**23  # 32 MB in float32


def log_probabilities(model: GPT, states: Tensor, weight: Tensor | None = None) -> Iterator[tuple[slice, Tensor]]:
    """Log-softmax of the logits of final-norm states (N, C), in chunks of at most MAX_CHUNK_LOGITS logits.

    weight: `to_float32(model.lm_head.weight)`, which a caller of several passes unpacks once. Yields
    (rows, log-probabilities in nats (n, vocab_size)).
    """
    weight = to_float32(model.lm_head.weight) if weight is None else weight
    bias = None if model.lm_head.bias is None else to_float32(model.lm_head.bias)
    n = max(1, MAX_CHUNK_LOGITS // len(weight))
    for start in range(0, len(states), n):
        rows = slice(start, min(start + n, len(states)))
        logits = softcap(F.linear(to_float32(states[rows]), weight, bias), model.config.logit_softcap)
        yield rows, logits.log_softmax(dim=-1)


def kl_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """sum p log2(p / q) over the last dimension, in bits, from log-probabilities in nats: (..., V) -> (...).

    Tokens of p = 0 add nothing; infinite where q = 0 and p > 0.
    Source: Kullback and Leibler, "On Information and Sufficiency" (1951).
    """
    p = log_p.exp()
    nats = (p * (log_p - log_q)).where(p > 0, 0).sum(dim=-1)
    return nats.clamp(min=0) / math.log(2)  # rounding may leave -1e-9


@torch.inference_mode()
def kl_bits(model: GPT, states: Tensor, other_states: Tensor) -> Tensor:
    """(N,): `kl_divergence` of the predictions from two sets of final-norm states (N, C), such as those of an
    original (p) and an edited pass (q). Raises ValueError where the shapes differ.
    """
    check_shapes(states, other_states)
    weight = to_float32(model.lm_head.weight)
    both = zip(log_probabilities(model, states, weight), log_probabilities(model, other_states, weight), strict=True)
    return torch.cat([kl_divergence(log_p, log_q) for (_, log_p), (_, log_q) in both])


@torch.inference_mode()
def kl_bits_from(model: GPT, states: Tensor) -> Callable[[Tensor], Tensor]:
    """`kl_bits` with the first states fixed: their log-probabilities, 4 N vocab_size bytes, are computed once."""
    weight = to_float32(model.lm_head.weight)
    log_ps = [log_p for _, log_p in log_probabilities(model, states, weight)]

    @torch.inference_mode()
    def kl_bits_to(other_states: Tensor) -> Tensor:
        check_shapes(states, other_states)
        both = zip(log_ps, log_probabilities(model, other_states, weight), strict=True)
        return torch.cat([kl_divergence(log_p, log_q) for log_p, (_, log_q) in both])

    return kl_bits_to


def check_shapes(states: Tensor, other_states: Tensor) -> None:
    """Raise ValueError unless both shapes are the same."""
    if states.shape != other_states.shape:
        raise GPTError(
            "analysis.state_shapes",
            "states of shape {shape} cannot be compared with {other}",
            shape=tuple(states.shape),
            other=tuple(other_states.shape),
        )
