"""ZeroGPU: Hugging Face Spaces that lend a GPU for the length of one call, in a process of its own.

Import this module before torch: the `spaces` package wants to be first. Elsewhere it does nothing.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


def on_zero_gpu() -> bool:
    """Whether this is such a Space, by the variable that `spaces` itself goes by."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


if on_zero_gpu():
    import spaces


def on_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function or generator that runs the model run where the GPU is.

    Arguments and results cross a process border there, so both are plain values: shared models among the
    arguments travel by their name, tensors among the results come back as numpy arrays, here as there.
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
    """A value with every tensor in its lists, tuples and dicts as a numpy array in main memory."""
    if isinstance(value, dict):
        return {key: to_numpy(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(to_numpy, value))
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return value
