"""Each part of a GPT in a few lines, as the lessons show it; the tests compare every one with the model's own code.

A text is one sequence without a batch: ids (T,), vectors (T, C). Modules and weights are those of `gpt.model`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from gpt.checks import check_head_width
from gpt.config import GPTConfig
from gpt.layers import LayerNorm, RMSNorm
from gpt.model import GPT, CausalSelfAttention, FeedForward, TransformerBlock

Cache = list[tuple[Tensor, Tensor]]  # key and value of each token


@torch.inference_mode()
def continue_text(model: GPT, ids: list[int], n: int) -> list[int]:
    """Greedy generation of n tokens, as `gpt.generate.generate_greedy`."""
    for _ in range(n):
        logits = model(torch.tensor([ids]))[0, -1]  # of the next token
        ids = [*ids, int(logits.argmax())]
    return ids


def encode_word(word: bytes, ranks: dict[bytes, int]) -> list[int]:
    """Byte-pair encoding of one word. ranks: the id of each token; smaller ones were learned earlier."""
    parts = [word[i : i + 1] for i in range(len(word))]
    while True:
        pairs = [a + b for a, b in pairwise(parts)]
        best = min(pairs, key=lambda pair: ranks.get(pair, math.inf), default=b"")
        if best not in ranks:
            return [ranks[part] for part in parts]
        i = pairs.index(best)
        parts[i : i + 2] = [best]


def sample(logits: Tensor, temperature: float, top_k: int, u: float) -> int:
    """Draw a token from logits (vocab_size,). u: a uniform random number in [0, 1)."""
    logits, ids = (logits / temperature).topk(top_k)  # sorted
    probabilities = logits.softmax(dim=0)
    return int(ids[(probabilities.cumsum(dim=0) > u).nonzero()[0]])


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One head: (T, hs) each -> (T, hs)."""
    scores = q @ k.T / math.sqrt(q.shape[-1])  # (T, T)
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    return weights @ v


def multi_head_attention(x: Tensor, attn: CausalSelfAttention) -> Tensor:
    """All heads and the output projection: (T, C) -> (T, C)."""
    q, k, v = attn.c_attn(x).chunk(3, dim=-1)  # (T, C) each
    heads = (each.chunk(attn.n_head, dim=-1) for each in (q, k, v))
    outputs = [attention(*head) for head in zip(*heads, strict=True)]
    return attn.c_proj(torch.cat(outputs, dim=-1))


def embed(ids: Tensor, wte: Tensor, wpe: Tensor) -> Tensor:
    """Token and learned position embeddings: (T,) ids -> (T, C)."""
    return wte[ids] + wpe[: len(ids)]


def rotate(x: Tensor, position: int) -> Tensor:
    """Rotary position of one query or key (hs,)."""
    half = len(x) // 2
    angle = position * 10000 ** (-torch.arange(half) / half)
    a, b = x[:half], x[half:]  # the pairs that are rotated
    turned = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
    return torch.cat(turned)


def block(x: Tensor, part: TransformerBlock) -> Tensor:
    """A pre-norm block of GPT-2: (T, C) -> (T, C)."""
    x = x + multi_head_attention(layer_norm(x, part.ln_1), part.attn)
    x = x + feed_forward(layer_norm(x, part.ln_2), part.mlp)
    return x


def layer_norm(x: Tensor, norm: LayerNorm) -> Tensor:
    """Layer normalisation of (T, C)."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    y = (x - mean) / torch.sqrt(variance + 1e-5)
    return y * norm.weight + norm.bias


def gelu(x: Tensor) -> Tensor:
    """The tanh approximation of GELU."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


def feed_forward(x: Tensor, mlp: FeedForward) -> Tensor:
    """(T, C) -> (T, C)."""
    neurons = gelu(mlp.c_fc(x))  # (T, 4 C)
    return mlp.c_proj(neurons)


def rms_norm(x: Tensor, norm: RMSNorm) -> Tensor:
    """Root mean square normalisation of (T, C): no mean, no bias."""
    mean_square = (x**2).mean(dim=-1, keepdim=True)
    y = x / torch.sqrt(mean_square + 1e-5)
    return y * norm.weight


def swiglu(x: Tensor, mlp: FeedForward) -> Tensor:
    """The gated feed-forward part of Llama: (T, C) -> (T, C)."""
    gate = mlp.c_gate(x)
    neurons = gate * torch.sigmoid(gate) * mlp.c_fc(x)  # (T, n_ff)
    return mlp.c_proj(neurons)


