"""Matrices in the order, and the precision, in which this CPU reads them fastest.

A decoding step is bound by how fast the weights stream from memory. oneDNN's own order reads them about twice as fast
as rows do; bfloat16 halves the bytes, int8 halves them again. Small matrices stay in the CPU's cache: there it counts
how soon a product begins. What goes in and comes out is float32 in every precision, so norms, residuals, attention and
the cache stay exact.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.config import Activation
from gpt.model import ACTIVATIONS
from gpt.threads import SMALL, threads_for

Packing = Literal["fp32", "bf16", "int8"]
ROWS = 16  # the number of rows that oneDNN should expect; fewer lose nothing, more lose little
WHOLE = 4  # oneDNN makes, and keeps, a kernel for each number of rows that it meets: so they come by fours
LEAST = 2  # rows of a float32 product: both libraries sum a single row in another order
FEW = 2**20  # numbers of a matrix that is read from a cache
TRIED = (LEAST, *range(WHOLE, 33, WHOLE), 48, 64, 128)  # numbers of rows

# Activations that oneDNN computes with the product: its names of `gpt.model`'s.
FUSED: dict[Activation, tuple[str, str]] = {
    "gelu_tanh": ("gelu", "tanh"),
    "gelu": ("gelu", "none"),
    "relu": ("relu", ""),
    "silu": ("swish", ""),
}


class Product(nn.Module, ABC):
    """x W^T + b: (B, in) float32 -> (B, out) float32; each row as if it were alone. TorchScript can run it.

    In int8 this holds to the bit, in float32 from LEAST rows on; in bfloat16 some processors sum in another order the
    more rows there are.
    """

    @abstractmethod
    def dense(self) -> Tensor:
        """W as it is used, (out, in) float32."""

    @torch.jit.export
    def added(self, x: Tensor, to: Tensor) -> Tensor:
        """to + the product."""
        return to + self(x)


class Rows(Product):
    """The plain product, where there is nothing better: weights row by row."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def dense(self) -> Tensor:
        return self.weight


class Columns(Product):
    """Small weights column by column: a product with them is done before one of oneDNN's begins."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.columns, self.bias = weight.detach().T.contiguous(), None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        y = x.mm(self.columns)
        return y if self.bias is None else y.add_(self.bias)

    @torch.jit.export
    def added(self, x: Tensor, to: Tensor) -> Tensor:
        return self(x).add_(to)

    def dense(self) -> Tensor:
        return self.columns.T


@cache
def alike(inputs: int, outputs: int) -> bool:
    """Whether `Columns` of a size give each row the same bits, whoever is beside it: not on every processor."""
    generator = torch.Generator().manual_seed(0)
    columns = torch.randn(inputs, outputs, generator=generator)
    x, tried = torch.randn(max(TRIED), inputs, generator=generator), []
    for work in (0, SMALL):
        with threads_for(work):
            tried += [x[:count].mm(columns) for count in TRIED]
    return all(torch.equal(y, tried[-1][: len(y)]) for y in tried)


class Blocks(Product):
    """Weights in oneDNN's order; in bfloat16 the products are summed in float32 and rounded once at the end."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.exact = dtype, dtype is torch.float32  # even a conversion to the same takes its time
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype), ROWS)
        self.bias = None if bias is None else bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.exact else x.to(self.dtype)
        y = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return y if self.exact else y.float()

    @torch.jit.export
    def added(self, x: Tensor, to: Tensor) -> Tensor:
        if self.exact:
            if not torch.jit.is_scripting():  # by its full name, which TorchScript cannot: else Python looks for 0.9 ms
                return torch.ops.mkldnn._linear_pointwise.binary(x, to, self.packed, self.bias, "add")
            return torch.ops.mkldnn._linear_pointwise(x, to, self.packed, self.bias, "add")
        return to + torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.packed, self.bias, "none", [], "")

    def dense(self) -> Tensor:
        return self.packed.to_dense().float()

    def __reduce__(self) -> tuple[Any, ...]:
        return Blocks, (self.dense(), self.bias, self.dtype)


class Fused(nn.Module):
    """The activation of a product in blocks, computed with it; in bfloat16 where the product is."""

    def __init__(self, product: Blocks, activation: Activation) -> None:
        super().__init__()
        self.dtype, self.exact, self.packed, self.bias = product.dtype, product.exact, product.packed, product.bias
        self.name, self.algorithm = FUSED[activation]

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.exact else x.to(self.dtype)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, self.name, [], self.algorithm)


