"""GPT-2: token ids to logits of the next token.

Module names are the keys of the GPT-2 checkpoints (wte, wpe, h, ln_1, c_attn ...). In shapes, B is the batch size, T
the number of tokens of this call, S the number of positions attended to (T plus those in the cache), C the width of
the model (n_embd), nh the number of heads and hs the size of one.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), and its released code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.checks import check_choice
from gpt.config import GPTConfig
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.trace import Trace

QUERY_CHUNK = 128  # queries per chunk of eager attention


class LayerNorm(nn.Module):
    """Layer normalisation with an optional bias (arXiv 1607.06450).

    `formula` is the definition, with the biased variance; `forward` computes the same in one kernel.
    """

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.eps = eps

    def formula(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width): mean 0 and variance 1 over the last dimension, then weight and bias."""
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        y = (x - mean) / torch.sqrt(var + self.eps) * self.weight
        return y if self.bias is None else y + self.bias

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class GELU(nn.Module):
    """Gaussian error linear unit: x times the standard normal distribution function of x (arXiv 1606.08415).

    GPT-2 uses the tanh approximation. `formula` is the definition; `forward` computes the same in one kernel.
    """

    def __init__(self, approximate: str = "tanh") -> None:
        super().__init__()
        check_choice("approximate", approximate, ("tanh", "none"))
        self.approximate = approximate

    def formula(self, x: Tensor) -> Tensor:
        """Any shape, by element: with the tanh approximation or the error function."""
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


class Dropout(nn.Dropout):
    """In training mode each number is zero with probability p, the others are divided by 1 - p (arXiv 1207.0580).

    Their mean stays the same, so nothing changes in evaluation mode. `formula` is the definition; `forward` computes
    the same. Both draw from torch's global generator.
    """

    def formula(self, x: Tensor) -> Tensor:
        """Any shape, by element; x itself in evaluation mode."""
        if not self.training:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.p)
        return x * kept / (1 - self.p)


class Linear(nn.Linear):
    """nn.Linear that draws no weights on the meta device, which would import a large part of torch for nothing."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class Embedding(nn.Embedding):
    """nn.Embedding, as `Linear`."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


@dataclass(frozen=True)
class ForwardContext:
    """Arguments of one forward pass that every layer receives.

    start: number of positions already in the cache.
    attn_mask: (T, S) or (B, 1, T, S), True where attention is allowed; None: no mask but `is_causal`.
    is_causal: each of the T tokens attends to itself and those before it; only without a mask.
    has_padding: some rows of the mask may allow no position at all.
    rotary: cosine and sine of the rotary angles, see `rotary_angles`; None without rotary positions.
    """

    start: int = 0
    attn_mask: Tensor | None = None
    is_causal: bool = True
    has_padding: bool = False
    rotary: tuple[Tensor, Tensor] | None = None
    cache: KVCache | None = None
    trace: Trace | None = None
    edits: Edits | None = None

    @classmethod
    def of_text(cls, config: GPTConfig, x: Tensor, edits: Edits | None = None) -> ForwardContext:
        """The context of x (B, T, C), a text from its first position on, without cache and trace."""
        has_positions, rotary = edits is None or not edits.drop_positions, None
        if config.position == "rotary" and has_positions:
            rotary = rotary_angles(torch.arange(x.shape[1], device=x.device), config.head_size)
        return cls(is_causal=x.shape[1] > 1, rotary=rotary, edits=edits)

    def hook(self, layer: int | None, name: str, value: Tensor) -> Tensor:
        """Apply the edits to a named activation, record it in the trace, and return it."""
        if self.edits is not None:
            value = self.edits.apply(layer, name, value, self.start)
        if self.trace is not None:
            self.trace.record(layer, name, value)
        return value


NO_CONTEXT = ForwardContext()


