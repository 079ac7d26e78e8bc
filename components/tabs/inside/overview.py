"""All heads at a glance: a small picture of each, kept as the text grows, so that a new token costs a row."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch

from components.i18n import Language, t
from components.labels import percent
from components.state.selection import Selection
from components.tabs.inside.record import Record
from components.tabs.inside.views import shown_head
from components.widgets.heads import growing_value, largest_side, near_value

SECONDS = 0.2  # for new positions, at each look; the rest comes with the next
BLOCK = 64  # positions that are taken in at once
OVERHEAD = 0.5  # of the rows that the browser holds, as many may come on top before it is sent all of them again


class Overview:
    """Pictures of every head of one record, each pixel the largest weight of `factor` x `factor` pairs of tokens.

    rows: one array a row of pixels, (n_layer, n_head, row + 1) of uint8, 255 for a weight of 1: nothing is ahead.
    """

    def __init__(self, record: Record) -> None:
        self.record, self.rows, self.factor = record, [], 1
        self.ids: list[int] = []
        config = record.config
        self.limit = largest_side(config.n_layer, config.n_head)
        self._sums = np.zeros((config.n_layer, config.n_head, 3))

    def holds(self, record: Record) -> bool:
        """Whether it is of that record, and of a text which the record's text goes on from."""
        shared = record.document.ids[: record.length][: len(self.ids)]
        return self.record is record and shared == self.ids

    def extend(self, seconds: float = math.inf) -> bool:
        """Take in the positions that the record has more, a block at least: whether there was time for all of them."""
        began, end = time.perf_counter(), self.record.length
        while math.ceil(end / self.factor) > self.limit:
            self._halve()
        while len(self.ids) < end:
            self._take(len(self.ids), min(end, len(self.ids) // BLOCK * BLOCK + BLOCK))
            if time.perf_counter() - began > seconds:
                break
        return len(self.ids) >= end

    @torch.inference_mode()
    def _take(self, start: int, end: int) -> None:
        record, blocks = self.record, []
        places = torch.arange(start, end)
        before = places[places > 0]
        for layer in range(record.config.n_layer):
            weights = record.weights(layer, start, end)  # (n_head, end - start, end)
            self._sums[layer, :, 2] += weights[:, places - start, places].sum(dim=1).numpy()
            self._sums[layer, :, 1] += weights[:, before - start, before - 1].sum(dim=1).numpy()
            self._sums[layer, :, 0] += weights[:, before - start, 0].sum(dim=1).numpy()
            blocks.append(self._pooled(weights.mul_(255).round_().byte().numpy(), start))
        for offset, new in enumerate(zip(*blocks, strict=True)):
            row = start // self.factor + offset
            pixels = np.stack(new)[..., : row + 1]
            if row < len(self.rows):
                self.rows[row] = np.maximum(self.rows[row], pixels)
            else:
                self.rows.append(pixels)
        self.ids = record.document.ids[:end]

    @property
    def shares(self) -> np.ndarray:
        """(n_layer, n_head, 3): the mean weight on the first token, on the one before (both over all positions but the
        first), and on the token itself."""
        n = len(self.ids)
        return self._sums / np.array([max(1, n - 1), max(1, n - 1), max(1, n)])

    def _pooled(self, levels: np.ndarray, start: int) -> list[np.ndarray]:
        """(n_head, rows, length) -> for each row of pixels that they touch, (n_head, columns of pixels)."""
        columns = np.maximum.reduceat(levels, np.arange(0, levels.shape[2], self.factor), axis=2)
        first = -start % self.factor  # of the next row of pixels
        edges = [0, *range(first or self.factor, levels.shape[1], self.factor)]
        return list(np.maximum.reduceat(columns, edges, axis=1).swapaxes(0, 1))

    def _halve(self) -> None:
        """Twice as many tokens a pixel."""
        self.factor *= 2
        halved = []
        for row in range(0, len(self.rows), 2):
            both = np.zeros((*self._sums.shape[:2], row + 2), np.uint8)
            for pixels in self.rows[row : row + 2]:
                both[..., : pixels.shape[-1]] = np.maximum(both[..., : pixels.shape[-1]], pixels)
            halved.append(both.reshape(*both.shape[:2], -1, 2).max(axis=-1))
        self.rows = halved


def overview(record: Record, look: Selection, language: Language, kept: dict[str, Any]) -> str:
    """What the widget shows of all heads; kept: what is remembered of this visitor between two calls.

    The rows that the browser holds already are not sent again; kept["sent"] says which. Without it, all of them are.
    kept["more"]: there are rows still to come.
    """
    made: Overview | None = kept.get("overview")
    if made is None or not made.holds(record):
        made = kept["overview"] = Overview(record)
        kept.pop("sent", None)
    kept["more"] = not made.extend(SECONDS)
    config, shares, n = record.config, made.shares, len(made.ids)
    layer, head = (int(i) for i in np.unravel_index(shares[:, :, 1].argmax(), shares.shape[:2]))
    text = t(
        "heads.says",
        language,
        n=config.n_layer * config.n_head,
        tokens=n,
        layer=layer,
        head=head,
        share=percent(shares[layer, head, 1]),
    )
    if kept["more"]:
        text += t("heads.more", language, total=f"{record.length:,}")
    finished = n // made.factor
    key, first = kept.get("sent", ("", 0))
    whole = key != _key(made, first) or (len(made.rows) - first) > 2 + OVERHEAD * first
    if whole:
        first = finished
        kept["sent"] = _key(made, first), first
    content = {"layer": look.layer, "head": shown_head(look), "text": text, "key": _key(made, first), "first": first}
    content |= {"tokens": n, "near": _text(made)}
    return growing_value(made.rows, shares, content, whole=whole)


def closer(kept: dict[str, Any], layer: int, head: int) -> str:
    """One head of the overview that was shown last, in more pixels; nothing where none was."""
    made: Overview | None = kept.get("overview")
    if made is None:
        return ""
    n = len(made.ids)
    return near_value(made.record.head(layer, head).weights[:n, :n], layer, head, _text(made))


def _text(made: Overview) -> str:
    return f"{id(made.record):x} {hash(tuple(made.ids)):x}"


def _key(made: Overview, first: int) -> str:
    return f"{id(made):x} {made.factor} {first}"
