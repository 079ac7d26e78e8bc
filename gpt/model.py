"""GPT-2, from scratch: token ids in, a score for every possible next token out.

Read from the bottom up for the whole, from the top down for the parts. Names are those of the GPT-2
checkpoints (wte, wpe, h, ln_1, c_attn ...), so that loading one is a loop. B is the batch, T the tokens of
this call, S all positions that can be looked at (T plus those in the cache), C the width of the model, nh the
number of heads and hs the width of one.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), and its released code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.edits import Edits
from gpt.trace import Trace


class LayerNorm(nn.Module):
    """Shift and stretch each token's vector to mean 0 and variance 1, then by what was learned.

    `formula` is the definition, with the biased variance; `forward` is the same in one pass over memory.
    """

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.eps = eps

    def formula(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        y = (x - mean) / torch.sqrt(var + self.eps) * self.weight
        return y if self.bias is None else y + self.bias

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class GELU(nn.Module):
    """A smooth gate: x times the probability that a standard normal number is below x (arXiv 1606.08415).

    GPT-2 uses the tanh approximation. `formula` is the definition, `forward` the same in one kernel.
    """

    def __init__(self, approximate: str = "tanh") -> None:
        super().__init__()
        if approximate not in ("tanh", "none"):
            raise ValueError(f'approximate must be "tanh" or "none", not {approximate!r}')
        self.approximate = approximate

    def formula(self, x: Tensor) -> Tensor:
        if self.approximate == "tanh":
            return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate=self.approximate)


ACTIVATIONS: dict[str, nn.Module] = {
    "gelu_tanh": GELU("tanh"),
    "gelu": GELU("none"),
    "relu": nn.ReLU(),
    "silu": nn.SiLU(),
}


QUERIES = 128  # so many are looked at together where attention is computed in the open


@dataclass(frozen=True)
class Pass:
    """What one call of the model hands down to every layer."""

    start: int  # positions already in the cache
    mask: Tensor | None  # (T, S) or (B, 1, T, S), True where looking is allowed; None: see `causal`
    causal: bool  # no mask needed but "nothing later than itself"
    padded: bool  # some rows of the mask may be empty
    rotation: tuple[Tensor, Tensor] | None  # cos and sin of the rotary angles
    cache: KVCache | None
    trace: Trace | None
    edits: Edits | None

    def at(self, layer: int | None, name: str, value: Tensor) -> Tensor:
        """Every named value comes by here: edits may change it, the trace records it."""
        if self.edits is not None:
            value = self.edits.value(layer, name, value, self.start)
        if self.trace is not None:
            self.trace.record(layer, name, value)
        return value


class CausalSelfAttention(nn.Module):
    """Each token looks back at itself and the tokens before it, with n_head pairs of eyes at once."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.n_head, self.dropout = layer, config.n_head, config.dropout
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias and config.qkv_bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.resid_dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # 3 x (B, nh, T, hs)
        if run.rotation is not None:
            q, k = rotate(q, *run.rotation), rotate(k, *run.rotation)
        if run.cache is not None:
            k, v = run.cache.update(self.layer, q, k, v)  # (B, nh, S, hs)
        attend = self.in_the_open if run.trace is not None and run.trace.attention else self.fused
        y = attend(q, k, v, run)  # (B, nh, T, hs)
        if run.edits is not None:
            y = run.edits.heads(self.layer, y)
        y = y.transpose(1, 2).reshape(B, T, C)  # heads side by side
        return self.resid_dropout(self.c_proj(y))

    def in_the_open(self, q: Tensor, k: Tensor, v: Tensor, run: Pass) -> Tensor:
        """softmax(q k^T / sqrt(hs) + mask) v, step by step; the weights go into the trace.

        Some queries at a time, as none looks past itself: what lies to the right of them is zero, and not computed.
        """
        (B, nh, T, hs), S = q.shape, k.shape[2]
        mask = causal_mask(T, S, q.device) if run.mask is None else run.mask
        weights, y = q.new_zeros(B, nh, T, S), []
        for first in range(0, T, QUERIES):
            rows, seen = slice(first, first + QUERIES), slice(S - T + first + QUERIES)
            hidden = ~mask[..., rows, seen]
            scores = (q[:, :, rows] @ k[:, :, seen].transpose(-2, -1)).div_(math.sqrt(hs))  # (B, nh, rows, seen)
            part = scores.masked_fill_(hidden, -math.inf).softmax(dim=-1)
            if run.padded:  # a row that may look nowhere
                part = part.masked_fill(hidden, 0.0)
            weights[:, :, rows, seen] = part
            y.append(F.dropout(part, self.dropout, self.training) @ v[:, :, seen])  # (B, nh, rows, hs)
        for name, value in (("attn_q", q), ("attn_k", k), ("attn_v", v), ("attn_weights", weights)):
            run.at(self.layer, name, value)
        return torch.cat(y, dim=2)

    def fused(self, q: Tensor, k: Tensor, v: Tensor, run: Pass) -> Tensor:
        """The same product in one kernel that never writes the weights to memory."""
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, run.mask, dropout, is_causal=run.causal)
        if run.padded:
            y = y.masked_fill(~run.mask.any(dim=-1, keepdim=True), 0.0)
        return y


