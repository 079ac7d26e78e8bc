"""The GPT model, which maps token ids to next-token logits. The default configuration is GPT-2.

Modules are named after the keys of the GPT-2 checkpoints (wte, wpe, h, ln_1, c_attn ...). In shapes, B is the batch
size, T the number of tokens in this call, S the number of positions attended to (T plus the cache), C the model width
(n_embd), nh the number of heads, hs the size of a head, and kv the number of key and value heads, which equals nh
unless query heads share them.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), and its released code. `GPTConfig`
cites the papers behind later changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.edits import Edits
from gpt.errors import GPTError, require
from gpt.layers import (
    ACTIVATIONS,
    Dropout,
    Linear,
    Module,
    NoNorm,
    attention_scores,
    make_embedding,
    make_norm,
    make_qk_norm,
    softcap,
)
from gpt.rotary import apply_rotary, rotary_angles
from gpt.trace import Trace, for_query_heads


@dataclass(frozen=True)
class ForwardContext:
    """Forward-pass arguments that every layer receives.

    start: number of positions already in the cache.
    attn_mask: (T, S) or (B, 1, T, S), True where attention is allowed; None if `is_causal` is the only mask.
    is_causal: whether each of the T tokens attends to itself and to all earlier tokens; used only if there is no mask.
    has_padding: whether a row of the mask can be entirely False.
    rotary: cosine and sine of the rotary angles (see `rotary_angles`); None if positions are not rotary.
    windowed: context for the layers with a sliding window; None if the model has no such layers.
    attention: function called instead of `CausalSelfAttention.attend` (see `gpt.inference.batched_decode`). It takes
        the module and its queries, keys and values, (nh + 2 kv, T, hs), and returns (nh, T, hs).
    watched: whether there is a trace or an edit. Without, `hook` and `record` have nothing to do and need no call.
    """

    start: int = 0
    attn_mask: Tensor | None = None
    is_causal: bool = True
    has_padding: bool = False
    rotary: tuple[Tensor, Tensor] | None = None
    cache: KVCache | None = None
    trace: Trace | None = None
    edits: Edits | None = None
    windowed: ForwardContext | None = None
    attention: Callable[[CausalSelfAttention, Tensor], Tensor] | None = None
    watched: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "watched", self.trace is not None or self.edits is not None)

    @classmethod
    def of_text(
        cls, config: GPTConfig, x: Tensor, edits: Edits | None = None, trace: Trace | None = None
    ) -> ForwardContext:
        """Return the context for a complete text x (B, T, C), without a cache."""
        ctx = cls(is_causal=x.shape[1] > 1, edits=edits, trace=trace)
        return ctx.with_positions(config, torch.arange(x.shape[1], device=x.device), x.shape[1])

    def with_positions(self, config: GPTConfig, positions: Tensor, length: int = 0) -> ForwardContext:
        """Return this context with `windowed` set and with rotary angles for positions (T,) or (B, T).

        length: number of tokens in the whole text, for scalings that depend on it; 0 for a short text.
        """
        ctx = self.with_window(config, positions.shape[-1], positions.device)
        if config.position != "rotary" or (self.edits is not None and self.edits.drop_positions):
            return ctx
        size, scaling = config.rotary_size, config.rotary_scaling
        ctx = replace(ctx, rotary=rotary_angles(positions, size, config.rotary_base, scaling, length))
        if ctx.windowed is None:
            return ctx
        base = config.window_rotary_base
        rotary = ctx.rotary if base is None else rotary_angles(positions, size, base)
        return replace(ctx, windowed=replace(ctx.windowed, rotary=rotary))

    def with_window(self, config: GPTConfig, T: int, device: torch.device) -> ForwardContext:
        """Return this context with `windowed` set for T new positions, if the model has a sliding window."""
        if config.window is None:
            return self
        windowed, S = self, self.start + T
        if S > config.window:
            mask = causal_mask(T, S, device) if self.attn_mask is None else self.attn_mask
            windowed = replace(self, attn_mask=mask.triu(S - T - config.window + 1), is_causal=False)
        return replace(self, windowed=windowed)

    def of_layer(self, config: GPTConfig, layer: int) -> ForwardContext:
        """Return the context for a layer, with or without a window."""
        return self if self.windowed is None or config.window_of(layer) is None else self.windowed

    def opens_attention(self, layer: int) -> bool:
        """Return whether a trace or hook needs this layer's attention weights."""
        is_traced = self.trace is not None and self.trace.keeps(layer, "attn_weights")
        return is_traced or self.has_hook(layer, "attn_scores", "attn_weights")

    def has_hook(self, layer: int, *names: str) -> bool:
        return self.edits is not None and any(hook.layer == layer and hook.name in names for hook in self.edits.hooks)

    def hook(self, layer: int | None, name: str, value: Tensor) -> Tensor:
        """Apply the edits to an activation, record the result in the trace, and return it."""
        if self.edits is not None:
            value = self.edits.apply(layer, name, value, self.start)
        return self.record(layer, name, value)

    def record(self, layer: int | None, name: str, value: Tensor) -> Tensor:
        if self.trace is not None:
            self.trace.record(layer, name, value)
        return value


