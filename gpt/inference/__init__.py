"""Inference for many users at once: engine, admission queue, packed weights; and ZeroGPU.

ZeroGPU lends a GPU on Hugging Face Spaces to individual function calls in a separate process. Import this package
before torch, as the `spaces` package requires. Outside ZeroGPU, that has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def on_zero_gpu() -> bool:
    """Return whether this process runs on ZeroGPU, according to the environment variable that `spaces` reads."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


if on_zero_gpu():
    import spaces


def on_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function or generator function to run with a GPU on ZeroGPU, and in this process elsewhere.

    On ZeroGPU, arguments and results are pickled, shared models by name. They must not contain tensors.
    """
    return spaces.GPU(function) if on_zero_gpu() else function
