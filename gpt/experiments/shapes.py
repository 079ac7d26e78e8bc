"""Parameters, KV cache and FLOPs of a GPT from its configuration, weight tying, and recorded scaling runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch

from gpt.config import PRESETS, GPTConfig
from gpt.model import GPT, meta_model

SCALING = Path(__file__).parent.parent / "assets" / "scaling.json"  # results shown on the page
Part = Literal["token_embedding", "position_embedding", "attention", "feed_forward", "norms", "head"]
PARTS: dict[str, Part] = {  # by module; all others are norms
    "wte": "token_embedding",
    "wpe": "position_embedding",
    "attn": "attention",
    "mlp": "feed_forward",
    "lm_head": "head",
}
NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}  # bytes per number, excluding int8 scales

# GPT-2 "124M" as in textbooks, without QKV biases and with an untied head: 163,009,536 parameters.
UNTIED_124M = replace(PRESETS["gpt2"], qkv_bias=False, tie_weights=False)


class WeightShape(NamedTuple):
    """A weight of a model; in the blocks, its name starts with "h.N.", and there are n_layer copies of its shape."""

    name: str
    shape: tuple[int, ...]
    copies: int

    @property
    def n_parameters(self) -> int:
        return self.copies * math.prod(self.shape)


@lru_cache(maxsize=64)
def weight_shapes(config: GPTConfig, *, skeleton: bool = False) -> tuple[WeightShape, ...]:
    """Return every weight in module order; a tied head is not repeated. skeleton: whether to omit blocks and norms."""
    model = meta_model(config.with_layers(1))
    return tuple(
        WeightShape(name.replace("h.0.", "h.N."), tuple(weight.shape), config.n_layer if name.startswith("h.") else 1)
        for name, weight in model.named_parameters()
        if not (skeleton and name.startswith(("h.", "ln_f.")))
    )


def parameter_parts(config: GPTConfig, *, skeleton: bool = False) -> dict[Part, int]:
    """Count the parameters in each part, summed over the blocks. A tied head has none."""
    counts = dict.fromkeys(get_args(Part), 0)
    for weight in weight_shapes(config, skeleton=skeleton):
        module = weight.name.removeprefix("h.N.").split(".")[0]
        counts["norms" if "norm" in weight.name else PARTS.get(module, "norms")] += weight.n_parameters
    return counts


def count_parameters(config: GPTConfig, *, skeleton: bool = False) -> int:
    """Count all parameters. A matrix shared by the embedding and the head counts once."""
    return sum(parameter_parts(config, skeleton=skeleton).values())


def cache_numbers(config: GPTConfig) -> int:
    """Count a KV cache's numbers per token: keys and values of all heads in every layer, n_embd each in GPT-2."""
    return 2 * config.n_layer * config.kv_heads * config.head_size


def flops_per_token(config: GPTConfig, position: int, *, skeleton: bool = False) -> tuple[int, int]:
    """Count the FLOPs of a forward pass for the token at `position` (0-based), with earlier tokens in the cache.

    Returns those in products with the weight matrices and those in attention. A multiplication and an addition count as
    two. Matrices need 2 per weight: in GPT-2, 2 (4 C^2 + 2 C n_ff) in each block, and 2 C vocab_size in the head, tied
    or not. Attention to S = position + 1 tokens, including those outside a window, needs 2 H S for q k^T and 2 H S for
    weights times v in each block, where H is the total width of all heads. Like the sources, this excludes the
    embedding lookup, biases, norms, softmax, activations and additions to the residual stream.
    Sources: Kaplan et al., arXiv 2001.08361, section 2.1; Hoffmann et al., arXiv 2203.15556, appendix F.
    """
    width, heads = config.n_embd, config.n_head * config.head_size
    blocks = 0 if skeleton else config.n_layer
    attention = 2 * width * (heads + config.kv_heads * config.head_size)
    per_block = attention + (3 if config.gated else 2) * width * config.ff_size
    return 2 * (blocks * per_block + width * config.vocab_size), 4 * blocks * heads * (position + 1)


def next_token_multiplications(config: GPTConfig, length: int, *, cached: bool) -> int:
    """Count the multiplications for predicting the token that follows `length` tokens, in all matrix products.

    With a cache, the pass reads one token, else all; each attends to all tokens, including those that the causal mask
    hides. The head runs only for the last token.
    """
    head = config.n_embd * config.vocab_size
    blocks = sum(flops_per_token(config, length - 1)) // 2 - head  # half of the FLOPs are multiplications
    return (1 if cached else length) * blocks + head


def embedding_effects(config: GPTConfig, ids: Sequence[int], *, seed: int = 0) -> tuple[float, float]:
    """Measure the embedding and head of an untrained model, tied or untied as in `config`. Meant for small models.

    Returns two fractions of the vocabulary: tokens whose own logit is the highest when their embedding is multiplied by
    the head, and embedding rows that receive a gradient from a text (all if tied, else only its tokens' rows).
    """
    model = GPT(config, generator=torch.Generator().manual_seed(seed))
    best = (model.wte.weight @ model.lm_head.weight.T).argmax(dim=1)  # (vocab_size,)
    own = (best == torch.arange(config.vocab_size)).float().mean()
    text = torch.tensor([list(ids)])
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(model.loss(text[:, :-1], text[:, 1:]), model.wte.weight)
    return own.item(), gradient.any(dim=1).float().mean().item()


@dataclass(frozen=True, eq=False)
class ScalingCurve:
    """Training curve of one model: tokens seen, FLOPs, loss in nats per token, and bits per byte, each (points,).

    block_parameters: number of parameters, excluding embeddings and head.
    """

    name: str
    parameters: int
    block_parameters: int
    tokens: np.ndarray
    flops: np.ndarray
    loss: np.ndarray
    bits_per_byte: np.ndarray


class Scaling(NamedTuple):
    """A run: its command, and curves of GPT-2-style models, smallest first and the bundled one last, and of Llamas."""

    command: str
    curves: tuple[ScalingCurve, ...]
    llama: tuple[ScalingCurve, ...]


def load_scaling() -> Scaling:
    def curve(points: list[dict[str, float]], **numbers: Any) -> ScalingCurve:
        numbers |= {name: np.array([each[name] for each in points]) for name in points[0]}
        return ScalingCurve(**numbers)

    found = json.loads(SCALING.read_text(encoding="utf-8"))
    curves, llama = (tuple(curve(**each) for each in found[key]) for key in ("curves", "llama"))
    return Scaling(found["command"], curves, llama)
