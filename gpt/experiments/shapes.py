"""Compute a GPT's parameter count, KV cache size and FLOPs from its configuration, and the effects of weight tying."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from gpt.config import GPTConfig
from gpt.model import GPT, meta_model
from gpt.presets import PRESETS

Part = Literal["token_embedding", "position_embedding", "attention", "feed_forward", "norms", "head"]
NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}  # bytes per number, excluding int8 scales

# GPT-2 "124M" as in textbooks, without QKV biases and with an untied head: 163,009,536 parameters.
UNTIED_124M = replace(PRESETS["gpt2"], qkv_bias=False, tie_weights=False)


@dataclass(frozen=True)
class Flops:
    """FLOPs for one token, in products with the weight matrices and in attention to the text so far."""

    matrices: int
    attention: int

    @property
    def total(self) -> int:
        """Total FLOPs."""
        return self.matrices + self.attention


@dataclass(frozen=True)
class WeightShape:
    """A weight of a model. One entry stands for the same weight in all blocks.

    name: name of the parameter; starts with "h.N." in the blocks. shape: shape of one copy. copies: n_layer in the
    blocks, else 1.
    """

    name: str
    shape: tuple[int, ...]
    copies: int

    @property
    def n_parameters(self) -> int:
        """Number of parameters in all copies."""
        return self.copies * math.prod(self.shape)


def weight_shapes(config: GPTConfig, *, skeleton: bool = False) -> tuple[WeightShape, ...]:
    """Return every weight in module order; a tied head is not repeated. skeleton: whether to omit blocks and norms."""
    model = meta_model(config.with_layers(1))
    return tuple(
        WeightShape(name.replace("h.0.", "h.N."), tuple(weight.shape), config.n_layer if name.startswith("h.") else 1)
        for name, weight in model.named_parameters()
        if not (skeleton and name.startswith(("h.", "ln_f.")))
    )


def parameter_parts(config: GPTConfig, *, skeleton: bool = False) -> dict[Part, int]:
    """Count the parameters in each part, summed over the blocks. A tied head has none.

    In each block of GPT-2, with C = n_embd, attention has 3 C^2 + C^2 weights and feed-forward 2 C n_ff, plus one bias
    per output. The two norms, and the final norm, have C scales and C shifts each. With fewer key and value heads,
    their part of the 3 C^2 is smaller. A gate adds C n_ff weights. Query and key norms have one scale per element of a
    head, or of all heads.
    skeleton: whether identities replace blocks and norms (`gpt.experiments.random_models.skeleton`).
    """
    width, n_ff, heads = config.n_embd, config.ff_size, config.n_head * config.head_size
    blocks = 0 if skeleton else config.n_layer
    qkv = heads + 2 * config.kv_heads * config.head_size
    inner = (2 if config.gated else 1) * n_ff
    norm = width * (2 if config.norm == "layer" and config.bias else 1)
    heads_in_norms = {False: 0, True: 2, "full": config.n_head + config.kv_heads}[config.qk_norm]
    norms_of_block = 2 * (config.pre_norm + config.post_norm) * norm + heads_in_norms * config.head_size
    return {
        "token_embedding": config.vocab_size * width,
        "position_embedding": config.block_size * width if config.position == "learned" else 0,
        "attention": blocks * (width * (qkv + heads) + qkv * config.has_qkv_bias + width * config.has_proj_bias),
        "feed_forward": blocks * (width * (inner + n_ff) + (inner + width) * config.has_mlp_bias),
        "norms": 0 if skeleton else blocks * norms_of_block + norm,
        "head": config.vocab_size * ((0 if config.tie_weights else width) + config.head_bias),
    }


def count_parameters(config: GPTConfig, *, skeleton: bool = False) -> int:
    """Count all parameters. A matrix shared by the embedding and the head counts once."""
    return sum(parameter_parts(config, skeleton=skeleton).values())


def cache_numbers(config: GPTConfig) -> int:
    """Count a KV cache's numbers per token: keys and values of all heads in every layer, n_embd each in GPT-2."""
    return 2 * config.n_layer * config.kv_heads * config.head_size


def flops_per_token(config: GPTConfig, position: int, *, skeleton: bool = False) -> Flops:
    """Count the FLOPs of a forward pass for the token at `position` (0-based), with earlier tokens in the cache.

    A multiplication and an addition count as two FLOPs. Matrices need 2 per weight: in GPT-2, 2 (4 C^2 + 2 C n_ff) in
    each block, and 2 C vocab_size in the head, tied or not. Attention to S = position + 1 tokens, including those
    outside a window, needs 2 H S for q k^T and 2 H S for weights times v in each block, where H is the total width of
    all heads (C in GPT-2). Like the sources, this excludes the embedding lookup, biases, norms, softmax, activations
    and additions to the residual stream.
    Sources: Kaplan et al., arXiv 2001.08361, section 2.1 (2 per weight); Hoffmann et al., arXiv 2203.15556,
    appendix F (both products of attention, the head).
    """
    width, heads = config.n_embd, config.n_head * config.head_size
    blocks = 0 if skeleton else config.n_layer
    attention = 2 * width * (heads + config.kv_heads * config.head_size)
    per_block = attention + (3 if config.gated else 2) * width * config.ff_size
    return Flops(
        matrices=2 * (blocks * per_block + width * config.vocab_size),
        attention=4 * blocks * heads * (position + 1),
    )


def next_token_multiplications(config: GPTConfig, length: int, *, cached: bool) -> int:
    """Count the multiplications for predicting the token that follows `length` tokens, in all matrix products.

    With a cache, the pass reads one token, which attends to all tokens. Without a cache, it reads all tokens, and each
    attends to all, including those that the causal mask hides. The head runs only for the last token.
    """
    head = config.n_embd * config.vocab_size
    blocks = flops_per_token(config, length - 1).total // 2 - head  # half of the FLOPs are multiplications
    return (1 if cached else length) * blocks + head


@dataclass(frozen=True)
class EmbeddingEffects:
    """The embedding and head of an untrained model. Both numbers are fractions of the vocabulary, 0 to 1.

    own_token_best: tokens whose own logit is the highest when their embedding is multiplied by the head.
    rows_with_gradient: embedding rows that receive a gradient from a text: all if tied, else only its tokens' rows.
    """

    own_token_best: float
    rows_with_gradient: float


def embedding_effects(config: GPTConfig, ids: Sequence[int], *, seed: int = 0) -> EmbeddingEffects:
    """Measure the embedding and head of an untrained model, tied or untied as in `config`. Meant for small models."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed))
    embedding, head = model.wte.weight.detach(), model.lm_head.weight.detach()  # (vocab_size, C) each
    best = (embedding @ head.T).argmax(dim=1)  # (vocab_size,)
    own = (best == torch.arange(config.vocab_size)).float().mean()
    text = torch.tensor([list(ids)])
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(model.loss(text[:, :-1], text[:, 1:]), model.wte.weight)
    return EmbeddingEffects(own.item(), gradient.any(dim=1).float().mean().item())
