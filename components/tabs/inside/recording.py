"""A text's activations: pooled vectors and the attention cache, which grow with the text."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from components.limits import MAX_VISITOR_BYTES
from components.state.text import Text
from gpt import Generation, GPTConfig, Trace
from gpt.cache import KVCache
from gpt.config import Activation
from gpt.documents.document import common_prefix_length
from gpt.layers import ACTIVATIONS, attention_scores

BINS = 16  # pixels for a vector of width n_embd
WIDE_BINS = 48  # pixels for a vector inside the feed-forward part
OUTSIDE = ("token_embedding", "position_embedding", "final_norm")
RECORDED = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")  # in each layer
RECORDED_WIDE = ("mlp_gate", "mlp_up", "mlp_post")  # in gated layers, mlp_post is the product of the other two
PASS_TOKENS = 128  # read at once, so that a long text needs little memory


@dataclass
class _Buffers:
    """Memory shared by consecutive recordings of one document."""

    cache: KVCache
    ids: tuple[int, ...] = ()  # the tokens that it contains
    rows: dict[str, np.ndarray] = field(default_factory=dict)  # numbers for each position, by activation


@dataclass(frozen=True, eq=False)
class Recording:
    """The activations for a document's first tokens, independent of the selection.

    `extended` writes into the same memory: an earlier recording remains valid only up to the first position where
    the new ids differ. limit: number of positions whose queries, keys and values fit into max_bytes; no others are
    recorded.
    """

    document: Generation
    max_bytes: int
    limit: int
    ids: tuple[int, ...]
    _buffers: _Buffers = field(repr=False)

    @classmethod
    def empty(cls, document: Generation, max_bytes: int = MAX_VISITOR_BYTES) -> Recording:
        model = document.loaded.model
        limit = max(1, min(model.config.block_size, max_bytes // _cache_bytes(model.config, model.dtype)))
        cache = model.new_cache(max_length=limit, keep_queries=True)
        return cls(document, max_bytes, limit, (), _Buffers(cache))

    @property
    def config(self) -> GPTConfig:
        return self.document.loaded.model.config

    @property
    def length(self) -> int:
        return len(self.ids)

    @property
    def n_bytes(self) -> int:
        cache = _cache_bytes(self.config, self.document.loaded.model.dtype)
        return self.length * (cache + sum(rows[0].nbytes for rows in self._buffers.rows.values()))

    def is_prefix_of(self, text: Text | None) -> bool:
        """Return whether this text starts with the recorded tokens, and they have not been overwritten."""
        if text is None or self.document is not text.document:
            return False
        return self.ids == text.ids[: min(self.length, text.n_read)] == self._buffers.ids[: self.length]

    @torch.inference_mode()
    def extended(self, ids: tuple[int, ...]) -> Recording:
        """Return a recording of these ids in the same document, after reading those not yet recorded."""
        ids, buffers, model = ids[: self.limit], self._buffers, self.document.loaded.model
        if ids == self.ids == buffers.ids:
            return self
        start = min(common_prefix_length(buffers.ids, ids), common_prefix_length(self.ids, ids))
        start = 0 if buffers.cache.begin(len(ids)) else start
        buffers.ids = ids[:start]
        buffers.cache.crop(start)
        for begin in range(start, len(ids), PASS_TOKENS):
            trace, idx = Trace(attention=False), torch.tensor([ids[begin : begin + PASS_TOKENS]], device=model.device)
            model.hidden_states(idx, cache=buffers.cache, trace=trace, edits=self.document.edits)
            self._store(trace, begin)
        buffers.ids = ids
        return replace(self, ids=ids)

    def _store(self, trace: Trace, start: int) -> None:
        """Store what describes the activations of a pass that begins at position `start`."""
        activation, rows = ACTIVATIONS[activation_of(self.document)], self._buffers.rows
        tensors = dict(trace.tensors)
        new: dict[str, np.ndarray] = {}
        for i, layer in enumerate(trace.layers):
            if self.config.gated:
                tensors[f"layers.{i}.mlp_gate"] = activation(layer.mlp_pre)
            new[f"layers.{i}.neurons"] = neuron_rows(layer.mlp_pre, layer.mlp_post, layer.mlp_up)
        for name, value in tensors.items():
            short = name.rpartition(".")[2]
            if short in (*OUTSIDE, *RECORDED, *RECORDED_WIDE):
                new[name] = vector_rows(value, wide=short in RECORDED_WIDE)
        for name, values in new.items():
            if name not in rows:
                rows[name] = np.empty((self.limit, values.shape[1]), values.dtype)
            rows[name][start : start + len(values)] = values

    def find(self, layer: int | None, name: str) -> PooledVectors | None:
        """Return an activation if the model has it. name: in RECORDED or RECORDED_WIDE, or in OUTSIDE without layer."""
        rows = self._buffers.rows.get(name if layer is None else f"layers.{layer}.{name}")
        if rows is None:
            return None
        width = self.config.ff_size if name in RECORDED_WIDE else self.config.n_embd
        norm, mean, std = rows[: self.length, :3].T
        return PooledVectors(rows[: self.length, 3:], norm, mean, std, width)

    def pooled(self, layer: int | None, name: str) -> PooledVectors:
        """Like `find`, for an activation that the model has."""
        found = self.find(layer, name)
        assert found is not None
        return found

    def neurons(self, layer: int, position: int) -> dict[str, float]:
        """Return how many of a layer's neurons are active at a position, and the strongest one.

        active: number of neurons above zero; in a gated layer, number of neurons whose gate is above zero. strongest:
        number of the neuron with the highest activation; in a gated layer, where it may have either sign, with the
        largest magnitude. pre, post: its value before and after the activation function. up: its up projection, or 1.
        """
        row = self._buffers.rows[f"layers.{layer}.neurons"][position].tolist()
        return dict(zip(("active", "strongest", "pre", "up", "post"), row, strict=True))

    @torch.inference_mode()
    def head(self, layer: int, head: int) -> HeadVectors:
        cache, config, n = self._buffers.cache, self.config, self.length
        assert cache.q is not None
        kv_head = head // (config.n_head // config.kv_heads)
        q, k, v = (
            part[layer, 0, each, :n].float() for part, each in ((cache.q, head), (cache.k, kv_head), (cache.v, kv_head))
        )
        scores = attention_scores(q, k, config.score_scale, config.attn_softcap)  # (T, T)
        weights = cache.attn_weights(layer, head=head, stop=n)[0, 0]  # (T, T)
        return HeadVectors(*(x.cpu().numpy() for x in (q, k, v, weights @ v, scores, weights)))

    @torch.inference_mode()
    def attn_weights(self, layer: int, start: int = 0, stop: int | None = None) -> Tensor:
        """Return all heads' attention weights in a layer, (n_head, stop - start, stop), by default for all queries."""
        stop = self.length if stop is None else stop
        return self._buffers.cache.attn_weights(layer, start=start, stop=stop)[0].cpu()

    def looks_ahead(self, layer: int) -> bool:
        """Return whether tokens can attend to later tokens in a layer, as in a program without a causal mask."""
        return self.length > 1 and bool(self.attn_weights(layer, 0, 2)[:, 0, 1].any())

    @torch.inference_mode()
    def trace_at(self, position: int) -> Trace:
        """Run the model on one token with the stored cache, and return all activations at its position, (1, 1, ...)."""
        cache = copy(self._buffers.cache)  # shares memory, so this position's values are rewritten
        cache.crop(position)
        trace = Trace()
        idx = torch.tensor([[self.ids[position]]], device=cache.k.device)
        self.document.loaded.model.hidden_states(idx, cache=cache, trace=trace, edits=self.document.edits)
        return trace


