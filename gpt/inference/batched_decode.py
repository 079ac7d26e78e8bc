"""A forward pass over several texts of different lengths, each with its own key-value cache.

The linear layers run once over the tokens of all texts. Attention runs once for all texts with a single new token,
over copies of their keys and values (see `DecodeCache`), and separately for each prompt. For each text, the result is
the same as that of `GPT.hidden_states`. Each text may have its own steering. Traces, other edits, padding and dropout
are not supported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from weakref import ref

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.edits import Edits, Hook
from gpt.layers import attention_scores
from gpt.model import GPT, CausalSelfAttention, ForwardContext, TransformerBlock, causal_mask

MAX_ROWS = 32  # maximum number of texts per attention kernel call
SHORT_TEXT = 256  # texts up to this length share a block
FILL_POSITIONS = 64  # a row's memory grows in steps of this many positions


def can_batch(model: GPT) -> bool:
    """Return whether `batched_hidden_states` supports a model, which must be unmodified and in evaluation mode."""
    return type(model) is GPT and not model.training and all(type(block) is TransformerBlock for block in model.h)


@torch.inference_mode()
def batched_hidden_states(
    model: GPT,
    texts: Sequence[Sequence[int]],
    caches: Sequence[KVCache],
    decode_cache: DecodeCache,
    edits: Sequence[Edits | None] = (),
) -> list[Tensor]:
    """Read the next ids of each text into its cache.

    texts: new ids for each text; their number T may differ. caches: one per text, with batch size 1. decode_cache: the
    engine's `DecodeCache`. edits: one entry per text, which may only steer; by default, no text is steered.

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

    steered = {cache: each for cache, each in zip(caches, edits, strict=False) if each is not None}
    for each in steered.values():
        each.check(model.config)

    def steer(layer: int, x: Tensor) -> Tensor:
        for cache, each in steered.items():
            rows = rows_of[cache]
            x[rows] = each.apply(layer, "resid_post", x[rows], cache.length)
        return x

    layers = sorted({vector.layer for each in steered.values() for vector in each.steering})
    hooks = tuple(Hook("resid_post", layer, partial(steer, layer)) for layer in layers)
    ctx = ForwardContext(is_causal=False, attention=attention, edits=Edits(hooks=hooks) if hooks else None)
    states = model.hidden_states_in(ctx.with_positions(model.config, positions), idx, positions)  # (N, C)
    for part in parts:
        part.finish()
    return [states[rows_of[cache]] for cache in caches]


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
        for cache, row, of_text in zip(self.caches, self.block.rows, new.unbind(1), strict=False):
            cache.append(of_text)
            row.length += 1


@dataclass
class Row:
    """Contents of a block's row: the first `length` positions of a cache that has been cropped `n_crops` times.

    cache: weak reference to it. filled: number of positions that have ever been written and therefore occupy memory.
    """

    cache: Callable[[], KVCache | None] = lambda: None
    n_crops: int = 0
    length: int = 0
    filled: int = 0


class Block:
    """Keys and values of similarly long texts, copied into one row per text so that one kernel call covers them all.

    kv: (n_layer, 2, rows, kv_heads, length, head_size), keys and values. On a CPU, memory is allocated on first write,
    so only rows in use take up memory, up to the length of the longest text. row_bytes: size of a full row.
    """

    def __init__(self, cache: KVCache, length: int) -> None:
        n_layer, _, heads, _, head_size = cache.k.shape
        self.kv = cache.kv.new_empty(n_layer, 2, 0, heads, length, head_size)
        self.row_bytes = 2 * n_layer * heads * length * head_size * self.kv.itemsize
        self.rows: list[Row] = []

    @property
    def n_bytes(self) -> int:
        if not self.kv.is_cpu:
            return self.kv.nbytes
        return self.row_bytes * sum(row.filled for row in self.rows) // self.kv.shape[-2]

    def place(self, caches: Sequence[KVCache]) -> list[KVCache]:
        """Copy each of n caches into one of the first n rows, with room for one more position.

        Copies only the positions that are missing from the row. Returns the caches in the order of their rows.
        """
        n_rows, longest = len(caches), max(cache.length for cache in caches) + 1
        filled = min(math.ceil(longest / FILL_POSITIONS) * FILL_POSITIONS, self.kv.shape[-2])
        if n_rows > len(self.rows):
            n_layer, _, n_before, *shape = self.kv.shape
            n_reserved = min(MAX_ROWS, max(n_rows, 2 * n_before))
            self.rows, self.kv = [], self.kv.new_empty(n_layer, 2, 0, *shape)  # free the memory before allocating more
            self.kv = self.kv.new_empty(n_layer, 2, n_reserved, *shape)
            self.rows = [Row() for _ in range(n_reserved)]
        known = {row.cache(): i for i, row in enumerate(self.rows[:n_rows])}
        free = set(range(n_rows)) - {known.get(cache) for cache in caches}
        placed = {known[cache] if cache in known else free.pop(): cache for cache in caches}
        for i, cache in placed.items():
            row = self.rows[i]
            if row.cache() is not cache or row.n_crops != cache.n_crops:
                row.cache, row.n_crops, row.length = ref(cache), cache.n_crops, 0
            if row.length < cache.length:
                new = slice(row.length, cache.length)
                self.kv[:, :, i, :, new] = cache.kv[:, 0, :, new].unflatten(1, (2, -1))
                row.length = cache.length
            if row.filled < filled:
                self.kv[:, :, i, :, max(row.filled, row.length) : filled] = 0  # masked positions must be finite
                row.filled = filled
        return [placed[i] for i in range(n_rows)]


class DecodeCache:
    """Blocks for one model's texts. A text moves to a block of twice the length when its block is full.

    Long texts therefore do not increase the memory or time that short texts need. free_bytes: function that returns how
    many more bytes the blocks may use; a text that does not fit attends to its own cache, separately from the others.
    """

    def __init__(self) -> None:
        self.free_bytes: Callable[[], int] = lambda: sys.maxsize
        self._blocks: dict[int, Block] = {}  # {length: block}

    @property
    def n_bytes(self) -> int:
        return sum(block.n_bytes for block in list(self._blocks.values()))

    def groups(self, caches: Sequence[KVCache]) -> list[tuple[Block, list[KVCache]]]:
        """Group caches by block, with 2 to MAX_ROWS caches per block."""
        by_length: dict[int, list[KVCache]] = {}
        for cache in caches:
            needed = max(SHORT_TEXT, cache.length + 1)
            length = min(1 << (needed - 1).bit_length(), cache.config.block_size)
            by_length.setdefault(length, []).append(cache)
        found, free = [], self.free_bytes()
        for length, group in by_length.items():
            block = self._blocks.setdefault(length, Block(group[0], length))
            room = (free + block.n_bytes) // block.row_bytes
            present = {row.cache() for row in block.rows}
            group = sorted(group, key=lambda cache: cache not in present)[: max(0, min(room, MAX_ROWS))]
            if len(group) > 1:
                found.append((block, group))
                free -= max(0, len(group) * block.row_bytes - block.n_bytes)
        return found

    def trim(self) -> None:
        """Free the memory. The next pass copies what it needs."""
        self._blocks.clear()
