"""A text's activations: pooled vectors and the attention cache, which grow with the text."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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
PASS_TOKENS = 128  # read at once, so that a long text needs little memory


@dataclass
class _Buffers:
    """Memory shared by consecutive recordings of one document. ids: the tokens that it contains."""

    cache: KVCache
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Recording:
    """The activations for a document's first tokens, independent of the selection.

    `extended` writes into the same memory: an earlier recording remains valid only up to the first position where
    the new ids differ.

    Attributes:
        max_bytes: Memory limit for queries, keys and values.
        limit: Number of positions that fit into `max_bytes`; later positions are not recorded.
    """

    document: Generation
    max_bytes: int
    limit: int
    ids: tuple[int, ...]
    _buffers: _Buffers = field(repr=False)
    _pooled: dict[str, PooledVectors] = field(default_factory=dict, repr=False)
    _neurons: dict[int, NeuronSummary] = field(default_factory=dict, repr=False)

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
        numbers = sum(pooled.values.shape[1] + 3 for pooled in self._pooled.values())
        cache = _cache_bytes(self.config, self.document.loaded.model.dtype)
        return self.length * (cache + 4 * numbers + 32 * self.config.n_layer)

    def is_beginning(self, text: Text | None) -> bool:
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
        buffers.ids = ids[:start]
        buffers.cache.crop(start)
        grown = replace(self, ids=ids[:start], _pooled=dict(self._pooled), _neurons=dict(self._neurons))
        for begin in range(start, len(ids), PASS_TOKENS):
            trace, idx = Trace(attention=False), torch.tensor([ids[begin : begin + PASS_TOKENS]], device=model.device)
            model.hidden_states(idx, cache=buffers.cache, trace=trace, edits=self.document.edits)
            grown._store(trace, begin)
        buffers.ids = ids
        return replace(grown, ids=ids)

    def _store(self, trace: Trace, start: int) -> None:
        """Pool the activations of a pass that begins at position `start`."""
        names = (*RECORDED, *RECORDED_GATED, *RECORDED_OUTSIDE, "mlp_pre")
        found = {name: rows_of(value) for name, value in trace.tensors.items() if name.rpartition(".")[2] in names}
        activation = ACTIVATIONS[activation_of(self.document)]
        for layer, traced in enumerate(trace.layers):
            pre, post = (found[f"layers.{layer}.mlp_{name}"] for name in ("pre", "post"))
            up = found.get(f"layers.{layer}.mlp_up")
            if up is not None:
                found[f"layers.{layer}.mlp_gate"] = rows_of(activation(traced.mlp_pre))
            summary = NeuronSummary.of(pre, post, up)
            self._neurons[layer] = joined(self._neurons.get(layer), start, summary)
        for name, vectors in found.items():
            short = name.rpartition(".")[2]
            if short in (*RECORDED, *RECORDED_GATED, *RECORDED_OUTSIDE):
                wide = short.startswith("mlp_") and short != "mlp_out"
                pool = (WIDE_BINS, pool_strongest) if wide else (BINS, pool_mean)
                self._pooled[name] = joined(self._pooled.get(name), start, PooledVectors.of(vectors, *pool))

    def pooled(self, layer: int | None, name: str) -> PooledVectors:
        """Return an activation in RECORDED or RECORDED_GATED, or one in RECORDED_OUTSIDE if `layer` is None.

        Raises KeyError if the model has no such activation.
        """
        return self._pooled[name if layer is None else f"layers.{layer}.{name}"]

    def find(self, layer: int | None, name: str) -> PooledVectors | None:
        """Like `pooled`, but return None if the model has no such activation."""
        return self._pooled.get(name if layer is None else f"layers.{layer}.{name}")

    def neurons(self, layer: int) -> NeuronSummary:
        return self._neurons[layer]

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


def rows_of(value: Tensor) -> np.ndarray:
    """Return an activation of one text as (T, width)."""
    return value.float().reshape(-1, value.shape[-1]).cpu().numpy()


def joined(before: Any, start: int, more: Any) -> Any:
    """Return named tuples of arrays as one: the first `start` rows of one, then all of another."""
    if before is None:
        return more
    pairs = zip(before, more, strict=True)
    return type(more)(*(np.concatenate([a[:start], b]) if isinstance(a, np.ndarray) else b for a, b in pairs))


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


class PooledVectors(NamedTuple):
    """One vector per position, possibly pooled.

    values: the vectors, (T, bins). norm, mean, std: statistics for the full vectors, (T,). width: a full vector's size.
    """

    values: np.ndarray
    norm: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    width: int

    @classmethod
    def of(cls, vectors: np.ndarray, bins: int, pool: Pool = pool_mean) -> PooledVectors:
        """Store vectors (T, width), pooled if they are wider than `bins`."""
        values, norm = pool(vectors, min(bins, vectors.shape[1])), np.linalg.norm(vectors, axis=1)
        return cls(values, norm, vectors.mean(axis=1), vectors.std(axis=1), vectors.shape[1])


class NeuronSummary(NamedTuple):
    """Summary of a layer's neurons at each position. Every attribute has shape (T,).

    active: number of neurons above zero; in a gated layer, number of neurons whose gate is above zero. strongest: index
    of the neuron with the highest activation; in a gated layer, where `post` may have either sign, the one with the
    largest magnitude. pre, post: its value before and after the activation function. up: its up projection; 1 in a
    layer without a gate.
    """

    active: np.ndarray
    strongest: np.ndarray
    pre: np.ndarray
    up: np.ndarray
    post: np.ndarray

    @classmethod
    def of(cls, pre: np.ndarray, post: np.ndarray, up: np.ndarray | None) -> NeuronSummary:
        """Summarise activations, (T, n_ff) each."""
        rows, strongest = np.arange(len(pre)), (post if up is None else np.abs(post)).argmax(axis=1)
        factor = np.ones(len(pre)) if up is None else up[rows, strongest]
        active = ((post if up is None else pre) > 0).sum(axis=1)
        return cls(active, strongest, pre[rows, strongest], factor, post[rows, strongest])


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
