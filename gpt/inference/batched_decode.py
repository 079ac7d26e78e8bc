"""A forward pass over several texts of different lengths, each with its own key-value cache.

The linear layers run once over the tokens of all texts. Attention runs once for all texts with a single new token, and
separately for each prompt. For each text, the result is the same as that of `GPT.hidden_states`. Each text may have
its own steering. Traces, other edits, padding and dropout are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.edits import Edits, Hook, Steering
from gpt.inference.decode_cache import Block, DecodeCache
from gpt.layers import attention_scores
from gpt.model import GPT, CausalSelfAttention, ForwardContext, TransformerBlock, causal_mask


def can_batch(model: GPT) -> bool:
    """Return whether `batched_hidden_states` supports a model, which must be unmodified and in evaluation mode."""
    return type(model) is GPT and not model.training and all(type(block) is TransformerBlock for block in model.h)


class PromptPart:
    """The next T tokens of one text, which attend to the text's own cache."""

    def __init__(self, model: GPT, T: int, cache: KVCache) -> None:
        self.T, self.caches = T, [cache]
        mask = causal_mask(T, cache.length + T, model.device) if T > 1 and cache.length > 0 else None
        ctx = ForwardContext(cache.length, mask, is_causal=T > 1 and mask is None, cache=cache)
        self.context = ctx.with_window(model.config, T, model.device)  # queries and keys have already been rotated

    def attend(self, module: CausalSelfAttention, qkv: Tensor) -> Tensor:
        """Attend to the cache: queries, keys and values (nh + 2 kv, T, hs) -> (nh, T, hs)."""
        return module.attend(qkv[None], self.context.of_layer(module.config, module.layer))[0]

    def finish(self) -> None:
        self.caches[0].advance(self.T)


class StepPart:
    """The next token for each of R texts. Each token attends to its text's row in a `DecodeCache` block."""

    def __init__(self, model: GPT, caches: Sequence[KVCache], block: Block) -> None:
        self.block, self.caches = block, block.place(caches)  # in the order of their rows
        R, lengths = len(caches), [cache.length for cache in self.caches]
        self.layers = block.kv[:, :, :R, :, : max(lengths) + 1]  # (n_layer, 2, R, kv, S, hs)
        self.every, self.ends = torch.arange(R, device=model.device), torch.tensor(lengths, device=model.device)
        self.mask = self._mask(None)
        self.window_mask = self.mask if model.config.window is None else self._mask(model.config.window)
        self.new: list[Tensor] = []  # queries, keys and values of each layer

    def _mask(self, window: int | None) -> Tensor:
        """Return a mask to add to the scores, with -inf at hidden positions: (R, 1, 1, S)."""
        positions = torch.arange(self.layers.shape[-2], device=self.ends.device)  # (S,)
        hidden = positions > self.ends[:, None]
        if window is not None:
            hidden |= positions <= self.ends[:, None] - window
        return self.block.kv.new_zeros(hidden.shape).masked_fill(hidden, -torch.inf)[:, None, None]

    def attend(self, module: CausalSelfAttention, qkv: Tensor) -> Tensor:
        """Attend to the texts' rows: queries, keys and values (nh + 2 kv, R, hs) -> (nh, R, hs)."""
        config, new = module.config, qkv.transpose(0, 1)  # (R, nh + 2 kv, hs)
        queries, new_kv = new.split((module.n_head, 2 * module.kv_heads), dim=1)
        kv = self.layers[module.layer]  # (2, R, kv, S, hs)
        kv[:, self.every, :, self.ends] = new_kv.unflatten(1, (2, -1))
        self.new.append(new)
        keys, values = kv.unbind(0)
        queries = queries.unflatten(1, (module.kv_heads, -1))  # (R, kv, nh / kv, hs), grouped by key head
        mask = self.mask if config.window_of(module.layer) is None else self.window_mask
        if config.attn_softcap is None and not qkv.is_cpu:
            y = F.scaled_dot_product_attention(queries, keys, values, mask, scale=config.attn_scale)
        else:  # on a CPU, faster than that kernel
            attn_scores = attention_scores(queries, keys, config.score_scale, config.attn_softcap)
            y = attn_scores.add_(mask).softmax(dim=-1) @ values
        return y.flatten(1, 2).transpose(0, 1)

    def finish(self) -> None:
        new = torch.stack(self.new)  # (n_layer, R, heads, hs)
        for i, cache in enumerate(self.caches):
            cache.append(new[:, i])
        self.block.advance(len(self.caches))


