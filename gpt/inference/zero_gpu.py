"""Support for ZeroGPU, which lends a GPU on Hugging Face Spaces to individual function calls in a separate process.

Import this module before torch, as the `spaces` package requires. Outside ZeroGPU it does nothing.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


def on_zero_gpu() -> bool:
    """Return whether this process runs on ZeroGPU, according to the environment variable that `spaces` reads."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


if on_zero_gpu():
    import spaces


def on_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function or generator function to run with a GPU on ZeroGPU, and in this process elsewhere.

    On ZeroGPU, arguments and results are pickled; shared models are pickled by name. Either way, tensors in the
    results become NumPy arrays.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        return to_numpy(function(*args, **kwargs))

    @functools.wraps(function)
    def stream(*args: object, **kwargs: object) -> Iterator[object]:
        for item in function(*args, **kwargs):
            yield to_numpy(item)

    wrapped = stream if inspect.isgeneratorfunction(function) else call
    return spaces.GPU(wrapped) if on_zero_gpu() else wrapped


def to_numpy(value: Any) -> Any:
    """Convert all tensors in nested lists, tuples and dicts to NumPy arrays in main memory."""
    if isinstance(value, dict):
        return {key: to_numpy(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(to_numpy, value))
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return value
