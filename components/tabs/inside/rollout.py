"""Attention rollout of one record, layer by layer, so that a deep model can be watched while it comes about."""

from __future__ import annotations

import math
import time

import torch

from components.tabs.inside.record import Record

ROWS = 64  # queries of a layer at once: what they are multiplied with stays near the processor


class Rollout:
    """How much of each input token is in each position after the first `layers` layers; see `gpt.analysis.heads`.

    flow: (T, T), rows sum to 1.
    """

    def __init__(self, record: Record) -> None:
        self.record, self.ids, self.layers = record, record.document.ids[: record.length], 0
        self.flow = torch.eye(record.length)

    def holds(self, record: Record) -> bool:
        """Whether it is of that record's text."""
        return self.record is record and self.ids == record.document.ids[: record.length]

    @torch.inference_mode()
    def extend(self, seconds: float = math.inf) -> bool:
        """Go up through the layers, one at least, until the time is over: whether it has reached the last."""
        began, last = time.perf_counter(), self.record.config.n_layer
        while self.layers < last:
            flow, T = torch.zeros_like(self.flow), len(self.ids)
            for start in range(0, T, ROWS):
                stop = min(T, start + ROWS)
                mixed = self.record.weights(self.layers, start, stop).mean(dim=0)  # (stop - start, stop)
                mixed.diagonal(start).add_(1)
                flow[start:stop, :stop] = mixed @ self.flow[:stop, :stop]
            self.flow = flow.div_(2)
            self.layers += 1
            if time.perf_counter() - began > seconds:
                break
        return self.layers == last
