"""The activations of one forward pass, by name and layer."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from gpt.errors import GPTError


@dataclass
class LayerTrace:
    """The activations of one block. B batch, T tokens of this pass, S positions attended to.

    resid_pre, resid_mid, resid_post: (B, T, C), the residual stream before attention, before the
        feed-forward part, and after it.
    attn_out, mlp_out: (B, T, C), what attention and feed-forward add: after projection and bias.
    attn_q: (B, nh, T, hs); attn_k, attn_v: (B, nh, S, hs); rotary positions already applied.
    attn_weights: (B, nh, T, S), after the softmax.
    mlp_pre, mlp_post: (B, T, n_ff), before and after the activation function.
    """

    resid_pre: Tensor | None = None
    attn_q: Tensor | None = None
    attn_k: Tensor | None = None
    attn_v: Tensor | None = None
    attn_weights: Tensor | None = None
    attn_out: Tensor | None = None
    resid_mid: Tensor | None = None
    mlp_pre: Tensor | None = None
    mlp_post: Tensor | None = None
    mlp_out: Tensor | None = None
    resid_post: Tensor | None = None

    @property
    def attn_scores(self) -> Tensor:
        """q k^T / sqrt(hs), (B, nh, T, S), before the mask; computed from q and k on access."""
        return self.attn_q @ self.attn_k.transpose(-2, -1) / math.sqrt(self.attn_q.shape[-1])


@dataclass
class Trace:
    """Filled by the forward pass that it is passed to; another pass replaces the content.

    token_embedding: (B, T, C). position_embedding: (T, C) or (B, T, C); None where positions are rotary
    or dropped. layers: one LayerTrace per block. final_norm: (B, T, C), the input of the head. All tensors are
    detached. attention: False omits attn_q to attn_weights, so that the pass can use
    scaled_dot_product_attention.
    """

    token_embedding: Tensor | None = None
    position_embedding: Tensor | None = None
    layers: list[LayerTrace] = field(default_factory=list)
    final_norm: Tensor | None = None
    attention: bool = True

    def begin(self, n_layer: int) -> None:
        """Discard the content and create empty layers."""
        self.token_embedding = self.position_embedding = self.final_norm = None
        self.layers = [LayerTrace() for _ in range(n_layer)]

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        """Store one activation under its name; layer None is outside the blocks."""
        setattr(self if layer is None else self.layers[layer], name, value.detach())

    def save(self, file: str | PathLike[str] | BinaryIO) -> None:
        """Write every tensor to an .npz archive, "layers.0.attn_q" and so on; ".npz" is added to a path without it.

        bfloat16, which numpy does not have, is written as float32 without loss.
        """
        arrays = {}
        for name, owner, attribute in self._tensors():
            value = getattr(owner, attribute)
            if value is not None:
                arrays[name] = (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()
        np.savez(file, **arrays)

    @classmethod
    def load(cls, file: str | PathLike[str] | BinaryIO) -> Trace:
        """Read a file of `save`, onto the CPU. Raises ValueError for any other file."""
        trace = cls()
        try:
            with np.load(file) as archive:
                trace.begin(sum(name.endswith(".resid_pre") for name in archive.files))
                for name, owner, attribute in trace._tensors():
                    if name in archive.files:
                        setattr(owner, attribute, torch.from_numpy(archive[name]))
        except (AttributeError, EOFError, TypeError, ValueError, zipfile.BadZipFile):
            raise GPTError("trace.not_a_trace") from None
        if trace.final_norm is None:
            raise GPTError("trace.incomplete")
        return trace

    def _tensors(self) -> Iterator[tuple[str, Trace | LayerTrace, str]]:
        """(name in an archive, owner, attribute) of every possible tensor."""
        layers = [(f"layers.{number}.", layer) for number, layer in enumerate(self.layers)]
        for prefix, owner in [("", self), *layers]:
            for item in fields(owner):
                if item.name not in ("layers", "attention"):
                    yield prefix + item.name, owner, item.name
