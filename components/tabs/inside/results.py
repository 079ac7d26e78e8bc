"""Results for the open part besides the recording. Each includes the tokens that it belongs to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from components.tabs.inside.recording import Recording
from gpt import Generation, Trace
from gpt.analysis.rollout import rollout_layers
from gpt.experiments.random_models import skeleton_of


@dataclass(frozen=True, eq=False)
class PositionTrace:
    """All activations of the last of these tokens, (1, 1, ...)."""

    document: Generation
    ids: tuple[int, ...]
    trace: Trace = field(repr=False)

    @classmethod
    def of(cls, recording: Recording, position: int) -> PositionTrace:
        return cls(recording.document, recording.ids[: position + 1], recording.trace_at(position))

    def is_at(self, recording: Recording, position: int) -> bool:
        """Whether it belongs to that position of the recorded text."""
        return self.document is recording.document and self.ids == recording.ids[: position + 1]


@dataclass(frozen=True, eq=False)
class WindowTrace:
    """All activations of the last MAX_ROWS of these tokens, (1, 1, ...) each. start: the position of the first."""

    MAX_ROWS: ClassVar = 6
    document: Generation
    ids: tuple[int, ...]
    start: int
    traces: tuple[Trace, ...] = field(repr=False)

    @classmethod
    @torch.inference_mode()
    def of(cls, recording: Recording, position: int) -> WindowTrace:
        rows = range(max(0, position + 1 - cls.MAX_ROWS), position + 1)
        traces = tuple(recording.trace_at(row) for row in rows)
        return cls(recording.document, recording.ids[: position + 1], rows.start, traces)

    def is_at(self, recording: Recording, position: int) -> bool:
        """Whether it ends at that position of the recorded text."""
        return self.document is recording.document and self.ids == recording.ids[: position + 1]


@dataclass(frozen=True, eq=False)
class SkeletonPass:
    """A forward pass of the skeleton: its embeddings, which no block changes. position: None for a model without
    learned positions. Each tensor is (T, n_embd)."""

    recording: Recording
    token: Tensor = field(repr=False)
    position: Tensor | None = field(repr=False)
    states: Tensor = field(repr=False)

    @classmethod
    @torch.inference_mode()
    def of(cls, recording: Recording) -> SkeletonPass:
        document, trace = recording.document, Trace(attention=False)
        model = skeleton_of(document.loaded.model)
        idx = torch.tensor([recording.ids], device=model.device)
        states = model.hidden_states(idx, trace=trace, edits=document.edits)[0]
        position = trace.position_embedding
        return cls(recording, trace.token_embedding[0], None if position is None else position.view_as(states), states)

    @torch.inference_mode()
    def logits(self, position: int) -> Tensor:
        """The skeleton's logits after a position, (vocab_size,) in float32."""
        model = self.recording.document.loaded.model
        return model.logits(self.states[position : position + 1])[0].float()


@dataclass(frozen=True, eq=False)
class Rollout:
    """Attention rollout after the first `n_layers` layers. flow: (T, T), see `gpt.analysis.rollout.rollout_layers`."""

    recording: Recording
    n_layers: int
    flow: Tensor = field(repr=False)
    _following: Iterator[Tensor] = field(repr=False)  # the flow after each further layer

    @classmethod
    def of(cls, recording: Recording) -> Rollout:
        flows = rollout_layers(recording.config.n_layer, recording.length, recording.attn_weights)
        return cls(recording, 0, torch.eye(recording.length), flows)

    @property
    def is_complete(self) -> bool:
        return self.n_layers == self.recording.config.n_layer

    def extended(self, seconds: float) -> Rollout:
        """The rollout through at least one more layer, and through more until the time is over. Only the newest may be
        extended."""
        rollout, began = self, time.perf_counter()
        for flow in self._following:
            rollout = Rollout(self.recording, rollout.n_layers + 1, flow, self._following)
            if time.perf_counter() - began > seconds:
                break
        return rollout
