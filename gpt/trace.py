"""The activations of one forward pass, by name and layer."""

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

NUMBERS = ("score_scale", "score_cap")  # the same in all layers
ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_weights")
FULL = ("ln_1", "ln_2", "head_out", "logits")
NOT_RECORDED: Any = object()  # in a field that no pass has filled, typed as any tensor


class _Activations:
    """Base of the traces: reading a field that no pass has filled raises ValueError."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if value is NOT_RECORDED:
            raise GPTError(
                "trace.not_recorded", "{name} was not recorded: model(idx, trace=Trace()) records it", name=name
            )
        return value


@dataclass(repr=False, eq=False)
class LayerTrace(_Activations):
    """The activations of one block. B batch, T tokens of this pass, S positions attended to.

    resid_pre, resid_mid, resid_post: (B, T, C), the residual stream before attention, before the
        feed-forward part, and after it.
    attn_out, mlp_out: (B, T, C), what attention and feed-forward add: after projection and bias.
    attn_q: (B, nh, T, hs); attn_k, attn_v: (B, kv, S, hs), kv the number of key and value heads; rotary positions
        already applied.
    attn_weights: (B, nh, T, S), after the softmax.
    mlp_pre, mlp_post: (B, T, n_ff), before and after the activation function.
    mlp_up: (B, T, n_ff), None unless the feed-forward part is gated: mlp_post = activation(mlp_pre) * mlp_up.
    ln_1, ln_2: (B, T, C), the normalised inputs of attention and of the feed-forward part; head_out: (B, nh, T, hs),
        what each head adds before c_proj, after the factors of edits. In full traces only.
    score_scale: factor on the product of query and key; None is 1 / sqrt(hs). score_cap: limit of the scores.
    Reading one that was not recorded raises ValueError.
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
        """q k^T / sqrt(hs), capped, (B, nh, T, S), before the mask; computed from q and k on access."""
        scale = self.attn_q.shape[-1] ** -0.5 if self.score_scale is None else self.score_scale
        keys = for_query_heads(self.attn_k, self.attn_q.shape[1])  # (B, nh, S, hs)
        return attention_scores(self.attn_q, keys, scale, self.score_cap)


@dataclass(repr=False, eq=False)
class Trace(_Activations):
    """The activations of one forward pass, which fills it; another pass replaces the content.

    `trace["layers.3.attn_q"]` is `trace.layers[3].attn_q`; `keys()` lists the names.

    token_embedding: (B, T, C). position_embedding: (T, C) or (B, T, C); None where positions are rotary
    or dropped. layers: one LayerTrace per block. final_norm: (B, T, C), the input of the head. logits: (B, T,
    vocab_size), in full traces of passes with the head. All tensors are edited where the pass has edits.
    attention: False omits attn_q to attn_weights, so that the pass can use scaled_dot_product_attention.
    full: also records the logits, and ln_1, ln_2 and head_out of each layer.
    gradients: keeps the graph, so that `loss.backward()` fills `trace["layers.3.attn_out"].grad`; otherwise all tensors
    are detached. Reading what was not recorded raises ValueError.
    """

    token_embedding: Tensor = NOT_RECORDED
    position_embedding: Tensor | None = NOT_RECORDED
    layers: list[LayerTrace] = NOT_RECORDED
    final_norm: Tensor = NOT_RECORDED
    logits: Tensor = NOT_RECORDED
    attention: bool = True
    full: bool = False
    gradients: bool = False

    def begin(self, n_layer: int, score_scale: float | None = None, score_cap: float | None = None) -> None:
        """Discard the content and create empty layers."""
        self.token_embedding = self.final_norm = self.logits = NOT_RECORDED
        self.position_embedding = None
        self.layers = [LayerTrace(score_scale=score_scale, score_cap=score_cap) for _ in range(n_layer)]

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        """Store one activation under its name, if it is wanted; layer None is outside the blocks."""
        if (name in ATTENTION and not self.attention) or (name in FULL and not self.full):
            return
        if not self.gradients:
            value = value.detach()
        elif value.requires_grad:
            value.retain_grad()
        else:
            value.requires_grad_()  # the first activation of a model whose weights need no gradient
        setattr(self if layer is None else self.layers[layer], name, value)

    def keys(self) -> list[str]:
        """Names of the recorded tensors: "token_embedding", "layers.0.resid_pre" and so on."""
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
                "trace.unknown", "a trace has no {name!r}: its names are like 'layers.0.attn_q', see keys()", name=name
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
        """Memory of the layers' activations, in bytes."""
        return sum(value.nbytes for layer in self.layers for value in vars(layer).values() if isinstance(value, Tensor))

    def save(self, file: str | PathLike[str] | BinaryIO) -> None:
        """Write every tensor to an .npz archive, "layers.0.attn_q" and so on; ".npz" is added to a path without it.

        bfloat16, which numpy does not have, is written as float32 without loss.
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
        """Read a file of `save`, onto the CPU. Raises ValueError for any other file."""
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
            raise GPTError(
                "trace.incomplete", "this file does not hold the trace of a whole pass: final_norm is missing"
            )
        return trace

    def _tensors(self) -> Iterator[tuple[str, Trace | LayerTrace, str]]:
        """(name in an archive, owner, attribute) of every possible tensor."""
        owners: list[tuple[str, Trace | LayerTrace]] = [("", self)]
        if (layers := vars(self)["layers"]) is not NOT_RECORDED:
            owners += [(f"layers.{number}.", layer) for number, layer in enumerate(layers)]
        for prefix, owner in owners:
            for item in fields(owner):
                if item.name not in ("layers", "attention", "full", "gradients", *NUMBERS):
                    yield prefix + item.name, owner, item.name


def for_query_heads(x: Tensor, n_head: int) -> Tensor:
    """Keys or values (..., kv, S, hs), once for each query head that they serve: (..., n_head, S, hs)."""
    return x.repeat_interleave(n_head // x.shape[-3], dim=-3)
