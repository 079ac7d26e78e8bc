"""Attention rollout of one record in time-limited portions, so that a deep model can be watched while it is computed."""

from __future__ import annotations

import math
import time

import torch

from components.tabs.inside.record import Record
from gpt.analysis.rollout import rollout_layers


class Rollout:
    """The rollout after the first `layers` layers. flow: (T, T), see `gpt.analysis.rollout.rollout_layers`."""

    def __init__(self, record: Record) -> None:
        self.record, self.ids, self.layers = record, record.document.ids[: record.length], 0
        self.flow = torch.eye(record.length)
        self._flows = rollout_layers(record.config.n_layer, record.length, record.weights)

    def holds(self, record: Record) -> bool:
        """Whether it is of that record's text."""
        return self.record is record and self.ids == record.document.ids[: record.length]

    def extend(self, seconds: float = math.inf) -> bool:
        """Compute further layers, at least one, until the time is over; returns whether the last one is reached."""
        began = time.perf_counter()
        for flow in self._flows:
            self.flow, self.layers = flow, self.layers + 1
            if time.perf_counter() - began > seconds:
                break
        return self.layers == self.record.config.n_layer
