"""Summaries of activations in NumPy: pooled vectors, neurons, and the vectors of one head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
