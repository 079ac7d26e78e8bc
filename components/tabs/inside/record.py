"""What passes through the model for one document, kept small: every vector pooled to the pixels of a picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gpt import Generation, Trace
from gpt.cache import KVCache
from gpt.documents.branch_cache import common_prefix_length
from gpt.model import causal_mask

BINS = 16  # pixels of a vector as wide as the model
WIDE = 48  # pixels of a vector inside the feed-forward part
KEPT = ("resid_pre", "attn_out", "resid_mid", "mlp_post", "mlp_out", "resid_post")  # of each layer
MEMORY = 2**29  # bytes of queries, keys and values for one visitor, unless the command line says otherwise
OUTSIDE = ("token_embedding", "position_embedding", "final_norm")


@dataclass(frozen=True)
class Strip:
    """One vector of each position. values (T, bins): means of neighbouring numbers; norm, mean, std (T,): of all."""

    values: np.ndarray
    norm: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    width: int  # how many numbers the vector has

    @classmethod
    def empty(cls, length: int, bins: int, width: int) -> Strip:
        """Room for that many positions."""
        rows = (np.zeros(length, np.float32) for _ in range(3))
        return cls(np.zeros((length, bins), np.float32), *rows, width)

    @classmethod
    def of(cls, vectors: np.ndarray) -> Strip:
        """Vectors (T, width), pooled only where they are wider than BINS."""
        strip = cls.empty(len(vectors), min(BINS, vectors.shape[1]), vectors.shape[1])
        strip.put(0, vectors)
        return strip

    def put(self, start: int, vectors: np.ndarray, pool: Callable[[np.ndarray, int], np.ndarray] | None = None) -> None:
        """Store vectors (n, width) from position `start` on; pool: `pooled` or `strongest`."""
        at = slice(start, start + len(vectors))
        self.values[at] = (pool or pooled)(vectors, self.values.shape[1])
        self.norm[at] = np.linalg.norm(vectors, axis=1)
        self.mean[at], self.std[at] = vectors.mean(axis=1), vectors.std(axis=1)


@dataclass(frozen=True)
class Neurons:
    """Of each position, (T,): how many neurons are above zero, which is the strongest, what it was before and after
    the activation function."""

    active: np.ndarray
    strongest: np.ndarray
    pre: np.ndarray
    post: np.ndarray


@dataclass(frozen=True)
class HeadVectors:
    """One head: q, k, v and its output z, each (T, hs); scores and weights (T, T), as in `gpt.trace.LayerTrace`: the
    scores scaled and not masked."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    z: np.ndarray
    scores: np.ndarray
    weights: np.ndarray