def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Heads that share keys: q (nh, T, hs), k and v (kv, T, hs) -> (nh, T, hs)."""
    group = len(q) // len(k)  # query heads that share a key head
    heads = [attention(q[h], k[h // group], v[h // group]) for h in range(len(q))]
    return torch.stack(heads)


def llama_block(x: Tensor, part: TransformerBlock) -> Tensor:
    """A block of Llama: (T, C) -> (T, C). Rotary positions and shared keys are in part.attn."""
    x = x + part.attn(rms_norm(x, part.ln_1)[None])[0]
    x = x + swiglu(rms_norm(x, part.ln_2), part.mlp)
    return x


def deep_network(x: Tensor, layers: Iterable[nn.Module], shortcuts: bool) -> Tensor:
    """Linear layers with GELU, as `gpt.experiments.shortcuts.DeepNetwork`."""
    for layer in layers:
        out = gelu(layer(x))
        x = x + out if shortcuts and x.shape == out.shape else out
    return x


def gpt_logits(ids: Tensor, model: GPT) -> Tensor:
    """The forward pass with learned positions: (T,) ids -> (T, vocab_size)."""
    x = embed(ids, model.wte.weight, model.wpe.weight)
    for part in model.blocks:
        x = block(x, part)
    return model.lm_head(layer_norm(x, model.ln_f))


def skeleton_logits(ids: Tensor, model: GPT) -> Tensor:
    """Embedding and head alone: (T,) ids -> (T, vocab_size)."""
    x = embed(ids, model.wte.weight, model.wpe.weight)
    return model.lm_head(x)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean loss in nats. logits: (T, vocab_size); targets: (T,), the tokens that follow."""
    p = logits.softmax(dim=-1)[torch.arange(len(targets)), targets]
    return -p.log().mean()


def untrained_model(config: GPTConfig, seed: int) -> GPT:
    """A model with its initial weights."""
    generator = torch.Generator().manual_seed(seed)
    return GPT(config, generator=generator).eval()


def train(model: GPT, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
    """An update for each batch of ids and the ids that follow them, (B, T) each."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for idx, targets in batches:
        loss = model.loss(idx, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def dropout(x: Tensor, p: float, generator: torch.Generator) -> Tensor:
    """Set each number to 0 with probability p and scale the others; in training mode only."""
    kept = torch.rand(x.shape, generator=generator) >= p
    return x * kept / (1 - p)


def load_gpt2(model: GPT, weights: dict[str, Tensor]) -> None:
    """Copy GPT-2's weights, by transformers' names."""
    linear = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    for name, ours in model.state_dict().items():
        if name != "lm_head.weight":  # tied to wte.weight
            theirs = weights[f"transformer.{name}"]
            ours.copy_(theirs.T if name.endswith(linear) else theirs)


def padded_attention(scores: Tensor, v: Tensor, is_real: Tensor) -> Tensor:
    """One head with padding. scores: (T, T), masked causally; is_real: (T,), False for padding."""
    weights = scores.masked_fill(~is_real, -math.inf).softmax(dim=-1)
    return weights @ v


def padded_positions(is_real: Tensor) -> Tensor:
    """(T,): the position of each real token, from 0."""
    return (is_real.cumsum(dim=0) - 1).clamp(min=0)


def initialise(model: GPT) -> None:
    """GPT-2's initial weights of the matrices, with the head tied to the embedding."""
    model.lm_head.weight = model.wte.weight
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            depth = 2 * model.config.n_layer if name.endswith("c_proj.weight") else 1
            nn.init.normal_(weight, std=0.02 / math.sqrt(depth))


def n_parameters(config: GPTConfig) -> int:
    """The number of parameters of a GPT-2 with a tied head."""
    C = config.n_embd
    embeddings = config.vocab_size * C + config.block_size * C
    attention = (C + 1) * 3 * C + (C + 1) * C  # c_attn, c_proj
    feed_forward = (C + 1) * 4 * C + (4 * C + 1) * C  # c_fc, c_proj
    norm = 2 * C
    return embeddings + config.n_layer * (attention + feed_forward + 2 * norm) + norm


def attend_with_cache(q: Tensor, k: Tensor, v: Tensor, cache: Cache) -> Tensor:
    """One head for the newest token, (hs,) each. cache: of the tokens before; the new key and value are added."""
    cache.append((k, v))
    keys, values = map(torch.stack, zip(*cache, strict=True))  # (T, hs)
    weights = (keys @ q / math.sqrt(len(q))).softmax(dim=0)
    return weights @ values


@dataclass(frozen=True)
class Config:
    """The numbers that define a GPT, as in `GPTConfig`."""

    vocab_size: int = 50257
    block_size: int = 1024  # tokens read at once
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768  # width

    def __post_init__(self) -> None:
        check_head_width(self.n_embd, self.n_head)
