"""A text's activations: a recording of pooled vectors and the attention cache, which grows with the text."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace

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
RECORDED = ("resid_pre", "attn_out", "resid_mid", "mlp_post", "mlp_out", "resid_post")  # in each layer
RECORDED_GATED = ("mlp_gate", "mlp_up")  # in each gated layer, where mlp_post is their product
RECORDED_OUTSIDE = ("token_embedding", "position_embedding", "final_norm")

ActivationKey = tuple[int | None, str]  # layer (None outside the blocks) and name of an activation


@dataclass
class _Buffers:
    """Memory shared by consecutive recordings of one document. ids: the tokens that it contains."""

    cache: KVCache
    ids: tuple[int, ...] = ()
    pooled: dict[ActivationKey, PooledVectors] = field(default_factory=dict)
    neurons: dict[int, NeuronSummary] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Recording:
    """The activations for a document's first tokens, independent of the selection.

    `extended` writes into the same memory: an earlier recording remains valid only up to the first position where
    the new ids differ.

    Attributes:
        max_bytes: Memory limit for queries, keys and values.
        limit: Number of positions that fit into `max_bytes`; later positions are not recorded.
        reading: Number of tokens in a long forward pass that will complete the recording.
    """

    document: Generation
    max_bytes: int
    limit: int
    ids: tuple[int, ...]
    _buffers: _Buffers = field(repr=False)
    reading: int = 0

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
        numbers = sum(pooled.values.shape[1] + 3 for pooled in self._buffers.pooled.values())
        cache = _cache_bytes(self.config, self.document.loaded.model.dtype)
        return self.length * (cache + 4 * numbers + 32 * self.config.n_layer)

    def is_beginning(self, text: Text | None) -> bool:
        """Return whether this text starts with the recorded tokens, and they have not been overwritten."""
        if text is None or self.document is not text.document:
            return False
        return self.ids == text.ids[: min(self.length, text.n_read)] == self._buffers.ids[: self.length]

    def announced(self, ids: tuple[int, ...]) -> Recording:
        """Return what remains of the recording while these ids are read, with the number of tokens to read."""
        start = common_prefix_length(self.ids, ids)
        return replace(self, ids=ids[:start], reading=len(ids[: self.limit]) - start)

    @torch.inference_mode()
    def extended(self, ids: tuple[int, ...]) -> Recording:
        """Return a recording of these ids in the same document, after one forward pass over those not yet recorded."""
        ids, buffers = ids[: self.limit], self._buffers
        if ids == self.ids == buffers.ids:
            return self
        start = common_prefix_length(buffers.ids, ids)
        buffers.ids = ids[:start]
        if start < len(ids):
            buffers.cache.crop(start)
            idx = torch.tensor([ids[start:]], device=buffers.cache.k.device)
            trace = _PoolingTrace(buffers, self.limit, start, activation_of(self.document))
            self.document.loaded.model.hidden_states(idx, cache=buffers.cache, trace=trace, edits=self.document.edits)
        buffers.ids = ids
        return replace(self, ids=ids, reading=0)

    def pooled(self, layer: int | None, name: str) -> PooledVectors:
        """Return an activation in RECORDED or RECORDED_GATED, or one in RECORDED_OUTSIDE if `layer` is None.

        Raises KeyError if the model has no such activation.
        """
        return self._buffers.pooled[layer, name].first(self.length)

    def find(self, layer: int | None, name: str) -> PooledVectors | None:
        """Like `pooled`, but return None if the model has no such activation."""
        return self.pooled(layer, name) if (layer, name) in self._buffers.pooled else None

    def neurons(self, layer: int) -> NeuronSummary:
        return self._buffers.neurons[layer]

    @torch.inference_mode()
    def head(self, layer: int, head: int) -> HeadVectors:
        """Compute the vectors, scores and weights of one head from the stored queries, keys and values."""
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


class _PoolingTrace(Trace):
    """A trace that pools activations as it stores them, so that a long text needs little memory.

    `start` is the position of the first token of the forward pass.
    """

    def __init__(self, buffers: _Buffers, limit: int, start: int, activation: Activation) -> None:
        super().__init__(attention=False)
        self.buffers, self.limit, self.start = buffers, limit, start
        self.activation = ACTIVATIONS[activation]
        self.mlp_pre: Tensor | None = None
        self.mlp_up: Tensor | None = None

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        if name in ("mlp_pre", "mlp_up"):
            setattr(self, name, value.detach())
        elif name in (*RECORDED, *RECORDED_OUTSIDE):
            vectors = self._store(layer, name, value.detach())
            if name == "mlp_post" and layer is not None and self.mlp_pre is not None:
                self._store_neurons(layer, self.mlp_pre, vectors)

    def _store(self, layer: int | None, name: str, value: Tensor) -> np.ndarray:
        """Store an activation and return it as (T, width)."""
        vectors = _rows(value)
        wide, width = name in ("mlp_post", *RECORDED_GATED), vectors.shape[1]
        bins = min(width, WIDE_BINS if wide else BINS)
        stored = self.buffers.pooled.setdefault((layer, name), PooledVectors.empty(self.limit, bins, width))
        stored.put(self.start, vectors, pool_strongest if wide else pool_mean)
        return vectors

    def _store_neurons(self, layer: int, pre: Tensor, post: np.ndarray) -> None:
        up = self.mlp_up
        neurons = self.buffers.neurons.setdefault(layer, NeuronSummary.empty(self.limit))
        neurons.put(self.start, _rows(pre), post, None if up is None else _rows(up))
        if up is not None:
            self._store(layer, "mlp_gate", self.activation(pre))
            self._store(layer, "mlp_up", up)
        self.mlp_pre = self.mlp_up = None


def _rows(value: Tensor) -> np.ndarray:
    return value.float().reshape(-1, value.shape[-1]).cpu().numpy()


Pool = Callable[[np.ndarray, int], np.ndarray]


def pool_mean(vectors: np.ndarray, bins: int) -> np.ndarray:
    """Average each of `bins` contiguous groups of about equal size: (T, width) -> (T, bins)."""
    edges = np.arange(bins + 1) * vectors.shape[1] // bins
    return np.add.reduceat(vectors, edges[:-1], axis=1) / np.diff(edges)


def pool_strongest(vectors: np.ndarray, bins: int) -> np.ndarray:
    """Keep the value with the largest magnitude in each group: (T, width) -> (T, bins).

    Used for neurons: their activations are sparse, so a mean would hide them.
    """
    starts = np.arange(bins) * vectors.shape[1] // bins
    high, low = (pick.reduceat(vectors, starts, axis=1) for pick in (np.maximum, np.minimum))
    return np.where(high >= -low, high, low)


@dataclass(frozen=True, eq=False)
class PooledVectors:
    """One vector per position, possibly pooled.

    Attributes:
        values: The vectors, (T, bins).
        norm, mean, std: Statistics for the full vectors, (T,).
        width: Size of a full vector.
    """

    values: np.ndarray
    norm: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    width: int

    @classmethod
    def empty(cls, length: int, bins: int, width: int) -> PooledVectors:
        """Allocate space for `length` positions."""
        norm, mean, std = (np.zeros(length, np.float32) for _ in range(3))
        return cls(np.zeros((length, bins), np.float32), norm, mean, std, width)

    @classmethod
    def of(cls, vectors: np.ndarray, max_bins: int) -> PooledVectors:
        """Store vectors (T, width), pooled if they are wider than max_bins."""
        pooled = cls.empty(len(vectors), min(max_bins, vectors.shape[1]), vectors.shape[1])
        pooled.put(0, vectors)
        return pooled

    def put(self, start: int, vectors: np.ndarray, pool: Pool = pool_mean) -> None:
        """Store vectors (n, width), starting at position `start`."""
        at = slice(start, start + len(vectors))
        self.values[at] = pool(vectors, self.values.shape[1])
        self.norm[at] = np.linalg.norm(vectors, axis=1)
        self.mean[at], self.std[at] = vectors.mean(axis=1), vectors.std(axis=1)

    def first(self, n: int) -> PooledVectors:
        """Return a view of the first n positions without copying."""
        return PooledVectors(self.values[:n], self.norm[:n], self.mean[:n], self.std[:n], self.width)


@dataclass(frozen=True, eq=False)
class NeuronSummary:
    """Summary of a layer's neurons at each position. Every attribute has shape (T,).

    Attributes:
        active: Number of neurons above zero; in a gated layer, number of neurons whose gate is above zero.
        strongest: Index of the neuron with the highest activation; in a gated layer, where `post` may have either sign,
            the one with the largest magnitude.
        pre, post: The strongest neuron's value before and after the activation function.
        up: The strongest neuron's up projection; 1 in a layer without a gate.
    """

    active: np.ndarray
    strongest: np.ndarray
    pre: np.ndarray
    up: np.ndarray
    post: np.ndarray

    @classmethod
    def empty(cls, length: int) -> NeuronSummary:
        """Allocate space for `length` positions."""
        return cls(np.zeros(length, int), np.zeros(length, int), *(np.zeros(length) for _ in range(3)))

    def put(self, start: int, pre: np.ndarray, post: np.ndarray, up: np.ndarray | None = None) -> None:
        """Store the neurons of n positions, (n, n_ff), starting at position `start`."""
        at, rows = slice(start, start + len(pre)), np.arange(len(pre))
        self.active[at] = ((post if up is None else pre) > 0).sum(axis=1)
        self.strongest[at] = best = (post if up is None else np.abs(post)).argmax(axis=1)
        self.pre[at], self.post[at] = pre[rows, best], post[rows, best]
        self.up[at] = 1.0 if up is None else up[rows, best]


@dataclass(frozen=True, eq=False)
class HeadVectors:
    """One head's q, k and v vectors and output z, (T, hs) each, and its scores and weights, (T, T).

    They match those in `gpt.trace.LayerTrace`; the scores are scaled but not masked.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    z: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
