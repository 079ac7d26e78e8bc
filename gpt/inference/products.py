"""Products with matrices, each in the order and the precision in which this CPU reads it fastest.

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
from gpt.inference.processor import has_vnni, is_intel
from gpt.inference.threads import SMALL, threads_for
from gpt.model import ACTIVATIONS

Packing = Literal["fp32", "bf16", "int8"]
ROWS = 512  # that oneDNN should expect: fewer are as fast; told of few, some releases sum as many in another order
WHOLE = 4  # oneDNN makes, and keeps, a kernel for each number of rows that it meets: so they come by fours
LEAST = 2  # rows of a float32 product: both libraries sum a single row in another order
FEW = 2**20  # numbers of a small matrix
LARGE = 2**23  # numbers of all matrices of a model that a CPU's cache does not hold
TRIED = (LEAST, *range(WHOLE, 33, WHOLE), 48, 64, 128)  # numbers of rows
FROM = (1, LEAST, WHOLE, 16, 64)  # numbers of rows from which on a product may sum in one order

# Activations that oneDNN computes with the product: its names of `gpt.model`'s.
FUSED: dict[Activation, tuple[str, str]] = {
    "gelu_tanh": ("gelu", "tanh"),
    "gelu": ("gelu", "none"),
    "relu": ("relu", ""),
    "silu": ("swish", ""),
}


class Product(nn.Module, ABC):
    """x W^T + b: (B, in) float32 -> (B, out) float32; each row as if it were alone. TorchScript can run it.

    In float32 and in int8 this holds to the bit; in bfloat16 some processors sum in another order the more rows there
    are. least: of how many rows, as fewer would be summed in another order; what is missing is filled up.
    """

    def __init__(self, least: int = 1) -> None:
        super().__init__()
        self.least = least

    @abstractmethod
    def dense(self) -> Tensor:
        """W as it is used, (out, in) float32."""

    @abstractmethod
    def of(self, x: Tensor) -> Tensor:
        """The product with at least `least` rows."""

    @torch.jit.export
    def of_added(self, x: Tensor, to: Tensor) -> Tensor:
        """to + that."""
        return to + self.of(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.of(x) if len(x) >= self.least else self.of(filled(x, self.least))[: len(x)]

    @torch.jit.export
    def added(self, x: Tensor, to: Tensor) -> Tensor:
        """to + the product."""
        if len(x) >= self.least:
            return self.of_added(x, to)
        return self.of_added(filled(x, self.least), filled(to, self.least))[: len(x)]


def filled(x: Tensor, rows: int) -> Tensor:
    """x (B, n) -> (rows, n)"""
    return F.pad(x, (0, 0, 0, rows - len(x)))


class Rows(Product):
    """The plain product, where there is nothing better: weights row by row."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()

    def of(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def dense(self) -> Tensor:
        return self.weight


class Columns(Product):
    """Small weights column by column: a product with them is done before one of oneDNN's begins."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__(LEAST)
        self.columns, self.bias = weight.detach().T.contiguous(), None if bias is None else bias.detach()

    def of(self, x: Tensor) -> Tensor:
        y = x.mm(self.columns)
        return y if self.bias is None else y.add_(self.bias)

    @torch.jit.export
    def of_added(self, x: Tensor, to: Tensor) -> Tensor:
        return self.of(x).add_(to)

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


@cache
def least_of(inputs: int, outputs: int) -> int:
    """From how many rows on `Blocks` of a size give each the same bits, however many there are.

    One row alone is worth it on some processors only, see `Decoder`.
    """
    generator = torch.Generator().manual_seed(0)
    some = torch.randn(min(outputs, 1024), inputs, generator=generator)
    packed = torch.ops.mkldnn._reorder_linear_weight(some.repeat(-(-outputs // len(some)), 1)[:outputs], ROWS)
    x = torch.randn(FROM[-1], inputs, generator=generator)

    def products(count: int) -> list[Tensor]:
        found = []
        for work in (0, SMALL):
            with threads_for(work):
                found.append(torch.ops.mkldnn._linear_pointwise(x[:count], packed, None, "none", [], ""))
        return found

    whole = products(FROM[-1])[0]
    for count in FROM[0 if is_intel() else 1 : -1]:  # not all: oneDNN keeps what it makes for each number of rows
        if all(torch.equal(y, whole[:count]) for y in products(count)):
            return count
    return FROM[-1]


class Blocks(Product):
    """Weights in oneDNN's order; in bfloat16 the products are summed in float32 and rounded once at the end."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        exact = dtype is torch.float32
        super().__init__(least_of(*weight.T.shape) if exact else 1)
        self.dtype, self.exact = dtype, exact  # even a conversion to the same takes its time
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype), ROWS)
        self.bias = None if bias is None else bias.detach().to(dtype)

    def of(self, x: Tensor) -> Tensor:
        x = x if self.exact else x.to(self.dtype)
        y = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return y if self.exact else y.float()

    @torch.jit.export
    def of_added(self, x: Tensor, to: Tensor) -> Tensor:
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
        self.least = product.least

    def of(self, x: Tensor) -> Tensor:
        x = x if self.exact else x.to(self.dtype)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, self.name, [], self.algorithm)

    def forward(self, x: Tensor) -> Tensor:
        return self.of(x) if len(x) >= self.least else self.of(filled(x, self.least))[: len(x)]


