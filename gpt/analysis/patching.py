"""Activation patching: replace activations of a corrupted run with those of a clean run, one at a time.

Sources: Meng et al., "Locating and Editing Factual Associations in GPT" (2022), arXiv 2202.05262; Wang et al.,
"Interpretability in the Wild" (2022), arXiv 2211.00593.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import MAX_BATCH_TOKENS, hidden_states_from, to_float32, trace_text
from gpt.background import Progress
from gpt.checks import check_layer, check_position, check_token_id
from gpt.edits import Edits, Patch, check_patchable
from gpt.errors import GPTError
from gpt.inputs import AnyModel, Text, gpt_of, ids_of
from gpt.layers import softcap
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class PatchSweep:
    """The result of `patch_sweep`.

    Attributes:
        recovered: (n_layer, T), the logit difference after patching one layer and position, scaled so that 0 is the
            corrupted run and 1 the clean one.
        clean: Logit of the answer minus the logit of the other token, at the end of the clean text.
        corrupted: The same difference at the end of the corrupted text.
    """

    recovered: Tensor
    clean: float
    corrupted: float


def patch_from(model: AnyModel, text: Text, name: str, layer: int, position: int) -> Patch:
    """Run the model on a text and return one activation as a patch for the same name, layer and position.

    Raises ValueError if the name is not in PATCHABLE, or a token, layer or position is out of range.
    """
    check_patchable(name)
    model, ids = gpt_of(model), ids_of(model, text)
    if not 0 < len(ids) <= model.config.block_size:
        raise GPTError("patch.text_length", limit=model.config.block_size, n=len(ids))
    check_position(position, len(ids))
    check_layer(layer, model.config.n_layer)
    trace = _ActivationTrace(layer, name)
    with torch.inference_mode():
        model.hidden_states(torch.tensor([list(ids)], device=model.device), trace=trace)
    return Patch(name, layer, position, trace.value[0, position].clone(), tuple(ids))


class _ActivationTrace(Trace):
    """A trace that saves memory by keeping a single activation."""

    def __init__(self, layer: int, name: str) -> None:
        super().__init__(attention=False)
        self.wanted, self.value = (layer, name), torch.empty(0)

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        if (layer, name) == self.wanted:
            self.value = value.detach()


def is_patch_of_model(model: GPT, patch: Patch) -> bool:
    """Return whether this model reproduces the patch's value from the patch's ids, to within 1e-3."""
    try:
        value = patch_from(model, patch.ids or (), patch.name, patch.layer, patch.position).value
    except ValueError:
        return False
    return value.shape == patch.value.shape and torch.allclose(value, patch.value.to(value), rtol=1e-3, atol=1e-3)


@torch.inference_mode()
def patch_sweep(
    model: AnyModel,
    clean: Text,
    corrupted: Text,
    answer: int,
    other: int,
    *,
    name: str = "resid_pre",
    progress: Progress | None = None,
) -> PatchSweep:
    """Patch an activation of the clean run into the corrupted run, at each layer and position in turn.

    clean, corrupted: two texts with the same number of tokens. answer: the token that follows the clean text; other:
    the token that follows the corrupted text. name: one of PATCHABLE. progress: called with (passes done, total
    passes).

    Skips positions before the texts first differ, because patching them recovers nothing. Raises ValueError if the
    lengths differ or both texts give the same logit difference.
    """
    check_patchable(name)
    model, clean, corrupted = gpt_of(model), ids_of(model, clean), ids_of(model, corrupted)
    T = len(clean)
    if T != len(corrupted):
        raise GPTError("patch.lengths_differ", clean=T, corrupted=len(corrupted))
    for token in (answer, other):
        check_token_id(token, model.config.vocab_size)
    weight = to_float32(model.lm_head.weight[[answer, other]])  # (2, C)
    bias = None if model.lm_head.bias is None else to_float32(model.lm_head.bias[[answer, other]])

    def difference(states: Tensor) -> Tensor:  # (n, C) -> (n,)
        logits = softcap(F.linear(to_float32(states), weight, bias), model.config.logit_softcap)
        return logits[:, 0] - logits[:, 1]

    traces = [trace_text(model, ids) for ids in (clean, corrupted)]
    best, worst = (difference(trace.final_norm[0, -1:]) for trace in traces)  # (1,) each
    if torch.isclose(best, worst, rtol=1e-4, atol=1e-4):
        raise GPTError("patch.no_difference", difference=best.item())

    size = max(1, MAX_BATCH_TOKENS // T)
    first = next(position for position in range(T) if clean[position] != corrupted[position])
    starts = range(first, T, size)
    recovered = worst.expand(model.config.n_layer, T).clone()
    for layer in range(model.config.n_layer):
        good, bad = (getattr(trace.layers[layer], name)[0] for trace in traces)  # each (T, C)
        for number, start in enumerate(starts):
            positions = range(start, min(start + size, T))
            edits = Edits(patches=tuple(batched_patches(name, layer, positions, good, bad)))
            resid_pre = traces[1].layers[layer].resid_pre.expand(len(positions), -1, -1)
            states = hidden_states_from(model, resid_pre, layer, edits)[:, -1]  # (n, C)
            recovered[layer, positions.start : positions.stop] = difference(states)
            if progress is not None:
                progress(layer * len(starts) + number + 1, model.config.n_layer * len(starts))
    return PatchSweep((recovered - worst) / (best - worst), best.item(), worst.item())


def batched_patches(name: str, layer: int, positions: range, good: Tensor, bad: Tensor) -> list[Patch]:
    """Create patches for a batch in which text n gets the good value at the n-th position and bad values elsewhere."""
    patches = []
    for row, position in enumerate(positions):
        value = bad[position].repeat(len(positions), 1)  # (n, C)
        value[row] = good[position]
        patches.append(Patch(name, layer, position, value))
    return patches
