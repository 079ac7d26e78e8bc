"""Packed weights for CPU inference.

A decoding step spends most of its time reading weights. 16-bit formats halve the number of bytes, and int8 halves it
again. 16-bit weights are bfloat16 if oneDNN supports it, and float16 on other x86 CPUs. On AMD CPUs, oneDNN's format
for float32 is also up to twice as fast to read as ordinary rows; on Intel CPUs it is slower. Packed weights are
read-only. Small float32 weights are not packed but stored by columns, which AMD CPUs multiply faster. Inputs, outputs
and biases are always float32, so norms, residuals, attention and the cache are not quantised.
"""

from __future__ import annotations

import math
import platform
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.errors import GPTError, require
from gpt.read_only import ReadOnlyTensor, Values

Packing = Literal["fp32", "half", "int8"]
EXPECTED_ROWS = 512  # number of batch rows for which oneDNN optimises the format; smaller batches are no slower
AT_ONCE = 2**22  # elements of an embedding that are in float32 at a time while it is packed
SMALL_WEIGHT = 2**20  # elements (4 MB); up to this size, ordinary float32 weights are as fast as packed ones
CPU_INFO = Path("/proc/cpuinfo")


class PackedMatrix(Values):
    """A weight (out, in) in a packed format. Gradients reach a layer's input and bias.

    A format defines `pack`, which converts a weight, `unpack`, and `product`, a linear layer without gradients:
    (..., rows, in) -> (..., rows, out), float32.
    """

    def __init__(self, weight: Tensor) -> None:
        self.layout = weight.shape, (weight.shape[1], 1), torch.float32, weight.device
        self.packed = self.pack(weight.detach())

    def pack(self, weight: Tensor) -> Any:
        raise NotImplementedError

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        raise NotImplementedError

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Apply a linear layer: (..., in) -> (..., out), float32."""
        if x.dim() == 1:
            return self.linear(x[None], bias)[0]
        if torch.is_grad_enabled() and (x.requires_grad or (bias is not None and bias.requires_grad)):
            y: Tensor = Product.apply(x, self)  # type: ignore[no-untyped-call]
            return y if bias is None else y + bias
        with torch._C.DisableTorchFunctionSubclass():  # looking for __torch_function__ in `packed` takes 8 microseconds
            return self.product(x, bias)


class Product(torch.autograd.Function):
    """Matrix product with a gradient for its input. Unpacks the weight only in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: PackedMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.product(x, None)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient @ ctx.matrix.unpack(), None


class OneDNNMatrix(PackedMatrix):
    """float32 or bfloat16 weights in oneDNN's format. Accumulates in float32."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.dtype = dtype
        super().__init__(weight)

    def pack(self, weight: Tensor) -> Tensor:
        return torch.ops.mkldnn._reorder_linear_weight(weight.to(self.dtype), EXPECTED_ROWS)

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        y = torch.ops.mkldnn._linear_pointwise.default(x.to(self.dtype), self.packed, None, "none", [], "")
        return y.float() if bias is None else y + bias

    def unpack(self) -> Tensor:
        return self.packed.to_dense().float()


class Float16Matrix(PackedMatrix):
    """float16 weights in fbgemm's format, for x86 CPUs without AVX-512, where oneDNN lacks bfloat16."""

    def pack(self, weight: Tensor) -> Any:
        return torch.ops.quantized.linear_prepack_fp16(weight.float(), None)

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        y = torch.ops.quantized.linear_dynamic_fp16(x, self.packed)
        return y if bias is None else y.add_(bias)

    def unpack(self) -> Tensor:
        return torch.ops.quantized.linear_unpack_fp16(self.packed)[0]


