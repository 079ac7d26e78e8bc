"""One forward pass over several texts of different lengths, each with its own key-value cache.

The linear layers run once over the tokens of all texts. Attention runs once for all texts that read a single token, and
separately for each prompt. The result is that of `GPT.hidden_states` for each text; traces, edits, padding and dropout
are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.inference.decode_cache import DecodeCache
from gpt.model import GPT, TransformerBlock, apply_rotary, causal_mask, rotary_angles

ROWS = 4  # matrix products are faster with a multiple of this number of rows


def can_batch(model: GPT) -> bool:
    """Whether `batched_hidden_states` supports a model: only the modules of `gpt.model`, in evaluation mode."""
    return type(model) is GPT and not model.training and all(type(block) is TransformerBlock for block in model.h)


class PromptPart:
    """The next tokens of one text: attention in its own cache."""

    def __init__(self, ids: Sequence[int], cache: KVCache) -> None:
        self.ids, self.positions = list(ids), list(range(cache.length, cache.length + len(ids)))
        self.cache, self.layers = cache, cache.layer_views(len(ids))
        self.is_causal = len(ids) > 1 and cache.length == 0
        is_masked = len(ids) > 1 and cache.length > 0
        self.mask = causal_mask(len(ids), cache.length + len(ids), cache.k.device) if is_masked else None

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """(T, 3, nh, hs) -> (T, C)"""
        new, k, v = self.layers[layer]
        heads = qkv.permute(1, 2, 0, 3)[:, None]  # (3, 1, nh, T, hs)
        new.copy_(heads[-new.shape[0] :])
        y = F.scaled_dot_product_attention(heads[0], k, v, self.mask, is_causal=self.is_causal)  # (1, nh, T, hs)
        return y[0].transpose(0, 1).flatten(1)

    def finish(self, states: Tensor) -> list[Tensor]:
        """The states of each text, from those of all tokens: (T, C)."""
        self.cache.advance(len(self.ids))
        return [states]


class StepPart:
    """One token of each of several texts: attention in the rows of the `DecodeCache`, some of which may be unused."""

    def __init__(self, ids: Sequence[int], caches: Sequence[KVCache], decode_cache: DecodeCache) -> None:
        n_rows = len(ids) + -len(ids) % ROWS
        self.caches, self.decode_cache = caches, decode_cache
        self.places = decode_cache.place(caches, n_rows)
        self.ids, self.positions = [0] * n_rows, [0] * n_rows
        for i, token_id, cache in zip(self.places, ids, caches, strict=True):
            self.ids[i], self.positions[i] = token_id, cache.length
        kv, S = decode_cache.kv, max(self.positions) + 1
        self.layers = kv[:, :, :n_rows].unbind(0)  # (2, R, nh, length, hs) each
        self.rows, self.ends = torch.arange(n_rows, device=kv.device), torch.tensor(self.positions, device=kv.device)
        hidden = torch.arange(S, device=kv.device) > self.ends[:, None]
        self.mask = kv.new_zeros(hidden.shape).masked_fill(hidden, -torch.inf)[:, None, None]  # (R, 1, 1, S)
        self.new: list[Tensor] = []  # of each layer

    def attend(self, layer: int, qkv: Tensor) -> Tensor:
        """(R, 3, nh, hs) -> (R, C)"""
        kv = self.layers[layer]
        kv[:, self.rows, :, self.ends] = qkv[:, 1:]
        k, v = kv[..., : self.mask.shape[-1], :]  # (R, nh, S, hs)
        self.new.append(qkv)
        return F.scaled_dot_product_attention(qkv[:, 0, :, None], k, v, self.mask).flatten(1)

    def finish(self, states: Tensor) -> list[Tensor]:
        """The states of each text, (1, C), from those of all rows, (R, C)."""
        new = torch.stack(self.new)  # (n_layer, R, 3, nh, hs)
        for i, cache in zip(self.places, self.caches, strict=True):
            cache.append(new[:, i])
        self.decode_cache.advance(self.places)
        return [states[i : i + 1] for i in self.places]


@torch.inference_mode()
def batched_hidden_states(
    model: GPT,
    texts: Sequence[Sequence[int]],
    caches: Sequence[KVCache],
    decode_cache: DecodeCache,
    *,
    pad: bool = False,
) -> list[Tensor]:
    """Read the next ids of each text into its cache.

    texts: T ids each, T may differ. caches: of batch size 1. decode_cache: of this model.
    pad: add rows up to a multiple of ROWS, which is faster for a large model.
    Returns (T, C) for each text, after the final norm.
    Raises ValueError if a text does not fit its cache; no cache is changed then.
    """
    for ids, cache in zip(texts, caches, strict=True):
        cache.check_room(len(ids))
    single = [i for i, ids in enumerate(texts) if len(ids) == 1]
    steps = single if len(single) > 1 else []
    order = [i for i in range(len(texts)) if i not in steps] + steps
    parts: list[PromptPart | StepPart] = [PromptPart(texts[i], caches[i]) for i in order[: len(order) - len(steps)]]
    if steps:
        parts.append(StepPart([texts[i][0] for i in steps], [caches[i] for i in steps], decode_cache))
    sizes = [len(part.ids) for part in parts]
    unused = [0] * (-sum(sizes) % ROWS if pad else 0)
    idx = torch.tensor([*chain(*(part.ids for part in parts)), *unused], device=model.device)  # (N,)
    positions = torch.tensor([*chain(*(part.positions for part in parts)), *unused], device=model.device)
    x, rotary = model.wte(idx), None  # (N, C)
    if model.wpe is not None:
        x = x + model.wpe(positions)
    else:
        cos, sin = rotary_angles(positions, model.config.head_size)
        rotary = cos[:, None, None], sin[:, None, None]  # (N, 1, 1, hs)
    sizes.append(len(unused))
    padding = x.new_zeros(len(unused), x.shape[1])
    for layer, block in enumerate(model.h):
        assert isinstance(block, TransformerBlock)  # see can_batch
        qkv = block.attn.c_attn(block.ln_1(x)).view(len(idx), 3, model.config.n_head, -1)  # (N, 3, nh, hs)
        if rotary is not None:
            qkv = torch.cat((apply_rotary(qkv[:, :2], *rotary), qkv[:, 2:]), dim=1)
        y = [part.attend(layer, of_part) for part, of_part in zip(parts, qkv.split(sizes), strict=False)]
        x = x + block.attn.c_proj(torch.cat([*y, padding]))
        x = x + block.mlp(block.ln_2(x))
    finished = [part.finish(states) for part, states in zip(parts, model.ln_f(x).split(sizes), strict=False)]
    states_of = dict(zip(order, chain(*finished), strict=True))
    return [states_of[i] for i in range(len(texts))]
