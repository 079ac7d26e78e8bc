"""One forward pass over several texts of different lengths, each with its own key-value cache.

The linear layers, which take most of the time, run once over the tokens of all texts; attention runs per text. The
result is that of `GPT.hidden_states` for each text; traces, edits, padding and dropout are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.model import GPT, ForwardContext, TransformerBlock, apply_rotary, causal_mask, rotary_angles

NO_CONTEXT = ForwardContext()


def can_batch(model: GPT) -> bool:
    """Whether `batched_hidden_states` supports a model: only the modules of `gpt.model`, in evaluation mode."""
    return type(model) is GPT and not model.training and all(type(block) is TransformerBlock for block in model.h)


@torch.inference_mode()
def batched_hidden_states(model: GPT, texts: Sequence[Sequence[int]], caches: Sequence[KVCache]) -> list[Tensor]:
    """Read the next ids of each text into its cache.

    texts: T ids each, T may differ. caches: of batch size 1. Returns (T, C) for each, after the final norm.
    Raises ValueError if a text does not fit its cache; no cache is changed then.
    """
    sizes, starts = [len(ids) for ids in texts], [cache.length for cache in caches]
    for cache, T in zip(caches, sizes, strict=True):
        cache.check_room(T)
    layers = [cache.layer_views(T) for cache, T in zip(caches, sizes, strict=True)]
    masks = [
        causal_mask(T, start + T, model.device) if T > 1 and start > 0 else None
        for T, start in zip(sizes, starts, strict=True)
    ]
    idx = torch.tensor(list(chain(*texts)), device=model.device)  # (N,), N tokens in all
    positions = torch.tensor([start + t for T, start in zip(sizes, starts, strict=True) for t in range(T)]).to(idx)
    x, rotary = model.wte(idx), None  # (N, C)
    if model.wpe is not None:
        x = x + model.wpe(positions)
    else:
        cos, sin = rotary_angles(positions, model.config.head_size)
        rotary = cos[:, None, None], sin[:, None, None]  # (N, 1, 1, hs)
    for layer, block in enumerate(model.h):
        assert isinstance(block, TransformerBlock)  # see can_batch
        qkv = block.attn.c_attn(block.ln_1(x)).view(len(idx), 3, model.config.n_head, -1)  # (N, 3, nh, hs)
        if rotary is not None:
            qkv = torch.cat((apply_rotary(qkv[:, :2], *rotary), qkv[:, 2:]), dim=1)
        heads, y = qkv.permute(1, 2, 0, 3)[:, None], []  # (3, 1, nh, N, hs)
        parts, queries = heads.split(sizes, dim=-2), heads[0].split(sizes, dim=-2)
        for part, q, T, views, mask in zip(parts, queries, sizes, layers, masks, strict=True):
            new, k, v = views[layer]
            new.copy_(part[-len(new) :])
            y.append(F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None and T > 1))
        x = x + block.attn.c_proj(torch.cat(y, dim=-2)[0].transpose(0, 1).flatten(1))  # (nh, N, hs) -> (N, C)
        x = x + block.mlp(block.ln_2(x), NO_CONTEXT)
    for cache, T in zip(caches, sizes, strict=True):
        cache.advance(T)
    return list(model.ln_f(x).split(sizes))
