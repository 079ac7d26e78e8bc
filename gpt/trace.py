"""Recorded activations of a forward pass, by name and layer."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from gpt.errors import GPTError
from gpt.layers import attention_scores

NUMBERS = ("score_scale", "score_cap")  # shared by all layers
ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_weights")
FULL = ("ln_1", "ln_2", "head_out", "logits")
NOT_RECORDED: Any = object()  # value of fields that have not been recorded


class _Activations:
    """Base class for traces: reading a field that was not recorded raises ValueError."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if value is NOT_RECORDED:
            raise GPTError(
                "trace.not_recorded", "{name} was not recorded; run model(idx, trace=Trace()) to record it", name=name
            )
        return value


@dataclass(repr=False, eq=False)
class LayerTrace(_Activations):
    """Activations of one block. B: batch size, T: tokens in this pass, S: positions attended to.

    resid_pre, resid_mid, resid_post: (B, T, C), the residual stream before attention, before the feed-forward network,
        and after the feed-forward network.
    attn_out, mlp_out: (B, T, C), the outputs that attention and feed-forward add to the residual stream.
    attn_q: (B, nh, T, hs); attn_k, attn_v: (B, kv, S, hs), with kv key and value heads. Rotary positions have already
        been applied.
    attn_weights: (B, nh, T, S), after the softmax.
    mlp_pre, mlp_post: (B, T, n_ff), before and after the activation function.
    mlp_up: (B, T, n_ff), in gated models, where mlp_post = activation(mlp_pre) * mlp_up; else None.
    ln_1, ln_2: (B, T, C), the normalised inputs to attention and feed-forward; head_out: (B, nh, T, hs), the output of
        each head before c_proj, after edits have scaled it. Only in full traces.
    score_scale: factor that multiplies q k^T; defaults to 1 / sqrt(hs). score_cap: softcap on the scores.
    Reading an activation that was not recorded raises ValueError.
    """

    resid_pre: Tensor = NOT_RECORDED
    ln_1: Tensor = NOT_RECORDED
    attn_q: Tensor = NOT_RECORDED
    attn_k: Tensor = NOT_RECORDED
    attn_v: Tensor = NOT_RECORDED
    attn_weights: Tensor = NOT_RECORDED
    head_out: Tensor = NOT_RECORDED
    attn_out: Tensor = NOT_RECORDED
    resid_mid: Tensor = NOT_RECORDED
    ln_2: Tensor = NOT_RECORDED
    mlp_pre: Tensor = NOT_RECORDED
    mlp_up: Tensor | None = None
    mlp_post: Tensor = NOT_RECORDED
    mlp_out: Tensor = NOT_RECORDED
    resid_post: Tensor = NOT_RECORDED
    score_scale: float | None = None
    score_cap: float | None = None

    @property
    def attn_scores(self) -> Tensor:
        """Attention scores before the mask, q k^T / sqrt(hs), after the softcap: (B, nh, T, S). Computed on access."""
        scale = self.attn_q.shape[-1] ** -0.5 if self.score_scale is None else self.score_scale
        keys = for_query_heads(self.attn_k, self.attn_q.shape[1])  # (B, nh, S, hs)
        return attention_scores(self.attn_q, keys, scale, self.score_cap)