class Bytes(Product):
    """Weights as int8 with a scale for each output; activations as 8 bits with a scale for each row.

    A kernel that measures its input takes one range for all rows of a call, which would let one text change another's
    numbers. So each row is divided by its largest magnitude, and the kernel is told that all lie in -1..1. A row of
    zeros becomes NaN, which the kernel rounds to some number, and zero times that is added to the bias.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        weight = weight.detach().float()
        scale = scale_of(weight)
        zero = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():  # eager quantisation moves to another package one day
            warnings.simplefilter("ignore")
            rounded = torch.quantize_per_channel(weight, scale.double(), zero, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(rounded, None)
        self.bias = torch.zeros(len(weight)) if bias is None else bias.detach().float()
        self.levels = 127 if has_vnni() else 63  # older CPUs add 16-bit sums: one bit less, or they would overflow

    def forward(self, x: Tensor) -> Tensor:
        size = x.abs().amax(dim=-1, keepdim=True)  # (B, 1)
        y = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / size, 1 / self.levels, self.levels + 1, self.packed
        )
        return torch.addcmul(self.bias, y, size)

    def dense(self) -> Tensor:
        return torch.ops.quantized.linear_unpack(self.packed)[0].dequantize()

    def __reduce__(self) -> tuple[Any, ...]:
        return Bytes, (self.dense(), self.bias)


def product(weight: Tensor, bias: Tensor | None, packing: Packing) -> Product:
    """The fastest product there is for a matrix, (out, in), and its bias; on the CPU packed, elsewhere plain rows."""
    if weight.device.type != "cpu" or weight.dtype is not torch.float32 or not torch.backends.mkldnn.is_available():
        return Rows(weight, bias)
    if packing == "int8":
        return Bytes(weight, bias)
    if packing == "fp32" and weight.numel() <= FEW and torch.backends.mkl.is_available() and alike(*weight.T.shape):
        return Columns(weight, bias)
    return Blocks(weight, bias, torch.float32 if packing == "fp32" else torch.bfloat16)


def activated(product: Product, activation: Activation) -> nn.Module:
    """The activation of a product, computed with it where that can be."""
    if isinstance(product, Blocks):
        return Fused(product, activation)
    return nn.Sequential(product, ACTIVATIONS[activation])


def unused_rows(count: int) -> int:
    """How many rows are to be added, so that there are at least two, and more come by fours."""
    return -count % WHOLE if count > LEAST else LEAST - count


class PackedLinear(nn.Module):
    """nn.Linear for a model that only reads, its weights kept in the packed form alone.

    `weight` is made anew each time it is asked for, unless it is also kept as rows: a tied head in float32.
    """

    def __init__(self, linear: nn.Linear, packing: Packing, rows: nn.Embedding | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = linear.bias
        self.product = product(linear.weight, linear.bias, packing)
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
        rows, scale = embedding.weight.detach().float(), None
        if packing == "int8":
            scale = scale_of(rows)[:, None]
            rows = (rows / scale).round_()
        self.register_buffer("rows", rows.to(torch.int8 if packing == "int8" else torch.bfloat16))
        self.register_buffer("scale", scale)  # (n, 1)

    @property
    def weight(self) -> Tensor:
        """(n, C) float32."""
        return self.rows.float() if self.scale is None else self.rows * self.scale

    def forward(self, x: Tensor) -> Tensor:
        rows = F.embedding(x, self.rows)
        return rows.float() if self.scale is None else rows * F.embedding(x, self.scale)


def scale_of(weight: Tensor) -> Tensor:
    """(n, in) -> (n,): what each row is divided by so that its largest number is 127."""
    return weight.abs().amax(dim=1).clamp(min=1e-12) / 127


def pack(model: nn.Module, packing: Packing) -> None:
    """Put every matrix of a model, in place, into a reduced precision; it can only read afterwards.

    Raises ValueError where this computer has no kernels for it.
    """
    check_packing(packing)
    exact = packing == "fp32"
    rows = {child.weight: child for child in model.modules() if isinstance(child, nn.Embedding) and exact}
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, PackedLinear(child, packing, rows.get(child.weight)))
            elif isinstance(child, nn.Embedding) and not exact:
                setattr(module, name, PackedEmbedding(child, packing))


def check_packing(packing: Packing) -> None:
    """Raise ValueError where this computer has no kernels for a precision."""
    if not torch.backends.mkldnn.is_available():
        raise ValueError(f"precision {packing} needs oneDNN, which this build of torch does not have: choose fp32")
    if packing == "int8" and not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        raise ValueError("precision int8 needs an x86 CPU: choose fp32 or bf16")


def has_vnni() -> bool:
    """Whether this CPU adds products of bytes in 32 bits."""
    known = getattr(torch.cpu, "_is_vnni_supported", None)
    return bool(known()) if known else False
