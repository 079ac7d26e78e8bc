"""A model's shapes without its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gpt.config import GPTConfig
from gpt.model import GPT


class _Unset(TorchFunctionMode):
    """Leaves parameters as they are made: filling those that have no memory makes torch import for a second."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else None
        return func(*args, **(kwargs or {}))


@contextmanager
def shapes_only() -> Iterator[None]:
    """What is made inside stands on the meta device: every shape is there, no memory is taken, whatever the size."""
    with torch.device("meta"), _Unset():
        yield


def meta_model(config: GPTConfig) -> GPT:
    """A model of `shapes_only`."""
    with shapes_only():
        return GPT(config)
