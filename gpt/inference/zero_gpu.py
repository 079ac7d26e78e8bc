"""ZeroGPU: Hugging Face Spaces that provide a GPU to single function calls, in a separate process.

Import this module before torch, as the `spaces` package requires. Outside of ZeroGPU it has no effect.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


def on_zero_gpu() -> bool:
    """Return whether this process runs on ZeroGPU, by the environment variable that `spaces` reads."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


if on_zero_gpu():
    import spaces


def on_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: run a function or generator function with a GPU on ZeroGPU, in this process elsewhere.

    Arguments and results are pickled on ZeroGPU, shared models by their name. Tensors among the results are returned
    as numpy arrays everywhere.
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
    """Return a value with every tensor in its lists, tuples and dicts as a numpy array in main memory."""
    if isinstance(value, dict):
        return {key: to_numpy(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(to_numpy, value))
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return value
