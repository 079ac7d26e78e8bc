"""How well a model copies: the heads and the loss on random tokens that come twice."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gpt.analysis.heads import head_roles, repeated_random_ids
from gpt.model import GPT
from gpt.trace import Trace

N_SEQUENCES = 8


@dataclass(frozen=True)
class HeadScore:
    """A head and its mean attention weight, in 0..1, on what defines its role."""

    layer: int
    head: int
    score: float


@dataclass(frozen=True)
class CopyingHeads:
    """induction: the head with the highest prefix-matching score. previous_token: the best previous-token head of an
    earlier layer, of layer 0 if the other is there. loss: of the second copy from its second token on, in nats."""

    induction: HeadScore
    previous_token: HeadScore
    loss: float


@dataclass(frozen=True)
class CopyingScores:
    """induction, previous_token: (n_layer, n_head), the scores of every head. loss: as in `CopyingHeads`."""

    induction: Tensor
    previous_token: Tensor
    loss: float


@torch.inference_mode()
def copying_scores(model: GPT, start: int | None = None, length: int = 50, *, seed: int = 0) -> CopyingScores:
    """Measure all heads on N_SEQUENCES sequences of `length` random tokens, twice.

    start: an id in front of each, such as end-of-text. Source of the scores: Olsson et al. (2022), arXiv 2209.11895.
    """
    generator = torch.Generator().manual_seed(seed)
    roles, losses = [], []
    for _ in range(N_SEQUENCES):
        ids = repeated_random_ids(model.config, generator, length=length, start=start)
        trace = Trace()
        logits = model(torch.tensor([ids], device=model.device), trace=trace)[0]
        roles.append(head_roles(trace, ids))
        n = (len(ids) - (start is not None)) // 2
        losses.append(float(cross_entropy(logits[-n:-1].float(), torch.tensor(ids[1 - n :], device=logits.device))))
    induction = torch.stack([role.induction for role in roles]).mean(dim=0)
    return CopyingScores(
        induction, torch.stack([role.previous_token for role in roles]).mean(dim=0), sum(losses) / len(losses)
    )


def copying_heads(model: GPT, start: int | None = None, length: int = 50, *, seed: int = 0) -> CopyingHeads:
    """The heads that copy, measured as in `copying_scores`."""
    return best_heads(copying_scores(model, start, length, seed=seed))


def best_heads(scores: CopyingScores) -> CopyingHeads:
    """The heads with the highest scores."""
    induction = _highest(scores.induction)
    return CopyingHeads(induction, _highest(scores.previous_token[: max(1, induction.layer)]), scores.loss)


def _highest(scores: Tensor) -> HeadScore:
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return HeadScore(layer, head, float(scores[layer, head]))