class Int8Matrix(PackedMatrix):
    """int8 weights with one scale per output. Quantises inputs to 8 bits with one scale per row.

    torch's dynamic kernel uses one scale for all rows of a call, so a row's result would depend on the other rows.
    Here, each row is divided by its largest magnitude, and the kernel uses the fixed range -1 to 1.
    """

    def pack(self, weight: Tensor) -> Any:
        self.levels = 127 if torch.cpu._is_vnni_supported() else 63  # without VNNI, 16-bit sums would overflow
        self.kernel = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default._op
        return torch.ops.quantized.linear_prepack(weight if weight.is_quantized else quantize_rows(weight), None)

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        if x.numel() == x.shape[-1]:  # the kernel itself can apply the scale of a single row
            scale = max(x.abs().max().item(), 1e-12)
            y = self.kernel(x, scale / self.levels, self.levels + 1, self.packed)
            return y if bias is None else y.add_(bias)
        scales = x.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-12)  # (..., 1)
        y = self.kernel(x / scales, 1 / self.levels, self.levels + 1, self.packed)
        return y * scales if bias is None else torch.addcmul(bias, y, scales)

    def unpack(self) -> Tensor:
        return torch.ops.quantized.linear_unpack(self.packed)[0].dequantize()


class PackedRows(Values):
    """The rows of an embedding (n, C), in 16 bits, or in int8 with one scale per row. Looks them up in float32."""

    def __init__(self, weight: Tensor, packing: Packing) -> None:
        self.layout = weight.shape, (weight.shape[1], 1), torch.float32, weight.device
        self.scale: Tensor | None = None
        self.rows = torch.empty(weight.shape, dtype=torch.int8 if packing == "int8" else half_dtype())
        if packing == "int8":
            self.scale = torch.empty(len(weight), 1)
        n = max(1, AT_ONCE // weight.shape[1])
        for start, rows in zip(range(0, len(weight), n), weight.detach().split(n), strict=True):
            if self.scale is not None:
                rows = quantize_rows(rows)
                self.scale[start : start + n, 0] = rows.q_per_channel_scales()
                rows = rows.int_repr()
            self.rows[start : start + n] = rows

    def quantized(self) -> Tensor:
        """Return the rows in int8 as a quantised tensor."""
        assert self.scale is not None
        zeros = torch.zeros(len(self.rows), dtype=torch.long)
        return torch._make_per_channel_quantized_tensor(self.rows, self.scale[:, 0].double(), zeros, 0)

    def unpack(self) -> Tensor:
        return self.rows.float() if self.scale is None else self.rows * self.scale

    def embedding(self, ids: Tensor) -> Tensor:
        rows = F.embedding(ids, self.rows)
        return rows.float() if self.scale is None else rows * F.embedding(ids, self.scale)


class TiedValues(Values):
    """The weight that an embedding shares with the output head, stored once for each."""

    def __init__(self, rows: Values, matrix: Values) -> None:
        self.rows, self.matrix, self.layout = rows, matrix, matrix.layout

    def unpack(self) -> Tensor:
        return self.rows.unpack()

    def embedding(self, ids: Tensor) -> Tensor:
        return self.rows.embedding(ids)

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        return self.matrix.linear(x, bias)


def pack(model: nn.Module, packing: Packing) -> None:
    """Replace the weight of each nn.Linear and nn.Embedding in a module with a packed, read-only weight.

    Stores small float32 weights by columns, and leaves packed weights as they are. Raises ValueError if this computer
    has no kernels for the packing.
    """
    check_packing(packing)
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Embedding)]
    layers = [layer for layer in layers if not isinstance(layer.weight, ReadOnlyTensor)]
    embeddings = {layer.weight: layer for layer in layers if isinstance(layer, nn.Embedding)}
    for layer in layers:
        if isinstance(layer, nn.Embedding):
            continue
        if packing == "fp32" and layer.weight.numel() <= SMALL_WEIGHT:
            layer.weight.data = layer.weight.detach().t().contiguous().t()
            continue
        if (tied := embeddings.pop(layer.weight, None)) is None:
            layer.weight = ReadOnlyTensor(pack_matrix(layer.weight, packing))
        else:
            packed = None if packing == "fp32" else PackedRows(layer.weight, packing)
            rows, matrix = packed or Values(layer.weight.detach()), pack_matrix(packed or layer.weight, packing)
            layer.weight = tied.weight = ReadOnlyTensor(TiedValues(rows, matrix))
    if packing != "fp32":
        for embedding in embeddings.values():
            embedding.weight = ReadOnlyTensor(PackedRows(embedding.weight, packing))


