"""Predictions from final-norm states: log-probabilities, divergence, and statistics and search of tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import of_each, to_float32
from gpt.edits import Edits
from gpt.inputs import AnyModel, Text, Texts, gpt_of
from gpt.layers import softcap
from gpt.model import GPT
from gpt.sampling import entropy_bits, rank_of
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace

MAX_CHUNK_LOGITS = 2**23  # 32 MB in float32


def log_probabilities(model: GPT, states: Tensor, weight: Tensor | None = None) -> Iterator[tuple[slice, Tensor]]:
    """Compute log-probabilities from final-norm states (N, C), in chunks of at most MAX_CHUNK_LOGITS logits.

    weight: `to_float32(model.lm_head.weight)`; pass it when calling this repeatedly, to avoid unpacking it each time.
    Yields (rows, log-probabilities), with log-probabilities (n, vocab_size) in nats.
    """
    weight = to_float32(model.lm_head.weight) if weight is None else weight
    n = max(1, MAX_CHUNK_LOGITS // len(weight))
    for start in range(0, len(states), n):
        rows = slice(start, min(start + n, len(states)))
        yield rows, float32_logits(model, states[rows], weight).log_softmax(dim=-1)


def float32_logits(model: GPT, states: Tensor, weight: Tensor) -> Tensor:
    """Compute logits in float32 from final-norm states: (N, C) -> (N, vocab_size). weight: see `log_probabilities`."""
    bias = None if model.lm_head.bias is None else to_float32(model.lm_head.bias)
    return softcap(F.linear(to_float32(states), weight, bias), model.config.logit_softcap)


def kl_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Compute sum p log2(p / q) over the last dimension, in bits, from log-probabilities in nats: (..., V) -> (...).

    Tokens with p = 0 contribute nothing. The result is infinite if a token has q = 0 and p > 0.
    Source: Kullback and Leibler, "On Information and Sufficiency" (1951).
    """
    p = log_p.exp()
    nats = (p * (log_p - log_q)).where(p > 0, 0).sum(dim=-1)
    return nats.clamp(min=0) / math.log(2)  # rounding may leave -1e-9


@torch.inference_mode()
def kl_bits(model: GPT, states: Tensor, other_states: Tensor) -> Tensor:
    """Compute `kl_divergence` between the predictions of two passes, such as the original (p) and an edited pass (q).

    Takes final-norm states (N, C) and returns (N,).
    """
    weight = to_float32(model.lm_head.weight)
    both = zip(*(log_probabilities(model, each, weight) for each in (states, other_states)), strict=True)
    return torch.cat([kl_divergence(log_p, log_q) for (_, log_p), (_, log_q) in both])


@dataclass(frozen=True)
class TokenStatistics:
    """Statistics of a token under the softmax of the raw logits that predict it.

    rank: 1 for the most likely token. entropy: entropy of the softmax, in bits. surprisal: -log2 probability, in bits.
    top: (id, probability) of the most likely tokens, in descending order.
    """

    probability: float
    rank: int
    entropy: float
    surprisal: float
    top: tuple[tuple[int, float], ...] = ()

    @property
    def nats(self) -> float:
        """Surprisal in nats: the cross-entropy loss on this token."""
        return self.surprisal * math.log(2)


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of the tokens in a text, including mean surprisal and perplexity."""

    tokens: tuple[TokenStatistics, ...]

    @property
    def mean_surprisal(self) -> float:
        """Mean surprisal in bits per token; NaN if there are no tokens."""
        return math.fsum(token.surprisal for token in self.tokens) / len(self.tokens) if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """Perplexity, 2^mean_surprisal; infinite if it exceeds the largest float."""
        return torch.tensor(self.mean_surprisal, dtype=torch.float64).exp2().item()


@overload
def token_predictions(model: AnyModel, text: Text, top_k: int = 5, edits: Edits | None = None) -> TextStatistics: ...
@overload
def token_predictions(
    model: AnyModel, text: Texts, top_k: int = 5, edits: Edits | None = None
) -> list[TextStatistics]: ...
def token_predictions(
    model: AnyModel, text: Text | Texts, top_k: int = 5, edits: Edits | None = None
) -> TextStatistics | list[TextStatistics]:
    """Compute statistics for each token of a text except the first, or for each of several texts.

    top_k: number of most likely tokens to list for each. Raises the same errors as `trace_text`.
    """
    network = gpt_of(model)

    def statistics(trace: Trace, ids: list[int]) -> TextStatistics:
        return text_statistics(network, trace.final_norm[0, :-1], ids[1:], top_k)

    return of_each(model, text, statistics, edits, only=["final_norm"])


@torch.inference_mode()
def text_statistics(model: GPT, states: Tensor, ids: Sequence[int], top_k: int = 0) -> TextStatistics:
    """Compute statistics for n ids, including the top_k most likely tokens, from the states (n, C) that predict them.

    states: final-norm states. The output head runs in the model's dtype, in chunks of at most MAX_CHUNK_LOGITS logits.
    """
    targets = torch.tensor(list(ids), dtype=torch.long, device=states.device)[:, None]  # (n, 1)
    n = max(1, MAX_CHUNK_LOGITS // model.config.vocab_size)
    chunks = zip(states.split(n), targets.split(n), strict=True)
    rows = [token_statistics(model.logits(chunk).float(), target, top_k) for chunk, target in chunks]
    return TextStatistics(tuple(chain.from_iterable(rows)))


def token_statistics(logits: Tensor, targets: Tensor, top_k: int = 0) -> list[TokenStatistics]:
    """Compute statistics for n ids (n, 1) from the logits (n, vocab_size) that predict them."""
    log_p = logits.log_softmax(dim=1)
    own = log_p.gather(1, targets)[:, 0]  # (n,)
    top = log_p.topk(min(top_k, log_p.shape[1]), dim=1)
    best = zip(top.indices.tolist(), top.values.exp().tolist(), strict=True)
    columns = (
        own.exp().tolist(),
        rank_of(logits, targets).tolist(),
        entropy_bits(log_p.exp()).tolist(),
        [-nats / math.log(2) for nats in own.tolist()],
        [tuple(zip(*pair, strict=True)) for pair in best],
    )
    return [TokenStatistics(*row) for row in zip(*columns, strict=True)]


def search_vocabulary(vocabulary: Vocabulary, logits: Tensor, query: str, *, limit: int = 20) -> list[int]:
    """Find tokens whose text contains the query, ignoring case. A number also finds the token with that id.

    logits: (vocab_size,). Sort order: the id, exact matches, matches up to surrounding whitespace, and all others by
    descending probability.
    """
    texts = [vocabulary.token_bytes(token_id).decode("utf-8", "replace") for token_id in range(vocabulary.n_vocab)]
    wanted = query.lower()
    number = int(query) if query.isascii() and query.isdecimal() and len(query) < 10 else None
    ids = [i for i, text in enumerate(texts) if i == number or (wanted and wanted in text.lower())]
    values = logits.tolist()

    def order(token_id: int) -> tuple[bool, int, float, int]:
        exact = 0 if texts[token_id] == query else 1 if texts[token_id].strip() == query.strip() else 2
        return token_id != number, exact, -values[token_id], token_id

    return sorted(ids, key=order)[:limit]