class CausalSelfAttention(nn.Module):
    """Multi-head attention of each token to itself and the tokens before it: (B, T, C) -> (B, T, C).

    ctx: None is that of a whole text, see `ForwardContext.of_text`.
    """

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.config, self.layer, self.n_head = config, layer, config.n_head
        self.c_attn = Linear(config.n_embd, 3 * config.n_embd, bias=config.bias and config.qkv_bias)
        self.c_proj = Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = Dropout(config.dropout)
        self.resid_dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        ctx = ctx or ForwardContext.of_text(self.config, x)
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # 3 x (B, nh, T, hs)
        if ctx.rotary is not None:
            q, k = apply_rotary(q, *ctx.rotary), apply_rotary(k, *ctx.rotary)
        if ctx.cache is not None:
            k, v = ctx.cache.update(self.layer, q, k, v)  # (B, nh, S, hs)
        attention = self.eager_attention if ctx.trace is not None and ctx.trace.attention else self.sdpa_attention
        y = attention(q, k, v, ctx)  # (B, nh, T, hs)
        if ctx.edits is not None:
            y = ctx.edits.scale_heads(self.layer, y)
        y = y.transpose(1, 2).reshape(B, T, C)  # concatenate the heads
        return self.resid_dropout(self.c_proj(y))

    def eager_attention(self, q: Tensor, k: Tensor, v: Tensor, ctx: ForwardContext) -> Tensor:
        """softmax(q k^T / sqrt(hs) + mask) v, step by step; the weights are recorded in the trace.

        Queries are taken in chunks: keys after the last query of a chunk have weight 0 and are skipped.
        """
        (B, nh, T, hs), S = q.shape, k.shape[2]
        mask = causal_mask(T, S, q.device) if ctx.attn_mask is None else ctx.attn_mask
        attn_weights, y = q.new_zeros(B, nh, T, S), []
        for first in range(0, T, QUERY_CHUNK):
            queries, keys = slice(first, first + QUERY_CHUNK), slice(S - T + first + QUERY_CHUNK)
            hidden = ~mask[..., queries, keys]
            attn_scores = (q[:, :, queries] @ k[:, :, keys].transpose(-2, -1)).div_(math.sqrt(hs))
            weights = attn_scores.masked_fill_(hidden, -math.inf).softmax(dim=-1)  # (B, nh, chunk, keys)
            if ctx.has_padding:  # softmax of a fully masked row is NaN
                weights = weights.masked_fill(hidden, 0.0)
            attn_weights[:, :, queries, keys] = weights
            y.append(self.attn_dropout(weights) @ v[:, :, keys])  # (B, nh, chunk, hs)
        for name, value in (("attn_q", q), ("attn_k", k), ("attn_v", v), ("attn_weights", attn_weights)):
            ctx.hook(self.layer, name, value)
        return torch.cat(y, dim=2)

    def sdpa_attention(self, q: Tensor, k: Tensor, v: Tensor, ctx: ForwardContext) -> Tensor:
        """`eager_attention` in one kernel that does not store the attention weights."""
        dropout = self.attn_dropout.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, ctx.attn_mask, dropout, is_causal=ctx.is_causal)
        if ctx.has_padding and ctx.attn_mask is not None:
            y = y.masked_fill(~ctx.attn_mask.any(dim=-1, keepdim=True), 0.0)
        return y


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, applied to each token separately: (..., C) -> (..., C)."""

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.layer, self.activation = layer, config.activation
        self.c_fc = Linear(config.n_embd, config.ff_size, bias=config.bias)
        self.c_proj = Linear(config.ff_size, config.n_embd, bias=config.bias)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        ctx = ctx or NO_CONTEXT
        replaced = None if ctx.edits is None else ctx.edits.activation
        activation = ACTIVATIONS[replaced or self.activation]
        pre = ctx.hook(self.layer, "mlp_pre", self.c_fc(x))  # (B, T, n_ff)
        post = ctx.hook(self.layer, "mlp_post", activation(pre))
        return self.dropout(self.c_proj(post))  # (B, T, C)


class TransformerBlock(nn.Module):
    """Attention, then feed-forward; each reads a normalised copy of the residual stream and adds its output to it.

    (B, T, C) -> (B, T, C). ctx: None is that of a whole text, see `ForwardContext.of_text`.
    """

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.config, self.layer = config, layer
        self.ln_1 = LayerNorm(config.n_embd, config.bias)
        self.attn = CausalSelfAttention(config, layer)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = FeedForward(config, layer)

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        ctx = ctx or ForwardContext.of_text(self.config, x)
        x = ctx.hook(self.layer, "resid_pre", x)
        x = x + ctx.hook(self.layer, "attn_out", self.attn(self.ln_1(x), ctx))
        x = ctx.hook(self.layer, "resid_mid", x)
        x = x + ctx.hook(self.layer, "mlp_out", self.mlp(self.ln_2(x), ctx))
        return ctx.hook(self.layer, "resid_post", x)


class GPT(nn.Module):
    """Embeddings, n_layer blocks, a final norm and the head. GPT(config)(idx) gives the logits.

    generator: of the initial weights; None is torch's global generator. On the meta device there are none.
    """

    def __init__(self, config: GPTConfig, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        with torch.device("meta"):  # the weights are drawn once, by init_weights
            self.wte = Embedding(config.vocab_size, config.n_embd)
            self.wpe = Embedding(config.block_size, config.n_embd) if config.position == "learned" else None
            self.drop = Dropout(config.dropout)
            self.h = nn.ModuleList(TransformerBlock(config, layer) for layer in range(config.n_layer))
            self.ln_f = LayerNorm(config.n_embd, config.bias)
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=config.head_bias)
        device = torch.get_default_device()
        self._apply(lambda weight: torch.empty(weight.shape, device=device))  # type: ignore[no-untyped-call]
        if config.tie_weights:
            self.lm_head.weight = self.wte.weight
        if device.type != "meta":
            self.init_weights(generator)

    def init_weights(self, generator: torch.Generator | None = None) -> None:
        """GPT-2's initialisation: normal(0, 0.02), for c_proj normal(0, 0.02 / sqrt(2 n_layer)); norms 1, biases 0."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                depth = 2 * self.config.n_layer if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(depth), generator=generator)
            else:
                nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)

    def train(self, mode: bool = True) -> GPT:
        """Set the mode. Raises ValueError for training packed weights, see `gpt.inference.packed_linear`."""
        if mode and not isinstance(self.lm_head, nn.Linear):
            raise GPTError("model.packed_train")
        return super().train(mode)

    @property
    def blocks(self) -> list[TransformerBlock]:
        """The modules of `h` with their type, which nn.ModuleList does not keep."""
        return cast(list[TransformerBlock], list(self.h))

    @property
    def device(self) -> torch.device:
        """Where the weights are, and where idx must be."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """That of the first parameter; all have the same unless somebody changed them."""
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
        """Logits of the next token at each position: (B, T) ids -> (B, T, vocab_size). Arguments: `hidden_states`."""
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
        """Everything but the head: (B, T) ids -> (B, T, C), after the final norm.

        attention_mask: (B, S), 1 for real tokens and 0 for padding, those in the cache included. Positions
            count real tokens only, so padding on the left changes nothing for them.
        cache: holds the tokens before idx; idx is added to it.
        trace: is filled with every activation of this pass.
        edits: interventions for this pass.
        Raises ValueError if idx has another shape or the text does not fit block_size.
        """
        if idx.dim() != 2:
            raise GPTError("context.shape", shape=tuple(idx.shape))
        B, T = idx.shape
        start = 0 if cache is None else cache.length
        S = start + T
        if T == 0 or S > self.config.block_size:
            raise GPTError("context.length", n=S, limit=self.config.block_size)
        if edits is not None:
            edits.check(self.config)
        if trace is not None:
            trace.begin(self.config.n_layer)
        positions = torch.arange(start, S, device=idx.device)  # (T,)
        is_causal, attn_mask = T > 1 and start == 0, None
        if attention_mask is not None:
            if attention_mask.shape != (B, S):
                raise GPTError("attention_mask.shape", expected=(B, S), shape=tuple(attention_mask.shape))
            real = attention_mask.bool()
            positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, start:]  # (B, T)
            is_causal, attn_mask = False, causal_mask(T, S, idx.device) & real[:, None, None, :]  # (B, 1, T, S)
        elif T > 1 and start > 0:
            attn_mask = causal_mask(T, S, idx.device)  # (T, S)

        has_positions = edits is None or not edits.drop_positions
        rotary = rotary_angles(positions, self.config.head_size) if self.wpe is None and has_positions else None
        ctx = ForwardContext(start, attn_mask, is_causal, attention_mask is not None, rotary, cache, trace, edits)
        x = ctx.hook(None, "token_embedding", self.wte(idx))  # (B, T, C)
        if self.wpe is not None and has_positions:
            x = x + ctx.hook(None, "position_embedding", self.wpe(positions))  # + (T, C) or (B, T, C)
        x = self.drop(x)
        for block in self.h:
            x = block(x, ctx)
        if cache is not None:
            cache.advance(T)
        return ctx.hook(None, "final_norm", self.ln_f(x))

    def loss(self, idx: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of targets (B, T), the ids that follow idx; targets of -100 are ignored."""
        logits = self(idx)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def causal_mask(T: int, S: int, device: torch.device | str = "cpu") -> Tensor:
    """(T, S), True where the last T of S positions may attend: on and below the diagonal that ends bottom right."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def rotary_angles(positions: Tensor, head_size: int, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """Cosine and sine of position x base^(-2i/hs) (arXiv 2104.09864).

    positions: (T,) or (B, T). Returns two tensors, each (T, hs) or (B, 1, T, hs).
    """
    frequency = base ** (-torch.arange(0, head_size, 2, device=positions.device) / head_size)  # (hs / 2,)
    angle = (positions[..., None] * frequency).repeat(*[1] * positions.dim(), 2)  # (..., T, hs)
    angle = angle[:, None] if positions.dim() == 2 else angle
    return angle.cos(), angle.sin()


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (x[i], x[i + hs/2]) by its angle; x is (B, nh, T, hs)."""
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-b, a), dim=-1) * sin).to(x.dtype)