@torch.inference_mode()
def batched_hidden_states(
    model: GPT,
    texts: Sequence[Sequence[int]],
    caches: Sequence[KVCache],
    decode_cache: DecodeCache,
    steering: Sequence[tuple[Steering, ...]] | None = None,
) -> list[Tensor]:
    """Read the next ids of each text into its cache.

    texts: new ids for each text; their number T may differ. caches: one per text, with batch size 1. decode_cache: the
    engine's `DecodeCache`. steering: one entry per text; None for no steering.

    Returns the states after the final norm, (T, C) for each text.
    Raises ValueError, without changing any cache, if a text does not fit its cache or its steering does not fit
    the model.
    """
    new_ids = dict(zip(caches, texts, strict=True))
    for cache, text in new_ids.items():
        cache.check_room(len(text))
    groups = decode_cache.groups([cache for cache, text in new_ids.items() if len(text) == 1])
    together = {*chain(*(group for _, group in groups))}
    prompts = [cache for cache in caches if cache not in together]
    parts: list[PromptPart | StepPart] = [PromptPart(model, len(new_ids[cache]), cache) for cache in prompts]
    parts += [StepPart(model, group, block) for block, group in groups]
    sizes = [sum(len(new_ids[cache]) for cache in part.caches) for part in parts]

    ids, places, rows_of = list[int](), list[int](), dict[KVCache, slice]()  # of the tokens in the pass
    for cache in chain(*(part.caches for part in parts)):
        rows_of[cache] = slice(len(ids), len(ids) + len(new_ids[cache]))
        places += range(cache.length, cache.length + len(new_ids[cache]))
        ids += new_ids[cache]
    idx, positions = torch.tensor(ids, device=model.device), torch.tensor(places, device=model.device)  # (N,) each

    def attention(module: CausalSelfAttention, qkv: Tensor) -> Tensor:
        if len(parts) == 1:  # without a copy
            return parts[0].attend(module, qkv)
        split = zip(parts, qkv.split(sizes, dim=1), strict=True)
        return torch.cat([part.attend(module, its_qkv) for part, its_qkv in split], dim=1)

    edits = None if steering is None else _edits(model, steering, [rows_of[cache] for cache in caches], places)
    ctx = ForwardContext(is_causal=False, attention=attention, edits=edits).with_positions(model.config, positions)
    states = model.hidden_states_in(ctx, idx, positions)  # (N, C)
    for part in parts:
        part.finish()
    return [states[rows_of[cache]] for cache in caches]


def _edits(
    model: GPT, steering: Sequence[tuple[Steering, ...]], rows: Sequence[slice], positions: Sequence[int]
) -> Edits | None:
    """Return hooks that steer each text's rows in the pass; None if no text is steered."""
    every = Edits(steering=tuple(chain.from_iterable(steering)))
    every.check(model.config)
    of_texts = [
        (Edits(steering=vectors), its_rows) for vectors, its_rows in zip(steering, rows, strict=True) if vectors
    ]

    def apply(layer: int, x: Tensor) -> Tensor:
        for edits, its_rows in of_texts:
            x[its_rows] = edits.apply(layer, "resid_post", x[its_rows], positions[its_rows.start])
        return x

    layers = sorted({vector.layer for vector in every.steering})
    return Edits(hooks=tuple(Hook("resid_post", layer, partial(apply, layer)) for layer in layers)) if layers else None
