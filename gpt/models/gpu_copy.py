"""A copy of a shared model on the GPU that ZeroGPU provides during one call.

The shared model stays on the CPU, where a document is inspected without waiting for a GPU. The copy is made when the
model is loaded, because a Space must place its models on "cuda" at start-up.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch

from gpt.model import GPT
from gpt.models.loading import LoadedModel

DEVICE = "cuda"
_copies: WeakKeyDictionary[GPT, GPT] = WeakKeyDictionary()


def gpu_copy(loaded: LoadedModel) -> LoadedModel:
    """The same model on DEVICE, copied on the first call."""
    if loaded.model not in _copies:
        _copies[loaded.model] = deepcopy(loaded.model).to(DEVICE)
    return replace(loaded, model=_copies[loaded.model], device=torch.device(DEVICE))
