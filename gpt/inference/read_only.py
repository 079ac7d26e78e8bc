"""Weights that refuse to be changed: those of packed layers are stored in another form, which would not follow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from gpt.errors import GPTError


class ReadOnlyParameter(nn.Parameter):
    """A parameter whose methods that change it raise ValueError. In computations it is an ordinary parameter."""

    def __new__(cls, data: Tensor) -> ReadOnlyParameter:
        return super().__new__(cls, data.detach(), requires_grad=False)

    @property
    def data(self) -> ReadOnlyParameter:
        return self

    @data.setter
    def data(self, value: Tensor) -> None:
        if value.data_ptr() != self.data_ptr() or value.dtype != self.dtype:  # else model.float() that changes nothing
            refuse()

    def requires_grad_(self, requires_grad: bool = True) -> ReadOnlyParameter:
        if requires_grad:
            refuse()
        return self

    def __getitem__(self, index: Any) -> Tensor:
        return ReadOnlyParameter(super().__getitem__(index))

    def __deepcopy__(self, memo: dict[int, Any]) -> ReadOnlyParameter:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return ReadOnlyParameter, (self.detach(),)


def refuse(*_: object, **__: object) -> None:
    """Raise the error for a change of a read-only weight."""
    raise GPTError("model.read_only")


for _name in dir(Tensor):
    _in_place = _name.endswith("_") and not _name.startswith("_") and _name not in ("requires_grad_", "is_shared_")
    if _in_place or _name == "__setitem__" or (_name.startswith("__i") and hasattr(Tensor, f"__{_name[3:]}")):
        setattr(ReadOnlyParameter, _name, refuse)


class PackedWeight(Tensor):
    """The weight of a packed layer as a parameter: it has shape and type, and is unpacked by every computation.

    It takes no memory of its own; changing it raises ValueError.
    """

    unpack: Callable[[], Tensor]
    _is_param = True  # isinstance(weight, nn.Parameter)

    @staticmethod
    def __new__(cls, unpack: Callable[[], Tensor], shape: torch.Size) -> PackedWeight:
        made = Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)
        made.unpack = unpack
        return made

    def __init__(self, unpack: Callable[[], Tensor], shape: torch.Size) -> None:
        super().__init__()

    @property
    def data(self) -> PackedWeight:  # type: ignore[override]
        return self

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"PackedWeight({self.unpack()!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function._schema.is_mutable:
            refuse()
        args, kwargs = tree_map_only(PackedWeight, lambda weight: weight.unpack(), (args, kwargs or {}))
        return function(*args, **kwargs)


class ReadOnlyModule(nn.Module):
    """A layer with a weight that cannot be changed, trained or moved."""

    weight: Tensor

    @abstractmethod
    def unpack(self) -> Tensor:
        """(out, in) float32: the weight as it is used."""

    @property
    @abstractmethod
    def weight_shape(self) -> torch.Size:
        """(out, in), without unpacking."""

    def train(self, mode: bool = True) -> ReadOnlyModule:
        if mode:
            raise GPTError("model.packed_train")
        return self

    def list_weight(self, weight: Tensor | None) -> None:
        """Make the weight one of `parameters()`; that of another layer if it is shared."""
        holder = object.__new__(type(self))  # has what unpack needs, and no reference back to the parameter
        holder.__dict__.update(self.__dict__, _parameters={})
        self._parameters["weight"] = PackedWeight(holder.unpack, self.weight_shape) if weight is None else weight  # type: ignore[assignment]

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Add a parameter. Raises ValueError for another one in place of a listed weight, which would not be used."""
        if name in self._parameters:
            refuse()
        super().register_parameter(name, param)

    def _apply(self, *_: Any, **__: Any) -> ReadOnlyModule:
        return self

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        if any(name.startswith(prefix) for name in state_dict):
            refuse()

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination[f"{prefix}weight"] = self.weight.detach()
        if (bias := self._parameters.get("bias")) is not None:
            destination[f"{prefix}bias"] = bias.detach()
