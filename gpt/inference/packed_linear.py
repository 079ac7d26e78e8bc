"""Linear layers for CPU inference with packed weights.

A decoding step spends most of its time reading weights. oneDNN's packed format is about twice as fast to read as
row-major weights; 16-bit formats halve the number of bytes, and int8 halves it again. 16-bit weights are bfloat16 if
oneDNN supports it, and float16 on other x86 CPUs. Inputs and outputs are always float32, so norms, residuals, attention
and the cache are not quantised.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

from gpt.errors import GPTError

Packing = Literal["fp32", "half", "int8"]
EXPECTED_ROWS = 512  # number of batch rows for which oneDNN optimises the format; smaller batches are no slower
MAX_BFLOAT16_ROWS = 32  # for more batch rows, torch's bfloat16 product is slower than float32
SMALL_WEIGHT = 2**18  # elements (1 MB); up to this size F.linear is faster than oneDNN for a single row


class PackedWeight(Tensor):
    """Placeholder parameter for a packed layer's weight.

    It has a shape and a dtype but occupies no memory: every computation unpacks the weight. It cannot be changed in
    place.
    """

    unpack: Callable[[], Tensor]
    _is_param = True  # makes isinstance(weight, nn.Parameter) true

    @staticmethod
    def __new__(cls, unpack: Callable[[], Tensor], shape: torch.Size) -> PackedWeight:
        made = Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)
        made.unpack = unpack
        return made

    def __init__(self, unpack: Callable[[], Tensor], shape: torch.Size) -> None:
        super().__init__()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"PackedWeight({self.unpack()!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function._schema.is_mutable:
            raise GPTError(
                "model.read_only",
                "packed weights cannot be changed: load the model with load_model(..., trainable=True), or use Edits "
                "to change a single pass",
            )
        args, kwargs = tree_map_only(PackedWeight, lambda weight: weight.unpack(), (args, kwargs or {}))
        return function(*args, **kwargs)


class PackedLayer(nn.Module, ABC):
    """A layer with a packed weight. It ignores conversions to another device or dtype."""

    @abstractmethod
    def unpack(self) -> Tensor:
        """Return the effective weight: (out, in), float32."""

    @property
    def weight(self) -> Tensor:
        """Weight (out, in) in float32, unpacked on every access."""
        return self.unpack()

    @property
    @abstractmethod
    def weight_shape(self) -> torch.Size:
        """Shape of the weight, (out, in), available without unpacking it."""

    def list_weight(self) -> None:
        """Make the weight appear in `parameters()`."""
        holder = object.__new__(type(self))  # copy without a reference back to the parameter
        holder.__dict__.update(self.__dict__, _parameters={})
        self._parameters["weight"] = PackedWeight(holder.unpack, self.weight_shape)  # type: ignore[assignment]

    def _apply(self, *_: Any, **__: Any) -> PackedLayer:
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination[f"{prefix}weight"] = self.weight.detach()
        if (bias := self._parameters.get("bias")) is not None:
            destination[f"{prefix}bias"] = bias.detach()


class PackedLinear(PackedLayer):
    """nn.Linear with a packed weight, for inference. Computes gradients only for its input.

    embedding: the embedding that shares its weight with this layer (a tied head), or None.
    """

    def __init__(self, linear: nn.Linear, embedding: nn.Embedding | PackedEmbedding | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        self._embedding = (embedding,)  # the tuple prevents registration as a submodule

    @abstractmethod
    def product(self, x: Tensor) -> Tensor:
        """Apply the layer: (B, in) -> (B, out)."""

    @property
    def weight(self) -> Tensor:
        """Weight (out, in) in float32, unpacked on every access unless the layer is tied."""
        (embedding,) = self._embedding
        return self.unpack() if embedding is None else embedding.weight

    def list_weight(self) -> None:
        if self._embedding == (None,):  # a tied weight is listed by the embedding instead
            super().list_weight()

    @property
    def weight_shape(self) -> torch.Size:
        return torch.Size((self.out_features, self.in_features))

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 2:
            return self(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.out_features)
        if torch.is_grad_enabled() and x.requires_grad:
            return PackedLinearFunction.apply(x, self)  # type: ignore[no-untyped-call]
        return self.product(x)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedLinear:
        return self  # immutable


class PackedLinearFunction(torch.autograd.Function):
    """Matrix product with a gradient for its input. Unpacks the weight only in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, linear: PackedLinear) -> Tensor:
        ctx.linear = linear
        return linear.product(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient @ ctx.linear.weight, None


class OneDNNLinear(PackedLinear):
    """A layer with float32 or bfloat16 weights in oneDNN's format. Accumulates in float32."""

    def __init__(
        self, linear: nn.Linear, dtype: torch.dtype, embedding: nn.Embedding | PackedEmbedding | None = None
    ) -> None:
        super().__init__(linear, embedding)
        weight = linear.weight.detach()
        self.dtype = dtype
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype), EXPECTED_ROWS)
        self.packed_bias = None if linear.bias is None else linear.bias.detach().to(dtype)
        self.plain = weight if dtype is torch.float32 and weight.numel() <= SMALL_WEIGHT else None

    def product(self, x: Tensor) -> Tensor:
        n = x.shape[0]  # faster than len(x)
        if n == 1 and self.plain is not None:
            return F.linear(x, self.plain, self.packed_bias)
        y = torch.ops.mkldnn._linear_pointwise.default(x.to(self.dtype), self.packed, self.packed_bias, "none", [], "")
        return y.float()

    def unpack(self) -> Tensor:
        return self.packed.to_dense().float() if self.plain is None else self.plain

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (OneDNNLinear, self.unpack(), self.bias, self.dtype)