class Record:
    """The activations of a document as far as the model has read it; `extend` reads on from where it stopped.

    Nothing depends on what is selected, so another layer, head or position is a look-up. memory: bytes that queries,
    keys and values may take; of a text that needs more, only the first `limit` positions are recorded.
    """

    def __init__(self, document: Generation, memory: int = MEMORY) -> None:
        self.document, self.config = document, document.loaded.model.config
        model, self.memory = document.loaded.model, memory
        each = 3 * self.config.n_layer * self.config.n_embd * model.dtype.itemsize
        self.limit = max(1, min(self.config.block_size, memory // each))
        options = {"dtype": model.dtype, "device": model.device, "keep_queries": True}
        self._cache = KVCache(self.config, max_length=self.limit, **options)
        self._path: list[int] = []  # the tokens of the document's tree that are recorded
        self._strips: dict[tuple[int | None, str], Strip] = {}
        self._neurons: dict[int, Neurons] = {}

    @property
    def length(self) -> int:
        """How many positions are recorded."""
        return self._cache.length

    @torch.inference_mode()
    def extend(self) -> bool:
        """Record what the document has read since, and forget what is not in its text any more: one forward pass.

        False where there was nothing to do.
        """
        end = min(self.document.n_read, self.limit)
        ids, path = self.document.ids[:end], self.document.path[:end]
        start = common_prefix_length(self._path, path)
        if start == len(self._path) == len(path):
            return False
        self._cache.crop(start)
        self._path = path
        if start < len(path):
            idx = torch.tensor([ids[start:]], device=self._cache.k.device)
            trace = _Pooling(self, start)
            self.document.loaded.model.hidden_states(idx, cache=self._cache, trace=trace, edits=self.document.edits)
        return True

    def strip(self, layer: int | None, name: str) -> Strip | None:
        """One of KEPT in a layer, or of OUTSIDE with None; None where the model has no such thing."""
        kept = self._strips.get((layer, name))
        if kept is None:
            return None
        n = self.length
        return Strip(kept.values[:n], kept.norm[:n], kept.mean[:n], kept.std[:n], kept.width)

    def neurons(self, layer: int) -> Neurons:
        """What is said of the inside of a layer's feed-forward part."""
        return self._neurons[layer]

    @torch.inference_mode()
    def head(self, layer: int, head: int) -> HeadVectors:
        """Everything of one head, from the stored queries, keys and values."""
        cache, n = self._cache, self.length
        q, k, v = (part[layer, 0, head, :n].float() for part in (cache.q, cache.k, cache.v))
        scores = q @ k.T / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~causal_mask(n, n, q.device), -math.inf).softmax(dim=-1)
        return HeadVectors(*(x.cpu().numpy() for x in (q, k, v, weights @ v, scores, weights)))

    @torch.inference_mode()
    def weights(self, layer: int, start: int = 0, stop: int | None = None) -> Tensor:
        """(n_head, stop - start, stop): the attention weights of every head of a layer; by default of all queries."""
        return self._cache.attn_weights(layer, start=start, stop=stop)[0].cpu()

    @torch.inference_mode()
    def trace_at(self, position: int) -> Trace:
        """Every value of one position, (1, 1, ...): a pass over one token, with what is stored of those before it."""
        cache = copy(self._cache)  # the same memory: what is stored for this position is stored again
        cache.crop(position)
        trace = Trace()
        idx = torch.tensor([[self.document.ids[position]]], device=cache.k.device)
        self.document.loaded.model.hidden_states(idx, cache=cache, trace=trace, edits=self.document.edits)
        return trace

    def trace(self, start: int = 0, stop: int | None = None) -> Trace:
        """The attention of the queries from `start` to before `stop`, by default of the whole text, as
        `gpt.analysis.heads` reads it; weights are computed when asked for."""
        return _Stored(self._cache, start, self.length if stop is None else stop)

    def keep(self, layer: int | None, name: str, start: int, vectors: np.ndarray) -> None:
        """Store what a pass has just computed, (n, width)."""
        size, width = self.limit, vectors.shape[1]
        bins = min(width, WIDE if name == "mlp_post" else BINS)
        strip = self._strips.setdefault((layer, name), Strip.empty(size, bins, width))
        strip.put(start, vectors, strongest if name == "mlp_post" else pooled)

    def keep_neurons(self, layer: int, start: int, pre: np.ndarray, post: np.ndarray) -> None:
        """Store what is said of the neurons, both (n, n_ff)."""
        size = self.limit
        made = Neurons(np.zeros(size, int), np.zeros(size, int), np.zeros(size), np.zeros(size))
        kept, at = self._neurons.setdefault(layer, made), slice(start, start + len(pre))
        kept.active[at] = (post > 0).sum(axis=1)
        kept.strongest[at] = best = post.argmax(axis=1)
        rows = np.arange(len(pre))
        kept.pre[at], kept.post[at] = pre[rows, best], post[rows, best]


class _Pooling(Trace):
    """A trace that keeps nothing but what a Record wants of each value, so that a long text needs no memory."""

    def __init__(self, record: Record, start: int) -> None:
        super().__init__(attention=False)
        self.kept, self.start, self.pre = record, start, np.zeros((0, 0))

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        if name not in (*KEPT, *OUTSIDE, "mlp_pre"):
            return
        vectors = value.detach().float().reshape(-1, value.shape[-1]).cpu().numpy()
        if name == "mlp_pre":
            self.pre = vectors
            return
        self.kept.keep(layer, name, self.start, vectors)
        if name == "mlp_post":
            self.kept.keep_neurons(layer, self.start, self.pre, vectors)


class _Stored(Trace):
    """attn_weights and attn_v of every layer from a cache with queries, and nothing else."""

    def __init__(self, cache: KVCache, start: int, stop: int) -> None:
        super().__init__(final_norm=cache.k.new_empty(1, stop - start, 0))
        self.layers = [_StoredLayer(cache, layer, start, stop) for layer in range(len(cache.k))]


@dataclass(frozen=True)
class _StoredLayer:
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


def pooled(vectors: np.ndarray, bins: int) -> np.ndarray:
    """(T, width) -> (T, bins): the mean of each of `bins` groups of neighbours, as equal in size as can be."""
    edges = np.arange(bins + 1) * vectors.shape[1] // bins
    return np.add.reduceat(vectors, edges[:-1], axis=1) / np.diff(edges)


def strongest(vectors: np.ndarray, bins: int) -> np.ndarray:
    """The same with the number furthest from zero of each group: few neurons are active, and a mean would hide them."""
    starts = np.arange(bins) * vectors.shape[1] // bins
    high, low = (pick.reduceat(vectors, starts, axis=1) for pick in (np.maximum, np.minimum))
    return np.where(high >= -low, high, low)