class Bytes(Product):
    """Weights as int8 with a scale for each output; activations as 8 bits with a scale for each row.

    A kernel that measures its input takes one range for all rows of a call, which would let one text change another's
    numbers. So each row is divided by its largest magnitude, and the kernel is told that all lie in -1..1. A row of
    zeros becomes NaN, which the kernel rounds to some number, and zero times that is added to the bias.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.packed = torch.ops.quantized.linear_prepack(in_bytes(weight.detach().float()), None)
        self.bias = torch.zeros(len(weight)) if bias is None else bias.detach().float()
        self.levels = 127 if has_vnni() else 63  # older CPUs add 16-bit sums: one bit less, or they would overflow

    def of(self, x: Tensor) -> Tensor:
        size = x.abs().amax(dim=-1, keepdim=True)  # (B, 1)
        y = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / size, 1 / self.levels, self.levels + 1, self.packed
        )
        return torch.addcmul(self.bias, y, size)

    def dense(self) -> Tensor:
        return torch.ops.quantized.linear_unpack(self.packed)[0].dequantize()

    def __reduce__(self) -> tuple[Any, ...]:
        return Bytes, (self.dense(), self.bias)


def in_bytes(weight: Tensor) -> Tensor:
    """(n, in) float32 -> the same quantised: int8, with a scale for each row by which its largest number is 127."""
    scale = weight.abs().amax(dim=1).clamp(min=1e-12) / 127
    zero = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():  # eager quantisation moves to another package one day
        warnings.simplefilter("ignore")
        return torch.quantize_per_channel(weight, scale.double(), zero, 0, torch.qint8)


def product(weight: Tensor, bias: Tensor | None, packing: Packing, large: bool = False) -> Product:
    """The fastest product there is for a matrix, (out, in), and its bias; on the CPU packed, elsewhere plain rows.

    large: whether the model that it is part of is, see LARGE.
    """
    if weight.device.type != "cpu" or weight.dtype is not torch.float32 or not torch.backends.mkldnn.is_available():
        return Rows(weight, bias)
    if packing == "int8":
        return Bytes(weight, bias)
    if packing == "bf16":
        return Blocks(weight, bias, torch.bfloat16)
    small = not large and weight.numel() <= FEW and torch.backends.mkl.is_available()
    return Columns(weight, bias) if small and alike(*weight.T.shape) else Blocks(weight, bias, torch.float32)


def activated(product: Product, activation: Activation) -> nn.Module:
    """The activation of a product, computed with it where that can be."""
    if isinstance(product, Blocks):
        return Fused(product, activation)
    return nn.Sequential(product, ACTIVATIONS[activation])


def unused_rows(count: int) -> int:
    """How many rows are to be added, so that they come by fours: one and two go as they are."""
    return -count % WHOLE if count > LEAST else 0


def matrix_numbers(model: nn.Module) -> int:
    """How many numbers the matrices of a model hold: as many multiplications a token costs, besides attention."""
    sizes = ((linear.in_features, linear.out_features) for linear in model.modules() if hasattr(linear, "out_features"))
    return sum(rows * columns for rows, columns in sizes)


def pass_work(size: int, rows: int) -> int:
    """What `threads_for` is told of a pass of some rows through a model of `matrix_numbers` size.

    Large weights reach two processors sooner than one, however little is multiplied with them.
    """
    return max(size * rows, SMALL) if size >= LARGE else size * rows
