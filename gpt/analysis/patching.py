"""Activation patching: put one activation of a clean run into a corrupted run and see how much of the answer returns.

Sources: Meng et al., "Locating and Editing Factual Associations in GPT" (2022), arXiv 2202.05262; Wang et al.,
"Interpretability in the Wild" (2022), arXiv 2211.00593.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.analysis import BATCH_TOKENS, Progress, check_token, only_text, states_from, trace_text, widened
from gpt.edits import Edits, Patch, check_patchable
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class PatchSweep:
    """recovered: (n_layer, T), the logit difference with one layer and position patched, 0 as corrupted, 1 as clean.

    clean, corrupted: logit of the answer less logit of the other token after the last position of either text.
    """

    recovered: Tensor
    clean: float
    corrupted: float


def patch_from(model: GPT, ids: Sequence[int], name: str, layer: int, position: int) -> Patch:
    """What stands at one place in a pass over another text, to be put into the same place of this one.

    Raises ValueError for a name, token, layer or position that does not exist.
    """
    check_patchable(name)
    if not 0 < len(ids) <= model.config.block_size:
        raise GPTError("patch.text_length", limit=model.config.block_size, n=len(ids))
    if not 0 <= position < len(ids):
        raise GPTError("position.unknown", position=position, last=len(ids) - 1)
    if not 0 <= layer < model.config.n_layer:
        raise GPTError("layer.unknown", layer=layer, last=model.config.n_layer - 1)
    for token in ids:
        check_token(model, token)
    trace = _One(layer, name)
    with torch.inference_mode():
        model.hidden_states(torch.tensor([list(ids)], device=model.device), trace=trace)
    return Patch(name, layer, position, trace.value[0, position].clone(), tuple(ids))


class _One(Trace):
    """A trace that keeps one value, so that a long text needs no memory."""

    def __init__(self, layer: int, name: str) -> None:
        super().__init__(attention=False)
        self.wanted, self.value = (layer, name), torch.empty(0)

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        if (layer, name) == self.wanted:
            self.value = value.detach()


def is_from(model: GPT, patch: Patch) -> bool:
    """Whether the patch is what `patch_from` makes of its text in this model."""
    try:
        value = patch_from(model, patch.ids or (), patch.name, patch.layer, patch.position).value
    except ValueError:
        return False
    return value.shape == patch.value.shape and torch.allclose(value, patch.value, rtol=1e-3, atol=1e-3)


@torch.inference_mode()
def patch_sweep(
    model: GPT,
    clean: Sequence[int],
    corrupted: Sequence[int],
    answer: int,
    other: int,
    *,
    name: str = "resid_pre",
    progress: Progress | None = None,
) -> PatchSweep:
    """Patch the named activation, one of PATCHABLE, at each layer and position in turn; read the last position.

    clean, corrupted: ids of two texts of one length. answer: what follows the clean text; other: what follows the
    corrupted one. Several positions run as one batch; those before the texts differ recover nothing, and do not run.
    progress: called with (passes done, passes in all).
    Raises ValueError where the lengths differ, or both texts give the same logit difference.
    """
    check_patchable(name)
    T = len(clean)
    if T != len(corrupted):
        raise GPTError("patch.lengths_differ", clean=T, corrupted=len(corrupted))
    for token in (answer, other):
        check_token(model, token)
    direction = widened(model.lm_head.weight[answer]) - widened(model.lm_head.weight[other])  # (C,)
    runs = [trace_text(model, ids) for ids in (clean, corrupted)]
    best, worst = (only_text(run.final_norm)[-1] @ direction for run in runs)
    if torch.isclose(best, worst, rtol=1e-4, atol=1e-4):
        raise GPTError("patch.no_difference", difference=best)

    size = max(1, BATCH_TOKENS // T)
    first = next(place for place in range(T) if clean[place] != corrupted[place])  # before it both runs are the same
    starts = range(first, T, size)
    recovered = worst.expand(model.config.n_layer, T).clone()
    for layer in range(model.config.n_layer):
        good, bad = (getattr(run.layers[layer], name)[0] for run in runs)  # each (T, C)
        for number, start in enumerate(starts):
            places = range(start, min(start + size, T))
            edits = Edits(patches=tuple(one_row_each(name, layer, places, good, bad)))
            stream = runs[1].layers[layer].resid_pre.expand(len(places), -1, -1)
            states = states_from(model, stream, layer, edits)[:, -1]  # (n, C)
            recovered[layer, places.start : places.stop] = widened(states) @ direction
            if progress is not None:
                progress(layer * len(starts) + number + 1, model.config.n_layer * len(starts))
    return PatchSweep((recovered - worst) / (best - worst), best.item(), worst.item())


def one_row_each(name: str, layer: int, places: range, good: Tensor, bad: Tensor) -> list[Patch]:
    """Patches for a batch in which the n-th text gets the good value at the n-th place and keeps the bad elsewhere."""
    patches = []
    for row, place in enumerate(places):
        value = bad[place].repeat(len(places), 1)  # (n, C)
        value[row] = good[place]
        patches.append(Patch(name, layer, place, value))
    return patches
