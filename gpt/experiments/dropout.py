"""Dropout on a text: predictions in training and evaluation mode, and the values dropped in each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from gpt.layers import seeded
from gpt.model import GPT, meta_model
from gpt.trace import Trace

Part = Literal["drop", "h.0.attn.attn_dropout", "h.0.attn.resid_dropout", "h.0.mlp.dropout"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True)
class DroppedPart:
    """Dropout in one module during one pass.

    before, after: (n,), values at the last token; attention weights include all heads."""

    part: Part
    before: Tensor
    after: Tensor

    @property
    def n_dropped(self) -> int:
        """Number of elements that became zero."""
        return int(((self.after == 0) & (self.before != 0)).sum())


@dataclass(frozen=True)
class DropoutEffect:
    """Predictions with dropout.

    training, evaluation: logits after the last token in two passes per mode, (2, vocab_size). parts: dropout in the
    embedding and the first block during the first training pass; the other blocks work the same way."""

    training: Tensor
    evaluation: Tensor
    parts: tuple[DroppedPart, ...]


@torch.inference_mode()
def dropout_effect(model: GPT, ids: Sequence[int], *, p: float = 0.1, seed: int = 0) -> DropoutEffect:
    """Run a text twice in each mode with dropout probability p. Does not change the model.

    Raises ValueError unless 0 <= p < 1.
    """
    twin = meta_model(replace(model.config, dropout=p))
    twin.load_state_dict(model.state_dict(), assign=True)
    idx = torch.tensor([list(ids)], device=model.device)
    parts: dict[str, DroppedPart] = {}

    def record(part: Part) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Tensor], out: Tensor) -> None:
            before, after = (x[0, ..., -1, :].flatten() for x in (args[0], out))
            parts[part] = DroppedPart(part, before, after)

        return hook

    for part in PARTS:
        twin.get_submodule(part).register_forward_hook(record(part))

    def logits() -> Tensor:
        return twin(idx, trace=Trace())[0, -1]  # (vocab_size,)

    with seeded(seed, model.device):
        twin.train()
        training = logits()
        first_pass = tuple(parts[part] for part in PARTS)
        training = torch.stack((training, logits()))
    twin.eval()
    return DropoutEffect(training, torch.stack((logits(), logits())), first_pass)
