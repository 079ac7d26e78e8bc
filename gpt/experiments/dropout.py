"""Dropout on a text: predictions in training and evaluation mode, and the values dropped in each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gpt.layers import seeded
from gpt.model import GPT, meta_model
from gpt.trace import Trace

PARTS = ("drop", "h.0.attn.attn_dropout", "h.0.attn.resid_dropout", "h.0.mlp.dropout")


@dataclass(frozen=True)
class DropoutEffect:
    """Predictions with dropout.

    training, evaluation: logits after the last token in two passes per mode, (2, vocab_size). parts: for each of PARTS,
    the values (n,) at the last token before and after dropout, in the first training pass. Attention weights include
    all heads. The other blocks work the same way.
    """

    training: Tensor
    evaluation: Tensor
    parts: dict[str, tuple[Tensor, Tensor]]


@torch.inference_mode()
def dropout_effect(model: GPT, ids: Sequence[int], *, p: float = 0.1, seed: int = 0) -> DropoutEffect:
    """Run a text twice in each mode with dropout probability p. Does not change the model.

    Raises ValueError unless 0 <= p < 1.
    """
    twin = meta_model(replace(model.config, dropout=p))
    twin.load_state_dict(model.state_dict(), assign=True)
    idx = torch.tensor([list(ids)], device=model.device)
    parts: dict[str, tuple[Tensor, Tensor]] = {}

    def recorder(name: str) -> Callable[..., None]:
        def record(module: nn.Module, args: tuple[Tensor], out: Tensor) -> None:
            before, after = (x[0, ..., -1, :].flatten() for x in (args[0], out))
            parts.setdefault(name, (before, after))

        return record

    def logits() -> Tensor:
        return twin(idx, trace=Trace())[0, -1]  # (vocab_size,)

    for name in PARTS:
        twin.get_submodule(name).register_forward_hook(recorder(name))
    with seeded(seed, model.device):
        twin.train()
        training = torch.stack((logits(), logits()))
    twin.eval()
    return DropoutEffect(training, torch.stack((logits(), logits())), parts)
