"""The two heads that copy the end of a text from earlier in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gpt.analysis.heads import head_roles
from gpt.errors import GPTError
from gpt.trace import Trace


@dataclass(frozen=True)
class CopyCircuit:
    """The heads, each (layer, head), that write the token at `source` after the last one.

    source: the position after the newest earlier occurrence of the last token.
    induction: the head with the largest weight from the last position on `source`.
    previous_token: the head of an earlier layer with the highest previous-token score, or of layer 0.
    """

    source: int
    induction: tuple[int, int]
    previous_token: tuple[int, int]


@torch.inference_mode()
def copy_circuit(trace: Trace, ids: Sequence[int]) -> CopyCircuit:
    """The heads of a text (T,) whose last token occurred before. Raises ValueError where it did not.

    Source: Olsson et al., "In-context Learning and Induction Heads" (2022), arXiv 2209.11895.
    """
    last = len(ids) - 1
    source = 1 + max((i for i in range(last) if ids[i] == ids[last]), default=-1)
    if source == 0:
        raise GPTError("analysis.no_repeat", "the last token occurs nowhere before: there is nothing to copy")
    roles = head_roles(trace, ids).previous_token  # (n_layer, n_head)
    n_head = roles.shape[1]
    weights = torch.stack([layer.attn_weights[0, :, last, source] for layer in trace.layers])  # (n_layer, n_head)
    layer, head = divmod(int(weights.argmax()), n_head)
    earlier = roles[: max(1, layer)]
    before = divmod(int(earlier.argmax()), n_head)
    return CopyCircuit(source, (layer, head), before)