class CausalSelfAttention(Module):
    """Multi-head attention in which each token attends to itself and to earlier tokens: (B, T, C) -> (B, T, C)."""

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.config, self.layer, self.n_head, self.kv_heads = config, layer, config.n_head, config.kv_heads
        self.qkv_heads = self.n_head, self.kv_heads, self.kv_heads  # number of heads in q, k and v
        self.head_size = hs = config.head_size
        self.c_attn = Linear(config.n_embd, (self.n_head + 2 * self.kv_heads) * hs, bias=config.has_bias("qkv"))
        self.c_proj = Linear(self.n_head * hs, config.n_embd, bias=config.has_bias("proj"))
        self.q_norm = make_qk_norm(config, self.n_head) if config.qk_norm else None
        self.k_norm = make_qk_norm(config, self.kv_heads) if config.qk_norm else None
        self.attn_dropout = Dropout(config.dropout)
        self.resid_dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        ctx = ctx or ForwardContext.of_text(self.config, x)
        ctx = ctx if ctx.windowed is None else ctx.of_layer(self.config, self.layer)
        qkv = torch.unflatten(self.c_attn(x), -1, (-1, self.head_size)).transpose(-3, -2)  # (B, nh + 2 kv, T, hs)
        if self.q_norm is not None and self.k_norm is not None:
            q, k, v = qkv.split(self.qkv_heads, dim=-3)
            qkv = torch.cat((self.q_norm(q), self.k_norm(k), v), dim=-3)
        if ctx.rotary is not None and self.config.is_rotated(self.layer):
            qk, v = qkv.split((self.n_head + self.kv_heads, self.kv_heads), dim=-3)
            qkv = torch.cat((apply_rotary(qk, *ctx.rotary), v), dim=-3)
        y = self.attend(qkv, ctx) if ctx.attention is None else ctx.attention(self, qkv)  # (B, nh, T, hs)
        y = self.c_proj(y.transpose(-3, -2).flatten(-2))  # concatenate the heads
        return self.resid_dropout(y) if self.training else y

    def attend(self, qkv: Tensor, ctx: ForwardContext) -> Tensor:
        """Attend to the cached tokens and to those of this call, qkv (B, nh + 2 kv, T, hs). Returns (B, nh, T, hs)."""
        q, k, v = qkv.split_with_sizes(self.qkv_heads, dim=-3)
        if ctx.watched:
            q, k, v = (ctx.hook(self.layer, name, x) for name, x in (("attn_q", q), ("attn_k", k), ("attn_v", v)))
        if ctx.cache is not None:
            qkv = torch.cat((q, k, v), dim=-3) if ctx.watched else qkv
            k, v = ctx.cache.update(self.layer, qkv)  # (B, kv, S, hs)
        if not ctx.watched and self.config.attn_softcap is None:
            return self.sdpa_attention(q, k, v, ctx)
        k, v = ctx.record(self.layer, "attn_k", k), ctx.record(self.layer, "attn_v", v)
        is_open = ctx.opens_attention(self.layer) or self.config.attn_softcap is not None  # SDPA has no softcap
        y = self.eager_attention(q, k, v, ctx) if is_open else self.sdpa_attention(q, k, v, ctx)
        y = y if ctx.edits is None else ctx.edits.scale_heads(self.layer, y)
        return ctx.hook(self.layer, "head_out", y)

    def eager_attention(self, q: Tensor, k: Tensor, v: Tensor, ctx: ForwardContext) -> Tensor:
        """Compute softmax(q k^T / sqrt(hs) + mask) v step by step, so that traces and hooks see the weights.

        q: (B, nh, T, hs); k and v: (B, kv, S, hs). Each key and value head serves nh / kv query heads.
        """
        k, v = for_query_heads(k, self.n_head), for_query_heads(v, self.n_head)  # (B, nh, S, hs)
        hidden = ~(causal_mask(q.shape[2], k.shape[2], q.device) if ctx.attn_mask is None else ctx.attn_mask)
        attn_scores = attention_scores(q, k, self.config.score_scale, self.config.attn_softcap)  # (B, nh, T, S)
        if ctx.has_hook(self.layer, "attn_scores"):
            attn_scores = ctx.hook(self.layer, "attn_scores", attn_scores).clone()
        attn_weights = attn_scores.masked_fill_(hidden, -math.inf).softmax(dim=-1)
        if ctx.has_padding:  # softmax of a fully masked row is NaN
            attn_weights = attn_weights.masked_fill(hidden, 0.0)
        attn_weights = ctx.hook(self.layer, "attn_weights", attn_weights)
        return self.attn_dropout(attn_weights) @ v  # (B, nh, T, hs)

    def sdpa_attention(self, q: Tensor, k: Tensor, v: Tensor, ctx: ForwardContext) -> Tensor:
        """Compute the result of `eager_attention` in one kernel, without storing the attention weights."""
        dropout = self.attn_dropout.p if self.training else 0.0
        gqa = self.kv_heads != self.n_head
        y = F.scaled_dot_product_attention(
            q, k, v, ctx.attn_mask, dropout, is_causal=ctx.is_causal, scale=self.config.attn_scale, enable_gqa=gqa
        )
        if ctx.has_padding and ctx.attn_mask is not None:
            y = y.masked_fill(~ctx.attn_mask.any(dim=-1, keepdim=True), 0.0)
        return y


