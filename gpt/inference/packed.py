"""A model that only reads, its weights kept as `gpt.inference.products` wants them, and nowhere else."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.errors import GPTError
from gpt.inference.products import LARGE, Blocks, Columns, Packing, in_bytes, matrix_numbers, product, unused_rows


class PackedLinear(nn.Module):
    """nn.Linear for a model that only reads, its weights kept in the packed form alone.

    `weight` is made anew each time it is asked for, unless it is also kept as rows: a tied head.
    """

    def __init__(
        self,
        linear: nn.Linear,
        packing: Packing,
        rows: nn.Embedding | PackedEmbedding | None = None,
        large: bool = False,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = linear.bias
        self.product = product(linear.weight, linear.bias, packing, large)
        self.rows = (rows,)  # not a module of this one

    @property
    def weight(self) -> Tensor:
        """(out, in) float32, as the products use it."""
        (rows,) = self.rows
        return self.product.dense() if rows is None else rows.weight

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.weight

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        count = len(flat)
        if isinstance(self.product, Columns | Blocks) and (rows := unused_rows(count)):
            flat = F.pad(flat, (0, 0, 0, rows))
        y = Through.apply(flat, self) if torch.is_grad_enabled() and x.requires_grad else self.product(flat)
        return y[:count].view(*x.shape[:-1], self.out_features)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedLinear:
        return self  # it never changes


class Through(torch.autograd.Function):
    """The product of a PackedLinear with the gradient of its input; the weights are unpacked only on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, linear: PackedLinear) -> Tensor:
        ctx.linear = linear
        return linear.product(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient @ ctx.linear.weight, None


class PackedEmbedding(nn.Module):
    """nn.Embedding with its rows in bfloat16, or in int8 with a scale for each, given out in float32."""

    def __init__(self, embedding: nn.Embedding, packing: Packing) -> None:
        super().__init__()
        rows, scale = embedding.weight.detach(), None
        if packing == "int8":
            rounded = in_bytes(rows.float())  # as a tied head's
            rows, scale = rounded.int_repr(), rounded.q_per_channel_scales().float()[:, None]
        self.register_buffer("rows", rows if packing == "int8" else rows.bfloat16())
        self.register_buffer("scale", scale)  # (n, 1)

    @property
    def weight(self) -> Tensor:
        """(n, C) float32."""
        return self.rows.float() if self.scale is None else self.rows * self.scale

    def forward(self, x: Tensor) -> Tensor:
        rows = F.embedding(x, self.rows)
        return rows.float() if self.scale is None else rows * F.embedding(x, self.scale)


def pack(model: nn.Module, packing: Packing, large: bool | None = None) -> None:
    """Put every matrix of a model, or of a part of one, in place, into a packing; it can only read afterwards.

    large: whether the model is, as in `gpt.inference.products`; None looks at all that there is. What is packed stays as it is.
    Raises ValueError where this computer has no kernels for it.
    """
    check_packing(packing)
    exact = packing == "fp32"
    large = matrix_numbers(model) >= LARGE if large is None else large
    kinds = (nn.Embedding, nn.Linear)
    places = [(m, name) for m in model.modules() for name, child in m.named_children() if isinstance(child, kinds)]
    rows: dict[Tensor, nn.Module] = {}
    for module, name in places:  # no list of the children: each is freed as it is replaced, as few have memory for two
        child = getattr(module, name)
        if isinstance(child, nn.Linear):
            setattr(module, name, PackedLinear(child, packing, rows.get(child.weight), large))
        else:
            rows[child.weight] = child if exact else PackedEmbedding(child, packing)
            setattr(module, name, rows[child.weight])


def check_packing(packing: Packing) -> None:
    """Raise ValueError where this computer has no kernels for a precision."""
    if not torch.backends.mkldnn.is_available():
        raise GPTError("precision.onednn", precision=packing)
    if packing == "int8" and not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        raise GPTError("precision.int8_cpu")
