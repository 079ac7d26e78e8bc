"""Thumbnails of every head's attention, extended as the text grows: a new token adds one row of weights."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from components.tabs.inside.recording import Recording
from components.widgets.heads import largest_side
from gpt import Generation

BLOCK = 64  # positions computed at once


@dataclass(frozen=True, eq=False)
class HeadOverview:
    """Thumbnails of all heads. Each pixel is the maximum weight among `factor` x `factor` token pairs.

    Attributes:
        ids: Ids of the tokens included so far.
        rows: Rows of pixels, each (n_layer, n_head, row + 1) in uint8, where 255 means a weight of 1. Masked keys are
            left out.
        sums: Sums from which `shares` is computed, (n_layer, n_head, 3).
    """

    document: Generation
    ids: tuple[int, ...]
    factor: int
    rows: tuple[np.ndarray, ...] = field(repr=False)
    sums: np.ndarray = field(repr=False)

    @classmethod
    def empty(cls, document: Generation) -> HeadOverview:
        config = document.loaded.model.config
        return cls(document, (), 1, (), np.zeros((config.n_layer, config.n_head, 3)))

    @property
    def shares(self) -> np.ndarray:
        """Each head's mean weights on the first token, the previous token and the token itself, (n_layer, n_head, 3).

        The first two are averaged over all positions except the first.
        """
        n = len(self.ids)
        return self.sums / np.array([max(1, n - 1), max(1, n - 1), max(1, n)])

    def is_beginning(self, recording: Recording) -> bool:
        """Return whether the recorded text starts with the overview's text."""
        return self.document is recording.document and recording.ids[: len(self.ids)] == self.ids

    def is_complete(self, recording: Recording) -> bool:
        """Return whether the overview covers the whole recording."""
        return self.document is recording.document and recording.ids == self.ids

    def extended(self, recording: Recording, seconds: float = math.inf) -> HeadOverview:
        """Return the overview extended by at least one block of positions, stopping once `seconds` have passed.

        Starts from scratch if the recording belongs to another text.
        """
        overview, began, end = self, time.perf_counter(), recording.length
        if not self.is_beginning(recording):
            overview = self.empty(recording.document)
        n_layer, n_head, _ = overview.sums.shape
        while math.ceil(end / overview.factor) > largest_side(n_layer, n_head):
            overview = overview._halved()
        while (start := len(overview.ids)) < end:
            overview = overview._with_block(recording, start, min(end, start // BLOCK * BLOCK + BLOCK))
            if time.perf_counter() - began > seconds:
                break
        return overview

    @torch.inference_mode()
    def _with_block(self, recording: Recording, start: int, end: int) -> HeadOverview:
        sums, blocks = self.sums.copy(), []
        positions = torch.arange(start, end)
        queries = positions[positions > 0]
        for layer in range(len(sums)):
            weights = recording.attn_weights(layer, start, end)  # (n_head, end - start, end)
            sums[layer, :, 2] += weights[:, positions - start, positions].sum(dim=1).numpy()
            sums[layer, :, 1] += weights[:, queries - start, queries - 1].sum(dim=1).numpy()
            sums[layer, :, 0] += weights[:, queries - start, 0].sum(dim=1).numpy()
            blocks.append(self._pooled(weights.mul_(255).round_().byte().numpy(), start))
        rows = list(self.rows)
        for offset, new in enumerate(zip(*blocks, strict=True)):
            row = start // self.factor + offset
            pixels = np.stack(new)[..., : row + 1]  # (n_layer, n_head, row + 1)
            if row < len(rows):
                rows[row] = np.maximum(rows[row], pixels)
            else:
                rows.append(pixels)
        return replace(self, ids=recording.ids[:end], rows=tuple(rows), sums=sums)

    def _pooled(self, levels: np.ndarray, start: int) -> list[np.ndarray]:
        """Pool (n_head, queries, keys) into the rows of pixels that cover the queries, each (n_head, pixels)."""
        columns = np.maximum.reduceat(levels, np.arange(0, levels.shape[2], self.factor), axis=2)
        first = -start % self.factor  # start of the next row of pixels
        edges = [0, *range(first or self.factor, levels.shape[1], self.factor)]
        return list(np.maximum.reduceat(columns, edges, axis=1).swapaxes(0, 1))

    def _halved(self) -> HeadOverview:
        """Return the overview at half the resolution."""
        halved = []
        for row in range(0, len(self.rows), 2):
            both = np.zeros((*self.sums.shape[:2], row + 2), np.uint8)
            for pixels in self.rows[row : row + 2]:
                both[..., : pixels.shape[-1]] = np.maximum(both[..., : pixels.shape[-1]], pixels)
            halved.append(both.reshape(*both.shape[:2], -1, 2).max(axis=-1))
        return replace(self, factor=2 * self.factor, rows=tuple(halved))