def pack_matrix(weight: Tensor | PackedRows, packing: Packing) -> Values:
    """Return a weight (out, in) in the fastest format that this computer has for the packing.

    Without a kernel for 16 bits, it is converted to float32 for each product.
    """
    by_fbgemm = packing == "half" and not has_bfloat16()
    if packing == "int8" or (by_fbgemm and half_dtype() is torch.bfloat16):
        # The rows first, because they are quantised a few at a time.
        packed = weight if isinstance(weight, PackedRows) else PackedRows(weight, packing)
        return Int8Matrix(packed.quantized()) if packing == "int8" else packed
    if isinstance(weight, PackedRows):
        rows = weight.rows
    else:
        (rows,) = weight.detach().split(len(weight))  # which reads it, if it is only read when needed
    dtype = torch.bfloat16 if packing == "half" else torch.float32
    return Float16Matrix(rows) if by_fbgemm else OneDNNMatrix(rows, dtype)


def packs_float32() -> bool:
    """Return whether large float32 weights are packed: on AMD CPUs, if oneDNN works."""
    return is_amd() and torch.backends.mkldnn.is_available() and works(OneDNNMatrix, torch.float32)


def is_amd() -> bool:
    try:
        return "AuthenticAMD" in CPU_INFO.read_text()
    except OSError:
        return "AuthenticAMD" in platform.processor()  # Windows


def check_packing(packing: Packing) -> None:
    require(torch.backends.mkldnn.is_available(), "precision.onednn", precision=packing)
    if packing == "int8" and not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        raise GPTError("precision.int8_cpu")
    require(packing != "int8" or works(Int8Matrix), "precision.int8_torch", version=torch.__version__)


@lru_cache
def works(kind: type[PackedMatrix], *arguments: Any) -> bool:
    """Return whether a packed format works on this computer. Tests each format only once.

    The operators are private, so other versions of torch may lack or change them. Warns if the format does not work,
    because the fallback is slower.
    """
    try:
        matrix = kind(torch.eye(8), *arguments)
        found = matrix.product(torch.ones(2, 8), torch.ones(8)) + matrix.unpack()[0].sum()
        reason = "" if torch.allclose(found, torch.full((2, 8), 3.0), atol=0.1) else "wrong result"
    except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
    if reason:
        warnings.warn(f"{kind.__name__} does not work with torch {torch.__version__} ({reason})", stacklevel=2)
    return not reason


def multiplications_per_token(model: nn.Module) -> int:
    """Count the multiplications per token in all linear layers of a model. Excludes attention."""
    layers = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    return sum(layer.in_features * layer.out_features for layer in layers)


def quantize_rows(weight: Tensor) -> Tensor:
    """Quantise rows (n, in) to int8. The scale of each row maps its largest magnitude to 127."""
    weight = weight.float()
    scale = torch.linalg.vector_norm(weight, math.inf, dim=1).clamp(min=1e-12) / 127  # abs() would copy the weight
    with warnings.catch_warnings():  # torch.ao.quantization is deprecated
        warnings.simplefilter("ignore")
        return torch.quantize_per_channel(weight, scale.double(), torch.zeros(len(weight)).long(), 0, torch.qint8)


def half_dtype() -> torch.dtype:
    """Return the 16-bit format for this CPU: float16 if fbgemm supports it and oneDNN lacks bfloat16, else bfloat16."""
    if has_bfloat16() or "fbgemm" not in torch.backends.quantized.supported_engines or not works(Float16Matrix):
        return torch.bfloat16
    return torch.float16


def has_bfloat16() -> bool:
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    return bool(supported()) and works(OneDNNMatrix, torch.bfloat16)
