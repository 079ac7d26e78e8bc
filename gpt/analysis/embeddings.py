"""Cosine similarity of token embeddings and position embeddings."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import to_float32
from gpt.errors import GPTError, check_token_id
from gpt.model import GPT


class NearestTokens(NamedTuple):
    """Token ids in descending order of cosine similarity, and the similarities, each (k,)."""

    token: Tensor
    cosine: Tensor


@torch.inference_mode()
def nearest_tokens(model: GPT, token: int, k: int = 10) -> NearestTokens:
    """Return the k tokens, other than `token`, whose embeddings have the highest cosine similarity to it."""
    check_token_id(token, model.config.vocab_size)
    wte = to_float32(model.wte.weight)  # (vocab_size, C)
    norms = wte.norm(dim=-1)
    cosine = wte @ wte[token] / (norms * norms[token]).clamp(min=1e-12)  # F.cosine_similarity copies wte several times
    cosine[token] = -torch.inf
    values, tokens = cosine.topk(min(k, len(wte) - 1))
    return NearestTokens(tokens, values)


@torch.inference_mode()
def position_similarity(model: GPT) -> Tensor:
    """Return the cosine similarities of learned position embeddings, (block_size, block_size).

    Raises ValueError for a model without them.
    """
    if model.wpe is None:
        raise GPTError("analysis.no_position_embeddings")
    wpe = F.normalize(to_float32(model.wpe.weight), dim=-1)
    return wpe @ wpe.T
