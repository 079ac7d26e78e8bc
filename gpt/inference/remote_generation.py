"""Writing on a GPU that is lent for the length of one call (ZeroGPU): the document stays here, the model runs there.

Looking at a document must not wait for a GPU, so each shared model stays on the CPU, with a twin for the calls. Such a
Space wants its default model on "cuda" when it starts; there the twin is made as soon as a model is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

from gpt.edits import Edits
from gpt.inference.zero_gpu import on_gpu
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams

if TYPE_CHECKING:
    from gpt.generate import Step

DEVICE = "cuda"
_twins: WeakKeyDictionary[GPT, GPT] = WeakKeyDictionary()


def twin(loaded: LoadedModel) -> LoadedModel:
    """The same model on the GPU; made once."""
    if loaded.model not in _twins:
        _twins[loaded.model] = deepcopy(loaded.model).to(DEVICE)
    return replace(loaded, model=_twins[loaded.model], device=torch.device(DEVICE))


@on_gpu
def lent_steps(
    loaded: LoadedModel, ids: list[int], edits: Edits | None, params: SamplingParams, max_new_tokens: int
) -> Iterator[tuple[Step, int, tuple[torch.Tensor, ...]]]:
    """One call: each step, the first position read with it, and all that was kept of the positions from there on."""
    from gpt.generate import Generation

    there = Generation(twin(loaded), ids, edits=edits)
    for step in there.steps_here(params, max_new_tokens):
        start = 0 if there.n_read <= len(ids) else there.n_read - 1  # the text so far, then one position a step
        yield step, start, there.rows(start)