class FeedForward(nn.Module):
    """Widen, bend, narrow: each token on its own."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.activation = layer, config.activation
        self.c_fc = nn.Linear(config.n_embd, config.ff_size, bias=config.bias)
        self.c_proj = nn.Linear(config.ff_size, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        swapped = None if run.edits is None else run.edits.activation
        activation = ACTIVATIONS[swapped or self.activation]
        pre = run.at(self.layer, "mlp_pre", self.c_fc(x))  # (B, T, n_ff)
        post = run.at(self.layer, "mlp_post", activation(pre))
        return self.dropout(self.c_proj(post))  # (B, T, C)


class TransformerBlock(nn.Module):
    """Two branches, each reading a normed copy of the residual stream and adding to it."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.ln_1 = LayerNorm(config.n_embd, config.bias)
        self.attn = CausalSelfAttention(config, layer)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = FeedForward(config, layer)

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        x = run.at(self.layer, "resid_pre", x)
        x = x + run.at(self.layer, "attn_out", self.attn(self.ln_1(x), run))
        x = run.at(self.layer, "resid_mid", x)
        x = x + run.at(self.layer, "mlp_out", self.mlp(self.ln_2(x), run))
        return run.at(self.layer, "resid_post", x)


class GPT(nn.Module):
    """Embeddings, n_layer blocks, a last norm, and the head. GPT(config)(idx) gives the logits."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd) if config.position == "learned" else None
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(TransformerBlock(config, layer) for layer in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd, config.bias)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tie_weights:
            self.lm_head.weight = self.wte.weight
        self.init_weights()

    def init_weights(self) -> None:
        """GPT-2's start: normal(0, 0.02); what adds to the residual stream is scaled by 1/sqrt(2 n_layer)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                depth = 2 * self.config.n_layer if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(depth))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def forward(
        self,
        idx: Tensor,
        *,
        attention_mask: Tensor | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
        edits: Edits | None = None,
    ) -> Tensor:
        """Scores of every next token: (B, T) ids -> (B, T, vocab_size) logits. Arguments as in `hidden_states`."""
        return self.lm_head(
            self.hidden_states(idx, attention_mask=attention_mask, cache=cache, trace=trace, edits=edits)
        )

    def hidden_states(
        self,
        idx: Tensor,
        *,
        attention_mask: Tensor | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
        edits: Edits | None = None,
    ) -> Tensor:
        """Everything but the head: (B, T) ids -> (B, T, C), after the last norm.

        attention_mask: (B, S) of 1 for real tokens and 0 for padding, those in the cache included. Positions
            count real tokens only, so padding on the left changes nothing for them.
        cache: holds the tokens before idx; idx is added to it.
        trace: filled with every activation on the way; edits: what this pass should do differently.
        Raises ValueError if the text does not fit block_size.
        """
        B, T = idx.shape
        start = 0 if cache is None else cache.length
        S = start + T
        if T == 0 or S > self.config.block_size:
            raise ValueError(f"{S} tokens do not fit a context of 1 to {self.config.block_size}")
        if edits is not None:
            edits.check(self.config)
        if trace is not None:
            trace.begin(self.config.n_layer)
        positions = torch.arange(start, S, device=idx.device)  # (T,)
        causal, mask = T > 1 and start == 0, None
        if attention_mask is not None:
            if attention_mask.shape != (B, S):
                raise ValueError(f"attention_mask must be {(B, S)}, not {tuple(attention_mask.shape)}")
            real = attention_mask.bool()
            positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, start:]  # (B, T)
            causal, mask = False, causal_mask(T, S, idx.device) & real[:, None, None, :]  # (B, 1, T, S)
        elif T > 1 and start > 0:
            mask = causal_mask(T, S, idx.device)  # (T, S)

        rotation = None
        placed = edits is None or not edits.drop_positions
        if self.wpe is None and placed:
            rotation = rotary_angles(positions, self.config.head_size)
        run = Pass(start, mask, causal, attention_mask is not None, rotation, cache, trace, edits)
        x = run.at(None, "token_embedding", self.wte(idx))  # (B, T, C)
        if self.wpe is not None and placed:
            x = x + run.at(None, "position_embedding", self.wpe(positions))  # + (T, C) or (B, T, C)
        x = self.drop(x)
        for block in self.h:
            x = block(x, run)
        if cache is not None:
            cache.advance(T)
        return run.at(None, "final_norm", self.ln_f(x))

    def loss(self, idx: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of targets (B, T), the ids that follow idx; -100 is left out."""
        logits = self(idx)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def causal_mask(T: int, S: int, device: torch.device | str = "cpu") -> Tensor:
    """(T, S), True on and below the diagonal that ends in the last corner: the last T of S positions."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def rotary_angles(positions: Tensor, head_size: int, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """cos and sin of position x base^(-2i/hs): each (T, hs), or (B, 1, T, hs) for positions (B, T)."""
    speed = base ** (-torch.arange(0, head_size, 2, device=positions.device) / head_size)  # (hs / 2,)
    angle = (positions[..., None] * speed).repeat(*[1] * positions.dim(), 2)  # (..., T, hs)
    if positions.dim() == 2:
        angle = angle[:, None]
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + hs/2]) by its angle; x is (B, nh, T, hs)."""
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-b, a), dim=-1) * sin).to(x.dtype)