class Float16Linear(PackedLinear):
    """A layer with float16 weights in fbgemm's format, for x86 CPUs without AVX-512, where oneDNN lacks bfloat16.

    Takes float32 inputs and accumulates in float32.
    """

    def __init__(self, linear: nn.Linear, embedding: nn.Embedding | PackedEmbedding | None = None) -> None:
        super().__init__(linear, embedding)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self.packed = torch.ops.quantized.linear_prepack_fp16(linear.weight.detach().float(), bias)

    def product(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic_fp16(x, self.packed)

    def unpack(self) -> Tensor:
        return torch.ops.quantized.linear_unpack_fp16(self.packed)[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (Float16Linear, self.unpack(), self.bias)


class BFloat16Linear(PackedLinear):
    """A layer with row-major bfloat16 weights, for CPUs that support neither packed 16-bit format."""

    def __init__(self, linear: nn.Linear, embedding: nn.Embedding | PackedEmbedding | None = None) -> None:
        super().__init__(linear, embedding)
        self.packed = linear.weight.detach().bfloat16()
        self.packed_bias = None if linear.bias is None else linear.bias.detach().bfloat16()

    def product(self, x: Tensor) -> Tensor:
        if len(x) <= MAX_BFLOAT16_ROWS:
            return F.linear(x.bfloat16(), self.packed, self.packed_bias).float()
        return F.linear(x, self.unpack(), None if self.packed_bias is None else self.packed_bias.float())

    def unpack(self) -> Tensor:
        return self.packed.float()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (BFloat16Linear, self.unpack(), self.bias)


class Int8Linear(PackedLinear):
    """A layer with int8 weights and one scale per output. Quantises inputs to 8 bits with one scale per row.

    torch's dynamic kernel uses one scale for all rows of a call, so a row's result would depend on the other rows.
    Here, each row is divided by its largest magnitude, and the kernel uses the fixed range -1 to 1.
    """

    def __init__(self, linear: nn.Linear, embedding: nn.Embedding | PackedEmbedding | None = None) -> None:
        super().__init__(linear, embedding)
        self.packed = torch.ops.quantized.linear_prepack(quantize_rows(linear.weight.detach().float()), None)
        self.packed_bias = torch.zeros(self.out_features) if linear.bias is None else linear.bias.detach().float()
        self.levels = 127 if has_vnni() else 63  # without VNNI, 16-bit sums would overflow

    def product(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-12)  # (B, 1)
        y = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x / scale, 1 / self.levels, self.levels + 1, self.packed
        )
        return torch.addcmul(self.packed_bias, y, scale)

    def unpack(self) -> Tensor:
        return torch.ops.quantized.linear_unpack(self.packed)[0].dequantize()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (Int8Linear, self.unpack(), self.bias)


class PackedEmbedding(PackedLayer):
    """nn.Embedding with 16-bit rows, or with int8 rows and one scale per row. Returns float32."""

    rows: Tensor  # (n, C)
    scale: Tensor | None  # (n, 1)

    def __init__(self, embedding: nn.Embedding, packing: Packing) -> None:
        super().__init__()
        rows, scale = embedding.weight.detach(), None
        if packing == "int8":
            quantized = quantize_rows(rows.float())  # gives the same values as packing a tied head
            rows, scale = quantized.int_repr(), quantized.q_per_channel_scales().float()[:, None]
        self.register_buffer("rows", rows if packing == "int8" else rows.to(half_dtype()))
        self.register_buffer("scale", scale)

    def unpack(self) -> Tensor:
        return self.rows.float() if self.scale is None else self.rows * self.scale

    @property
    def weight_shape(self) -> torch.Size:
        return self.rows.shape

    def forward(self, ids: Tensor) -> Tensor:
        rows = F.embedding(ids, self.rows)
        return rows.float() if self.scale is None else rows * F.embedding(ids, self.scale)


def pack(model: nn.Module, packing: Packing) -> None:
    """Replace each nn.Linear and nn.Embedding in a module with its packed form.

    Leaves packed layers unchanged. Raises ValueError if this computer has no kernels for the packing.
    """
    check_packing(packing)
    kinds = (nn.Embedding, nn.Linear)
    children = [(m, name) for m in model.modules() for name, child in m.named_children() if isinstance(child, kinds)]
    embeddings: dict[Tensor, nn.Embedding | PackedEmbedding] = {}
    for module, name in children:  # a list of the layers would keep them all in memory
        layer = getattr(module, name)
        if isinstance(layer, nn.Linear):
            setattr(module, name, pack_linear(layer, packing, embeddings.get(layer.weight)))
        else:
            embeddings[layer.weight] = layer if packing == "fp32" else PackedEmbedding(layer, packing)
            setattr(module, name, embeddings[layer.weight])


def freeze(model: nn.Module) -> None:
    """Disable gradients for a packed model, and include the packed weights in its parameters."""
    model.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, PackedLayer):
            module.list_weight()


