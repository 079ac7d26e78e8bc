"""Recorded activations of a forward pass, by name and layer."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterator
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from gpt.errors import GPTError
from gpt.layers import attention_scores

NUMBERS = ("score_scale", "score_cap")  # shared by all layers
ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_weights")
FULL = ("ln_1", "ln_2", "logits")
OPTIONAL = ("position_embedding", "mlp_up")  # None in models that lack them


class _View:
    """Reads the tensors whose names start with a prefix as attributes."""

    tensors: dict[str, Tensor]
    _prefix = ""

    def __getattr__(self, name: str) -> Any:
        """Return a tensor. Raises ValueError if it was not recorded, and AttributeError if there is no such name."""
        if name not in type(self).__annotations__:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        value = self.tensors.get(self._prefix + name)
        if value is None and not (name in OPTIONAL and self.tensors):
            raise GPTError("trace.not_recorded", name=name)
        return value


class LayerTrace(_View):
    """Activations of one block. B: batch size, T: tokens in this pass, S: positions attended to.

    resid_pre, resid_mid, resid_post: (B, T, C), the residual stream before attention, before the feed-forward network,
        and after the feed-forward network.
    attn_out, mlp_out: (B, T, C), the outputs that attention and feed-forward add to the residual stream.
    attn_q: (B, nh, T, hs); attn_k, attn_v: (B, kv, S, hs), with kv key and value heads. Rotary positions have already
        been applied.
    attn_weights: (B, nh, T, S), after the softmax.
    mlp_pre, mlp_post: (B, T, n_ff), before and after the activation function.
    mlp_up: (B, T, n_ff), in gated models, where mlp_post = activation(mlp_pre) * mlp_up; else None.
    head_out: (B, nh, T, hs), the output of each head before c_proj, after edits have scaled it.
    ln_1, ln_2: (B, T, C), the normalised inputs to attention and feed-forward. Only in full traces.
    attn_scores: (B, nh, T, S), before the mask; computed from queries and keys, unless a hook has changed them.
    score_scale: factor that multiplies q k^T; defaults to 1 / sqrt(hs). score_cap: softcap on the scores.
    Reading an activation that was not recorded raises ValueError.
    """

    resid_pre: Tensor
    ln_1: Tensor
    attn_q: Tensor
    attn_k: Tensor
    attn_v: Tensor
    attn_weights: Tensor
    head_out: Tensor
    attn_out: Tensor
    resid_mid: Tensor
    ln_2: Tensor
    mlp_pre: Tensor
    mlp_up: Tensor | None
    mlp_post: Tensor
    mlp_out: Tensor
    resid_post: Tensor

    def __init__(self, tensors: dict[str, Tensor], layer: int, *numbers: float | None) -> None:
        self.tensors, self._prefix = tensors, f"layers.{layer}."
        self.score_scale, self.score_cap = numbers

    @property
    def attn_scores(self) -> Tensor:
        """Attention scores before the mask, q k^T / sqrt(hs), after the softcap: (B, nh, T, S)."""
        if (hooked := self.tensors.get(f"{self._prefix}attn_scores")) is not None:
            return hooked
        scale = self.attn_q.shape[-1] ** -0.5 if self.score_scale is None else self.score_scale
        keys = for_query_heads(self.attn_k, self.attn_q.shape[1])  # (B, nh, S, hs)
        return attention_scores(self.attn_q, keys, scale, self.score_cap)


class Trace(_View):
    """Activations of one forward pass. The next pass with the same trace replaces them.

    A dictionary of `tensors` by name: `trace["layers.3.attn_q"]` is `trace.layers[3].attn_q`, and `keys()` lists the
    names. All tensors include the effect of any edits.

    token_embedding: (B, T, C). position_embedding: (T, C) or (B, T, C); None if positions are rotary or dropped.
    layers: one LayerTrace per block. final_norm: (B, T, C), the input to the output head. logits: (B, T, vocab_size),
    only in full traces of passes that apply the head. edits: the edits of the pass, or None; not saved. n_blocks: after
    how many blocks the pass ends; None for a complete pass. See `gpt.analysis.tracing.trace_text`.
    attention: whether to record attn_q, attn_k, attn_v and attn_weights; False lets the pass use
        scaled_dot_product_attention.
    full: whether to record the logits, and ln_1 and ln_2 of each layer.
    only: names to record instead, such as "layers.4.resid_post", or "resid_post" for all layers; () for the above.
    gradients: whether to keep the autograd graph, so that `loss.backward()` fills `trace["layers.3.attn_out"].grad`;
        otherwise all tensors are detached.
    Reading an activation that was not recorded raises ValueError, and so does an unknown name in `only`.
    """

    token_embedding: Tensor
    position_embedding: Tensor | None
    layers: list[LayerTrace]
    final_norm: Tensor
    logits: Tensor

    def __init__(
        self, *, attention: bool = True, full: bool = False, gradients: bool = False, only: Collection[str] = ()
    ) -> None:
        self.attention, self.full, self.gradients = attention, full, gradients
        check_names(only)
        scores = {name for name in only if name.endswith("attn_scores")}  # computed from these
        self.only = {*only, *(name.replace("scores", part) for name in scores for part in "qk")}
        self.n_blocks: int | None = None
        self.edits: Any = None
        self.tensors: dict[str, Tensor] = {}
        self.numbers: tuple[float | None, float | None] = None, None

    def blocks_needed(self, n_layer: int) -> int | None:
        """Return how many blocks the names in `only` need; None if they need a complete pass."""
        inside = [name.split(".") for name in self.only if not name.endswith("_embedding")]
        needed = max((int(name[1]) + 1 if len(name) > 1 else n_layer for name in inside), default=0)
        return None if needed >= n_layer or not self.only else needed

    def keeps(self, layer: int | None, name: str) -> bool:
        """Return whether this trace records an activation. layer: None for activations outside the blocks."""
        if self.only:
            return name in self.only or f"layers.{layer}.{name}" in self.only
        return not ((name in ATTENTION and not self.attention) or (name in FULL and not self.full))

    def begin(self, n_layer: int, scale: float | None = None, cap: float | None = None, edits: Any = None) -> None:
        """Discard the contents and create empty layers. scale, cap: those of the attention scores."""
        self.edits, self.tensors, self.numbers = edits, {}, (scale, cap)
        self.layers = [LayerTrace(self.tensors, layer, *self.numbers) for layer in range(n_layer)]

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        """Store an activation if this trace records it. layer: None for activations outside the blocks."""
        if not self.keeps(layer, name):
            return
        if not self.gradients:
            value = value.detach()
        elif value.requires_grad:
            value.retain_grad()
        else:
            value.requires_grad_()  # the first activation in a model with frozen weights
        self.tensors[name if layer is None else f"layers.{layer}.{name}"] = value

    def of_text(self, row: int, length: int) -> Trace:
        """Return the trace of one text in a batch, as views without the padding that follows its first tokens."""
        one = Trace(attention=self.attention, full=self.full, gradients=self.gradients, only=self.only)
        one.begin(len(self.layers), *self.numbers, self.edits)
        for name, value in self.tensors.items():
            if name != "position_embedding":  # (T, C), the same for all texts
                value = value[row : row + 1]
            tokens = -1 if name.endswith(("scores", "weights")) else -2
            one.tensors[name] = value.narrow(-2, 0, length).narrow(tokens, 0, length)
        return one

    def keys(self) -> list[str]:
        """Return the names of the recorded tensors: "token_embedding", "layers.0.resid_pre" and so on."""
        return list(self.tensors)

    def __getitem__(self, name: str) -> Any:
        *inside, attribute = name.split(".")
        try:
            return getattr(self.layers[int(inside[1])] if inside else self, attribute)
        except (AttributeError, IndexError, ValueError) as error:
            if isinstance(error, GPTError):
                raise
            raise GPTError("trace.unknown", name=name) from None

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __repr__(self) -> str:
        shapes = {re.sub(r"^layers\.\d+", "layers.*", name): tuple(x.shape) for name, x in self.tensors.items()}
        if not shapes:
            return "Trace(empty)"
        width = max(map(len, shapes)) + 2
        rows = [f"  {name:{width}}{shape}" for name, shape in shapes.items()]
        return f"Trace of {len(self.layers)} layers\n" + "\n".join(rows)

    @property
    def n_bytes(self) -> int:
        """Size of the layers' activations, in bytes."""
        return sum(value.nbytes for name, value in self.tensors.items() if name.startswith("layers."))

    def save(self, file: str | PathLike[str] | BinaryIO) -> None:
        """Write all tensors, by name, to an .npz archive. Appends ".npz" to a path that lacks it.

        Writes bfloat16 tensors as float32, which is lossless.
        """
        arrays: dict[str, Any] = {name: x for name, x in zip(NUMBERS, self.numbers, strict=True) if x is not None}
        for name, value in self.tensors.items():
            arrays[name] = (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()
        np.savez(file, **arrays)

    @classmethod
    def load(cls, file: str | PathLike[str] | BinaryIO) -> Trace:
        """Load a file written by `save` into CPU memory. Raises ValueError for any other file."""
        trace = cls()
        try:
            with np.load(file) as archive:
                arrays = {name: archive[name] for name in archive.files}
            numbers = [float(arrays.pop(name)) if name in arrays else None for name in NUMBERS]
            check_names(arrays)
            layers = [int(name.split(".")[1]) for name in arrays if name.startswith("layers.")]
            trace.begin(1 + max(layers, default=-1), *numbers)
            trace.tensors.update({name: torch.from_numpy(array) for name, array in arrays.items()})
        except (AttributeError, EOFError, TypeError, ValueError, zipfile.BadZipFile):
            raise GPTError("trace.not_a_trace") from None
        return trace


def check_names(names: Collection[str]) -> None:
    """Raise ValueError unless all are names of activations, such as "layers.4.resid_post", "resid_post" or "logits"."""
    for name in names:
        inside = re.sub(r"^layers\.\d+\.", "", name)
        known = {*LayerTrace.__annotations__, "attn_scores", *(() if inside != name else Trace.__annotations__)}
        if inside not in known:
            raise GPTError("trace.unknown", name=name)


def for_query_heads(x: Tensor, n_head: int) -> Tensor:
    """Repeat keys or values (..., kv, S, hs) for each query head that shares them: (..., n_head, S, hs)."""
    return x.repeat_interleave(n_head // x.shape[-3], dim=-3)
