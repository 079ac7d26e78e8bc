"""Read-only weights: tensors that can be read and computed with, but refuse to be changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import TensorBase
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map_only

from gpt.errors import GPTError, require


class Values:
    """The values of a `ReadOnlyTensor`, stored in an ordinary tensor. Subclasses store them in other formats."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.layout = tensor.shape, tensor.stride(), tensor.dtype, tensor.device

    def unpack(self) -> Tensor:
        """Return the values as an ordinary tensor, which the caller must not change."""
        return self.tensor

    def linear(self, x: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(x, self.unpack(), bias)

    def embedding(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.unpack())


class ReadOnlyTensor(Tensor):
    """A tensor whose values may be stored in a format of their own. Raises ValueError on any attempt to change it.

    Computations unpack the values, except for F.linear and F.embedding, which use the methods of `Values`. Views, such
    as a row, are read-only too. Can be a parameter of a module. A copy, or a pickled and restored tensor, is ordinary.
    """

    stored: Values
    _is_param = True  # makes isinstance(weight, nn.Parameter) true

    @staticmethod
    def __new__(cls, values: Values) -> ReadOnlyTensor:
        shape, strides, dtype, device = values.layout
        with torch.inference_mode(False):  # views of an ordinary tensor must be ordinary
            made = Tensor._make_wrapper_subclass(cls, shape, strides=strides, dtype=dtype, device=device)
        made.stored = values
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"ReadOnlyTensor({self.stored.unpack()!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> ReadOnlyTensor:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return nn.Parameter(self.stored.unpack(), requires_grad=False).__reduce_ex__(protocol)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Handle functions that need a format's own methods, or that torch would not pass to `__torch_dispatch__`."""
        with torch._C.DisableTorchFunctionSubclass():
            return FUNCTIONS.get(function, function)(*args, **kwargs or {})

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run any other operation on the unpacked values, unless it would change them."""
        schema, kwargs = function._schema, dict(kwargs or {})
        if schema.is_mutable:
            given = dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | kwargs
            written = [
                given.get(each.name) for each in schema.arguments if each.alias_info and each.alias_info.is_write
            ]
            require(not any(isinstance(each, ReadOnlyTensor) for each in tree_leaves(written)), "model.read_only")
        given_args, given_kwargs = tree_map_only(ReadOnlyTensor, ordinary, (args, kwargs))
        result = function(*given_args, **given_kwargs)
        if not (isinstance(args[0], ReadOnlyTensor) and any(each.alias_info for each in schema.returns)):
            return result
        return tree_map_only(
            Tensor, lambda view: args[0] if view is given_args[0] else ReadOnlyTensor(Values(view)), result
        )


def ordinary(tensor: Tensor) -> Tensor:
    """Return a tensor's values as an ordinary tensor, which the caller must not change."""
    return tensor.stored.unpack() if isinstance(tensor, ReadOnlyTensor) else tensor


def freeze(model: nn.Module) -> None:
    frozen: dict[Tensor, ReadOnlyTensor] = {}  # tied weights stay tied
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            if not isinstance(parameter, ReadOnlyTensor):
                setattr(module, name, frozen.setdefault(parameter, ReadOnlyTensor(Values(parameter.detach()))))


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    x, bias = ordinary(x), None if bias is None else ordinary(bias)
    return weight.stored.linear(x, bias) if isinstance(weight, ReadOnlyTensor) else F.linear(x, weight, bias)


def _reader(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that reads the memory of the unpacked values. A NumPy array becomes read-only."""

    def read(tensor: ReadOnlyTensor, *args: Any, **kwargs: Any) -> Any:
        found = function(tensor.stored.unpack(), *args, **kwargs)
        if hasattr(found, "setflags"):
            found.setflags(write=False)
        return found

    return read


def _set(tensor: Tensor, value: object = True, *, requires_grad: bool = True) -> Tensor:
    """Accept only what changes nothing: the tensor itself as its data, or no gradient."""
    require(value is tensor or value is False or not requires_grad, "model.read_only")
    return tensor


def _refuse(*_: Any, **__: Any) -> Any:
    raise GPTError("model.read_only")


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    F.linear: _linear,
    F.embedding: lambda ids, weight, *_, **__: weight.stored.embedding(ids),
    **{function: _reader(function) for function in (Tensor.numpy, Tensor.__array__, Tensor.tolist)},
    **dict.fromkeys((Tensor.data_ptr, Tensor.__dlpack__, Tensor.share_memory_), _refuse),  # they give away the memory
    Tensor.requires_grad_: _set,
    vars(TensorBase)["data"].__set__: _set,
    vars(TensorBase)["requires_grad"].__set__: _set,
}