@dataclass(repr=False, eq=False)
class Trace(_Activations):
    """Activations of one forward pass. The next pass with the same trace replaces them.

    `trace["layers.3.attn_q"]` is `trace.layers[3].attn_q`; `keys()` lists the names.

    token_embedding: (B, T, C). position_embedding: (T, C) or (B, T, C); None if positions are rotary or dropped.
    layers: one LayerTrace per block. final_norm: (B, T, C), the input to the output head. logits: (B, T, vocab_size),
    only in full traces of passes that apply the head. All tensors include the effect of any edits.
    attention: whether to record attn_q, attn_k, attn_v and attn_weights; False lets the pass use
        scaled_dot_product_attention.
    full: whether to record the logits, and ln_1, ln_2 and head_out of each layer.
    gradients: whether to keep the autograd graph, so that `loss.backward()` fills `trace["layers.3.attn_out"].grad`;
        otherwise all tensors are detached.
    edits: the edits of the pass, or None. They are not saved.
    Reading an activation that was not recorded raises ValueError.
    """

    token_embedding: Tensor = NOT_RECORDED
    position_embedding: Tensor | None = NOT_RECORDED
    layers: list[LayerTrace] = NOT_RECORDED
    final_norm: Tensor = NOT_RECORDED
    logits: Tensor = NOT_RECORDED
    attention: bool = True
    full: bool = False
    gradients: bool = False
    edits: Any = None

    def begin(
        self, n_layer: int, score_scale: float | None = None, score_cap: float | None = None, edits: Any = None
    ) -> None:
        """Discard the contents and create empty layers."""
        self.edits = edits
        self.token_embedding = self.final_norm = self.logits = NOT_RECORDED
        self.position_embedding = None
        self.layers = [LayerTrace(score_scale=score_scale, score_cap=score_cap) for _ in range(n_layer)]

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        """Store an activation if this trace records it. layer: None for activations outside the blocks."""
        if (name in ATTENTION and not self.attention) or (name in FULL and not self.full):
            return
        if not self.gradients:
            value = value.detach()
        elif value.requires_grad:
            value.retain_grad()
        else:
            value.requires_grad_()  # the first activation in a model with frozen weights
        setattr(self if layer is None else self.layers[layer], name, value)

    def keys(self) -> list[str]:
        """Return the names of the recorded tensors: "token_embedding", "layers.0.resid_pre" and so on."""
        return [name for name, owner, attribute in self._tensors() if isinstance(vars(owner)[attribute], Tensor)]

    def __getitem__(self, name: str) -> Any:
        *inside, attribute = name.split(".")
        try:
            owner = self.layers[int(inside[1])] if inside else self
            return getattr(owner, attribute)
        except (AttributeError, IndexError, ValueError) as error:
            if isinstance(error, GPTError):
                raise
            raise GPTError(
                "trace.unknown", "a trace has no {name!r}; see keys() for names such as 'layers.0.attn_q'", name=name
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __repr__(self) -> str:
        shapes = {re.sub(r"^layers\.\d+", "layers.*", name): tuple(self[name].shape) for name in self.keys()}
        if not shapes:
            return "Trace(empty)"
        width = max(map(len, shapes)) + 2
        rows = [f"  {name:{width}}{shape}" for name, shape in shapes.items()]
        return f"Trace of {len(self.layers)} layers\n" + "\n".join(rows)

    @property
    def n_bytes(self) -> int:
        """Size of the layers' activations, in bytes."""
        return sum(value.nbytes for layer in self.layers for value in vars(layer).values() if isinstance(value, Tensor))

    def save(self, file: str | PathLike[str] | BinaryIO) -> None:
        """Write all tensors, by name, to an .npz archive. Appends ".npz" to a path that lacks it.

        Writes bfloat16 tensors as float32, which is lossless.
        """
        arrays: dict[str, Any] = {}
        for name, owner, attribute in self._tensors():
            value = vars(owner)[attribute]
            if isinstance(value, Tensor):
                arrays[name] = (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()
        for name in NUMBERS if self.layers else ():
            if (number := getattr(self.layers[0], name)) is not None:
                arrays[name] = np.float64(number)
        np.savez(file, **arrays)

    @classmethod
    def load(cls, file: str | PathLike[str] | BinaryIO) -> Trace:
        """Load a file written by `save` into CPU memory. Raises ValueError for any other file."""
        trace = cls()
        try:
            with np.load(file) as archive:
                numbers = (float(archive[name]) if name in archive.files else None for name in NUMBERS)
                trace.begin(sum(name.endswith(".resid_pre") for name in archive.files), *numbers)
                for name, owner, attribute in trace._tensors():
                    if name in archive.files:
                        setattr(owner, attribute, torch.from_numpy(archive[name]))
        except (AttributeError, EOFError, TypeError, ValueError, zipfile.BadZipFile):
            raise GPTError("trace.not_a_trace", "this file is not a trace written by Trace.save") from None
        if vars(trace)["final_norm"] is NOT_RECORDED:
            raise GPTError("trace.incomplete", "this file does not contain a complete trace: final_norm is missing")
        return trace

    def _tensors(self) -> Iterator[tuple[str, Trace | LayerTrace, str]]:
        """Yield (name in an archive, owner, attribute) for every possible tensor."""
        owners: list[tuple[str, Trace | LayerTrace]] = [("", self)]
        if (layers := vars(self)["layers"]) is not NOT_RECORDED:
            owners += [(f"layers.{number}.", layer) for number, layer in enumerate(layers)]
        for prefix, owner in owners:
            for item in fields(owner):
                if item.name not in ("layers", "attention", "full", "gradients", "edits", *NUMBERS):
                    yield prefix + item.name, owner, item.name


def for_query_heads(x: Tensor, n_head: int) -> Tensor:
    """Repeat keys or values (..., kv, S, hs) for each query head that shares them: (..., n_head, S, hs)."""
    return x.repeat_interleave(n_head // x.shape[-3], dim=-3)
