"""A compact recording of a text's activations: pooled vectors and the attention cache."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from components.limits import MAX_VISITOR_BYTES
from components.state.text import Text
from components.tabs.inside.pooling import HeadVectors, NeuronSummary, PooledVectors, pool_mean, pool_strongest
from gpt import Generation, GPTConfig, Trace
from gpt.cache import KVCache
from gpt.config import Activation
from gpt.documents.branch_cache import common_prefix_length
from gpt.layers import ACTIVATIONS, attention_scores

BINS = 16  # pixels for a vector of width n_embd
WIDE_BINS = 48  # pixels for a vector inside the feed-forward part
RECORDED = ("resid_pre", "attn_out", "resid_mid", "mlp_post", "mlp_out", "resid_post")  # in each layer
RECORDED_GATED = ("mlp_gate", "mlp_up")  # in each gated layer, where mlp_post is their product
RECORDED_OUTSIDE = ("token_embedding", "position_embedding", "final_norm")

Place = tuple[int | None, str]  # layer (None outside the blocks) and name of an activation


@dataclass
class _Buffers:
    """Memory shared by consecutive recordings of one document."""

    cache: KVCache
    pooled: dict[Place, PooledVectors] = field(default_factory=dict)
    neurons: dict[int, NeuronSummary] = field(default_factory=dict)


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

    @classmethod
    def empty(cls, document: Generation, max_bytes: int = MAX_VISITOR_BYTES) -> Recording:
        """Return an empty recording."""
        model = document.loaded.model
        limit = max(1, min(model.config.block_size, max_bytes // _cache_bytes(model.config, model.dtype)))
        cache = model.new_cache(max_length=limit, keep_queries=True)
        return cls(document, max_bytes, limit, (), _Buffers(cache))

    @property
    def config(self) -> GPTConfig:
        return self.document.loaded.model.config

    @property
    def length(self) -> int:
        """Number of recorded positions."""
        return len(self.ids)

    @property
    def n_bytes(self) -> int:
        """Memory used by the recorded positions, in bytes, excluding reserved memory."""
        numbers = sum(pooled.values.shape[1] + 3 for pooled in self._buffers.pooled.values())
        cache = _cache_bytes(self.config, self.document.loaded.model.dtype)
        return self.length * (cache + 4 * numbers + 32 * self.config.n_layer)

    def is_complete(self, text: Text) -> bool:
        """Return whether the recording includes all tokens of this text that the model has read, up to the limit."""
        return self.document is text.document and self.ids == text.ids[: min(text.n_read, self.limit)]

    def is_beginning(self, text: Text) -> bool:
        """Return whether this text starts with the recorded tokens."""
        return self.document is text.document and 0 < self.length and text.ids[: text.n_read][: self.length] == self.ids

    def missing(self, text: Text) -> int:
        """Return the number of positions that must still be read to complete the recording."""
        n = min(text.n_read, self.limit)
        return n - common_prefix_length(self.ids, text.ids[:n])

    @torch.inference_mode()
    def extended(self, ids: tuple[int, ...]) -> Recording:
        """Return a recording of these ids in the same document, after one forward pass over those not yet recorded."""
        ids = ids[: self.limit]
        if ids == self.ids:
            return self
        start = common_prefix_length(self.ids, ids)
        if start < len(ids):
            cache = self._buffers.cache
            cache.crop(start)
            idx = torch.tensor([ids[start:]], device=cache.k.device)
            trace = _PoolingTrace(self._buffers, self.limit, start, activation_of(self.document))
            self.document.loaded.model.hidden_states(idx, cache=cache, trace=trace, edits=self.document.edits)
        return replace(self, ids=ids)

    def pooled(self, layer: int | None, name: str) -> PooledVectors:
        """Return an activation in RECORDED or RECORDED_GATED, or one in RECORDED_OUTSIDE if `layer` is None.

        Raises KeyError if the model has no such activation.
        """
        return self._buffers.pooled[layer, name].first(self.length)

    def find(self, layer: int | None, name: str) -> PooledVectors | None:
        """Like `pooled`, but return None if the model has no such activation."""
        return self.pooled(layer, name) if (layer, name) in self._buffers.pooled else None

    def neurons(self, layer: int) -> NeuronSummary:
        """Return the summary of a layer's neurons."""
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
        weights = cache.attn_weights(layer, stop=n)[0, head]  # (T, T)
        return HeadVectors(*(x.cpu().numpy() for x in (q, k, v, weights @ v, scores, weights)))

    @torch.inference_mode()
    def attn_weights(self, layer: int, start: int = 0, stop: int | None = None) -> Tensor:
        """Return all heads' attention weights in a layer, (n_head, stop - start, stop), by default for all queries."""
        stop = self.length if stop is None else stop
        return self._buffers.cache.attn_weights(layer, start=start, stop=stop)[0].cpu()

    def looks_ahead(self, layer: int) -> bool:
        """Return whether tokens can attend to later tokens in a layer, as in a program without a causal mask."""
        return self.length > 1 and bool(self.attn_weights(layer, 0, 2)[:, 0, 1].any())

    def attention_trace(self, start: int = 0, stop: int | None = None) -> Trace:
        """Return attn_weights and attn_v in the form that `gpt.analysis.heads` expects.

        They cover the queries from `start` up to but not including `stop`. Weights are computed on access.
        """
        return _AttentionTrace(self._buffers.cache, start, self.length if stop is None else stop)

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
    """Return the size of one position's queries, keys and values in bytes."""
    return config.n_layer * (config.n_head + 2 * config.kv_heads) * config.head_size * dtype.itemsize


def activation_of(document: Generation) -> Activation:
    """Return the activation function of the document's model with its edits."""
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


class _AttentionTrace(Trace):
    """A trace with each layer's attn_weights and attn_v, from a cache that includes queries."""

    def __init__(self, cache: KVCache, start: int, stop: int) -> None:
        super().__init__(final_norm=cache.k.new_empty(1, stop - start, 0))
        self.layers = [_AttentionLayer(cache, layer, start, stop) for layer in range(cache.config.n_layer)]  # type: ignore[misc]


@dataclass(frozen=True)
class _AttentionLayer:
    """The fields of a LayerTrace that `gpt.analysis.heads` reads, computed on access."""

    cache: KVCache
    layer: int
    start: int
    stop: int

    @property
    def attn_weights(self) -> Tensor:
        return self.cache.attn_weights(self.layer, start=self.start, stop=self.stop)

    @property
    def attn_v(self) -> Tensor:
        return self.cache.v[self.layer, :, :, : self.stop]