def _cache_bytes(config: GPTConfig, dtype: torch.dtype) -> int:
    return config.n_layer * (config.n_head + 2 * config.kv_heads) * config.head_size * dtype.itemsize


def activation_of(document: Generation) -> Activation:
    swapped = None if document.edits is None else document.edits.activation
    return swapped or document.loaded.model.config.activation


def pool_mean(vectors: np.ndarray, bins: int) -> np.ndarray:
    """Average each of `bins` contiguous groups of about equal size: (T, width) -> (T, bins)."""
    bins = min(bins, vectors.shape[1])
    edges = np.arange(bins + 1) * vectors.shape[1] // bins
    return np.add.reduceat(vectors, edges[:-1], axis=1) / np.diff(edges)


def pool_strongest(vectors: np.ndarray, bins: int) -> np.ndarray:
    """Keep each group's value of largest magnitude, as a mean would hide sparse ones: (T, width) -> (T, bins)."""
    bins = min(bins, vectors.shape[1])
    starts = np.arange(bins) * vectors.shape[1] // bins
    high, low = (pick.reduceat(vectors, starts, axis=1) for pick in (np.maximum, np.minimum))
    return np.where(high >= -low, high, low)


class PooledVectors(NamedTuple):
    """One vector per position, pooled if it is wider than BINS or WIDE_BINS, and statistics for the full vectors."""

    values: np.ndarray  # (T, bins)
    norm: np.ndarray  # (T,)
    mean: np.ndarray  # (T,)
    std: np.ndarray  # (T,)
    width: int  # a full vector's size


def vector_rows(value: Tensor, *, wide: bool) -> np.ndarray:
    """Return the norm, mean, standard deviation and pooled values of each vector, (T, 3 + bins)."""
    vectors = value.float().reshape(-1, value.shape[-1]).cpu().numpy()
    values = pool_strongest(vectors, WIDE_BINS) if wide else pool_mean(vectors, BINS)
    norm = np.linalg.norm(vectors, axis=1)
    return np.column_stack([norm, vectors.mean(axis=1), vectors.std(axis=1), values])


def neuron_rows(pre: Tensor, post: Tensor, up: Tensor | None) -> np.ndarray:
    """Return (active, strongest, pre, up, post) for each position, (T, 5). pre, post, up: (1, T, n_ff)."""
    strongest = (post if up is None else post.abs()).argmax(dim=-1, keepdim=True)
    active = ((post if up is None else pre) > 0).sum(dim=-1, keepdim=True)
    at_strongest = [x.gather(-1, strongest) for x in (pre, torch.ones_like(post) if up is None else up, post)]
    return torch.cat([x[0].cpu().double() for x in (active, strongest, *at_strongest)], dim=-1).numpy()


class HeadVectors(NamedTuple):
    """One head's q, k and v vectors and output z, (T, hs) each, and its scores and weights, (T, T).

    They match those in `gpt.trace.LayerTrace`; the scores are scaled but not masked.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    z: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