def pack_linear(
    linear: nn.Linear, packing: Packing, embedding: nn.Embedding | PackedEmbedding | None = None
) -> PackedLinear:
    """Return the packed form of a layer (see `PackedLinear`)."""
    if packing == "int8":
        return Int8Linear(linear, embedding)
    if packing == "half" and not has_bfloat16():
        return (Float16Linear if half_dtype() is torch.float16 else BFloat16Linear)(linear, embedding)
    return OneDNNLinear(linear, torch.bfloat16 if packing == "half" else torch.float32, embedding)


def check_packing(packing: Packing) -> None:
    """Raise ValueError if this computer has no kernels for a packing."""
    if not torch.backends.mkldnn.is_available():
        raise GPTError(
            "precision.onednn",
            "precision {precision} needs oneDNN, which this build of torch lacks: choose fp32",
            precision=packing,
        )
    if packing == "int8" and not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        raise GPTError("precision.int8_cpu", "precision int8 needs an x86 CPU: choose fp32 or half")
    if packing == "int8" and not works(Int8Linear):
        raise GPTError(
            "precision.int8_torch",
            "torch {version} lacks the operators for precision int8: choose fp32 or half",
            version=torch.__version__,
        )


def has_float32() -> bool:
    """Return whether oneDNN supports packed float32 matrices on this CPU; if not, layers remain nn.Linear."""
    return torch.backends.mkldnn.is_available() and works(OneDNNLinear, torch.float32)


@lru_cache
def works(kind: type[PackedLinear], *arguments: Any) -> bool:
    """Return whether a kind of packed layer works on this computer. Tests each kind only once.

    The operators are private, so other versions of torch may lack or change them. Warns if the layer does not work,
    because the fallback is slower.
    """
    try:
        layer = _rebuild(kind, torch.eye(8), torch.ones(8), *arguments)
        found = layer.product(torch.ones(2, 8)) + layer.unpack()[0].sum()
        reason = "" if torch.allclose(found, torch.full((2, 8), 3.0), atol=0.1) else "wrong result"
    except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
    if reason:
        warnings.warn(f"{kind.__name__} does not work with torch {torch.__version__} ({reason})", stacklevel=2)
    return not reason


def multiplications_per_token(model: nn.Module) -> int:
    """Count the multiplications per token in all linear layers of a model, packed or not. Excludes attention."""
    layers = (layer for layer in model.modules() if isinstance(layer, nn.Linear | PackedLinear))
    return sum(layer.in_features * layer.out_features for layer in layers)


def quantize_rows(weight: Tensor) -> Tensor:
    """Quantise float32 rows (n, in) to int8. The scale of each row maps its largest magnitude to 127."""
    scale = torch.linalg.vector_norm(weight, math.inf, dim=1).clamp(min=1e-12) / 127  # abs() would copy the weight
    with warnings.catch_warnings():  # torch.ao.quantization is deprecated
        warnings.simplefilter("ignore")
        return torch.quantize_per_channel(weight, scale.double(), torch.zeros(len(weight)).long(), 0, torch.qint8)


def half_dtype() -> torch.dtype:
    """Return the 16-bit format for this CPU: float16 if fbgemm supports it and oneDNN lacks bfloat16, else bfloat16."""
    if has_bfloat16() or "fbgemm" not in torch.backends.quantized.supported_engines or not works(Float16Linear):
        return torch.bfloat16
    return torch.float16


def has_bfloat16() -> bool:
    """Return whether oneDNN supports bfloat16 on this CPU."""
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    return bool(supported()) and works(OneDNNLinear, torch.bfloat16)


def has_vnni() -> bool:
    """Return whether this CPU has VNNI, which accumulates 8-bit products in 32-bit integers."""
    known = getattr(torch.cpu, "_is_vnni_supported", None)
    return bool(known()) if known else False


def _rebuild(kind: type[PackedLinear], weight: Tensor, bias: Tensor | None, *arguments: Any) -> PackedLinear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return kind(linear, *arguments)