class FeedForward(Module):
    """Feed-forward network: two linear layers with an activation in between. (..., C) -> (..., C).

    It processes each token separately. If gated, the first layer's output is multiplied by the activated output of a
    third layer.
    """

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.layer, self.activation = layer, config.activation
        bias = config.has_bias("mlp")
        self.c_gate = Linear(config.n_embd, config.ff_size, bias=bias) if config.gated else None
        self.c_fc = Linear(config.n_embd, config.ff_size, bias=bias)
        self.c_proj = Linear(config.ff_size, config.n_embd, bias=bias)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        ctx = ctx or ForwardContext()
        layer, replaced = self.layer, None if ctx.edits is None else ctx.edits.activation
        activation = ACTIVATIONS[replaced or self.activation]
        pre = (self.c_gate or self.c_fc)(x)  # (B, T, n_ff)
        post = activation(ctx.hook(layer, "mlp_pre", pre) if ctx.watched else pre)
        if self.c_gate is not None:
            up = self.c_fc(x)
            post = post * (ctx.hook(layer, "mlp_up", up) if ctx.watched else up)
        y = self.c_proj(ctx.hook(layer, "mlp_post", post) if ctx.watched else post)  # (B, T, C)
        return self.dropout(y) if self.training else y


class TransformerBlock(Module):
    """Attention and a feed-forward network, each of which adds its output to the residual stream.

    (B, T, C) -> (B, T, C). With pre_norm, each reads a normalised copy of the residual stream. With parallel, both read
    the same copy. With post_norm, their outputs are normalised before they are added.
    """

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.config, self.layer = config, layer
        self.ln_1 = make_norm(config, config.n_embd) if config.pre_norm else NoNorm()
        self.attn = CausalSelfAttention(config, layer)
        self.ln_1_post = make_norm(config, config.n_embd) if config.post_norm else None
        self.ln_2 = make_norm(config, config.n_embd) if config.pre_norm else NoNorm()
        self.mlp = FeedForward(config, layer)
        self.ln_2_post = make_norm(config, config.n_embd) if config.post_norm else None

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        ctx = ctx or ForwardContext.of_text(self.config, x)
        layer, watched = self.layer, ctx.watched
        resid_pre = ctx.hook(layer, "resid_pre", x) if watched else x
        x = self.ln_1(resid_pre)
        x = self.attn(ctx.hook(layer, "ln_1", x) if watched else x, ctx)
        x = x if self.ln_1_post is None else self.ln_1_post(x)
        resid_mid = resid_pre + (ctx.hook(layer, "attn_out", x) if watched else x)
        resid_mid = ctx.hook(layer, "resid_mid", resid_mid) if watched else resid_mid
        x = self.ln_2(resid_pre if self.config.parallel else resid_mid)
        x = self.mlp(ctx.hook(layer, "ln_2", x) if watched else x, ctx)
        x = x if self.ln_2_post is None else self.ln_2_post(x)
        resid_post = resid_mid + (ctx.hook(layer, "mlp_out", x) if watched else x)
        return ctx.hook(layer, "resid_post", resid_post) if watched else resid_post


class GPT(Module):
    """Embeddings, n_layer blocks, a final norm and the output head. GPT(config)(idx) returns the logits.

    generator: source of random numbers for the initial weights; defaults to torch's global generator. Unused on the
        meta device.
    """

    def __init__(self, config: GPTConfig, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        with torch.device("meta"):  # the weights are drawn once, by init_weights
            self.wte = make_embedding(config.vocab_size, config.n_embd)
            self.wpe = make_embedding(config.block_size, config.n_embd) if config.position == "learned" else None
            self.drop = Dropout(config.dropout)
            self.h = nn.ModuleList(TransformerBlock(config, layer) for layer in range(config.n_layer))
            self.ln_f = make_norm(config, config.n_embd)
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=config.head_bias)
        device = torch.get_default_device()
        self._apply(lambda weight: torch.empty(weight.shape, device=device))  # type: ignore[no-untyped-call]
        if config.tie_weights:
            self.lm_head.weight = self.wte.weight
        if device.type != "meta":
            self.init_weights(generator)

    def init_weights(self, generator: torch.Generator | None = None) -> None:
        """Initialise as in GPT-2: normal(0, 0.02), c_proj normal(0, 0.02 / sqrt(2 n_layer)), norms 1, biases 0."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                depth = 2 * self.config.n_layer if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(depth), generator=generator)
            else:
                nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)

    def train(self, mode: bool = True) -> GPT:
        """Switch to training or evaluation mode. Raises ValueError for training mode if no weight has a gradient."""
        require(not mode or any(parameter.requires_grad for parameter in self.parameters()), "model.frozen")
        return super().train(mode)

    @property
    def blocks(self) -> list[TransformerBlock]:
        """The modules in `h`, typed as TransformerBlock."""
        return cast(list[TransformerBlock], list(self.h))

    @property
    def n_parameters(self) -> int:
        """Number of parameters; a shared matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def device(self) -> torch.device:
        """Device of the weights. idx must be on the same device."""
        return self.wte.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the parameters."""
        return self.wte.weight.dtype

    def new_cache(self, batch_size: int = 1, max_length: int | None = None, **keeps: bool) -> KVCache:
        """Create an empty cache for this model. Takes the same arguments as `KVCache`."""
        return KVCache(self.config, batch_size, max_length, dtype=self.dtype, device=self.device, **keeps)

    def forward(
        self,
        idx: Tensor,
        *,
        attention_mask: Tensor | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
        edits: Edits | None = None,
    ) -> Tensor:
        """Return next-token logits for each position: (B, T) ids -> (B, T, vocab_size). See `hidden_states`."""
        start = 0 if cache is None else cache.length
        states = self.hidden_states(idx, attention_mask=attention_mask, cache=cache, trace=trace, edits=edits)
        logits = self.logits(states)
        return ForwardContext(start, trace=trace, edits=edits).hook(None, "logits", logits)

    def logits(self, states: Tensor) -> Tensor:
        """Apply the output head and the softcap to normalised states: (..., C) -> (..., vocab_size)."""
        logits = self.lm_head(states)
        return logits if self.config.logit_softcap is None else softcap(logits, self.config.logit_softcap)

    def hidden_states(
        self,
        idx: Tensor,
        *,
        attention_mask: Tensor | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
        edits: Edits | None = None,
    ) -> Tensor:
        """Return the states after the final norm, before the output head: (B, T) ids -> (B, T, C).

        attention_mask: (B, S), 1 for real tokens and 0 for padding, including the tokens in the cache. Positions count
            only real tokens, so left padding does not affect the result.
        cache: keys and values of the tokens before idx; those of idx are appended.
        trace: records the activations of this pass.
        edits: interventions for this pass.
        Raises ValueError if idx has the wrong shape, the text is longer than block_size, or a cache that has been
        emptied must be filled again (see `KVCache.begin`).
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
            if cache is None:
                edits.check_text(S)
        if trace is not None:
            trace.begin(self.config.n_layer, self.config.score_scale, self.config.attn_softcap, edits)
        positions, length = torch.arange(start, S, device=idx.device), S  # (T,)
        is_causal, attn_mask = T > 1 and start == 0, None
        if attention_mask is not None:
            if attention_mask.shape != (B, S):
                raise GPTError("attention_mask.shape", expected=(B, S), shape=tuple(attention_mask.shape))
            real = attention_mask.bool()
            positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, start:]  # (B, T)
            is_causal, attn_mask = False, causal_mask(T, S, idx.device) & real[:, None, None, :]  # (B, 1, T, S)
            length = int(positions.max()) + 1  # of the longest text
        elif T > 1 and start > 0:
            attn_mask = causal_mask(T, S, idx.device)  # (T, S)

        if cache is not None and length > cache.n_text and cache.begin(length) and start > 0:
            raise GPTError("cache.scaling", n=length)
        ctx = ForwardContext(start, attn_mask, is_causal, attention_mask is not None, None, cache, trace, edits)
        ctx = ctx.with_positions(self.config, positions, length if cache is None else cache.n_text)
        states = self.hidden_states_in(ctx, idx, positions)
        if cache is not None:
            cache.advance(T)
        return states

    def hidden_states_in(self, ctx: ForwardContext, idx: Tensor, positions: Tensor) -> Tensor:
        """Compute `hidden_states` in a given context, without checking arguments or advancing the cache.

        idx (B, T) and positions (T,) or (B, T) -> (B, T, C).
        """
        x = self.wte(idx)  # (B, T, C)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        x = ctx.hook(None, "token_embedding", x) if ctx.watched else x
        if self.wpe is not None and (ctx.edits is None or not ctx.edits.drop_positions):
            at = self.wpe(positions)  # (T, C) or (B, T, C)
            x = x + (ctx.hook(None, "position_embedding", at) if ctx.watched else at)
        x = self.drop(x) if self.training else x
        n_blocks = None if ctx.trace is None else ctx.trace.n_blocks
        for block in self.h if n_blocks is None else self.h[:n_blocks]:
            x = block(x, ctx)
        if n_blocks is not None:
            return x
        x = self.ln_f(x)
        return ctx.hook(None, "final_norm", x) if ctx.watched else x

    def loss(self, idx: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy in nats. targets: (B, T), the id after each token in idx; -100 is ignored."""
        logits = self(idx)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def causal_mask(T: int, S: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the causal mask for the last T of S positions: (T, S), True where attention is allowed."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def meta_model(config: GPTConfig) -> GPT:
    """Create a model on the meta device: its tensors have shapes but use no memory."""
    with torch.device("meta"):
        return GPT(config)
