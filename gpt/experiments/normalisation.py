"""Layer normalisation, with every number on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gpt.checks import check_layer
from gpt.errors import GPTError
from gpt.experiments.linear import linear
from gpt.model import GPT
from gpt.trace import Trace

Norm = Literal["ln_1", "ln_2", "ln_f"]


@dataclass(frozen=True)
class Normalised:
    """Some rows on their way through a layer normalisation (arXiv 1607.06450).

    before: (n, C). mean, variance, unbiased_variance: (n,), of each row; variance divides by C and is the one that
    is used, unbiased_variance divides by C - 1. standard: (n, C), mean 0 and variance 1 but for eps.
    after: (n, C), standard x scale + shift.
    """

    before: Tensor
    mean: Tensor
    variance: Tensor
    unbiased_variance: Tensor
    standard: Tensor
    after: Tensor


@dataclass(frozen=True)
class NormInput:
    """What one layer normalisation of a model reads, (T, C), and what it has learned, (C,) each."""

    rows: Tensor
    scale: Tensor
    shift: Tensor
    eps: float


@torch.inference_mode()
def normalise(
    rows: Tensor, *, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0, eps: float = 1e-5
) -> Normalised:
    """Normalise each row of (n, C). Raises ValueError for rows of one number, and for eps that is not above 0."""
    if rows.dim() != 2 or rows.shape[1] < 2:
        raise GPTError("experiment.rows", shape=tuple(rows.shape))
    if not eps > 0:
        raise GPTError("experiment.eps", eps=eps)
    mean = rows.mean(dim=1)
    variance = rows.var(dim=1, unbiased=False)
    standard = (rows - mean[:, None]) / torch.sqrt(variance[:, None] + eps)
    return Normalised(rows, mean, variance, rows.var(dim=1, unbiased=True), standard, standard * scale + shift)


@torch.inference_mode()
def linear_relu_rows(*, n_rows: int = 2, n_in: int = 5, n_out: int = 6, seed: int = 123) -> Tensor:
    """(n_rows, n_out): normal random rows through a fresh linear layer and ReLU, an example to normalise."""
    generator = torch.Generator().manual_seed(seed)
    batch = torch.randn(n_rows, n_in, generator=generator)
    return linear(n_in, n_out, generator)(batch).relu()


@torch.inference_mode()
def norm_input(model: GPT, ids: Sequence[int], norm: Norm, layer: int = 0) -> NormInput:
    """What reaches a normalisation of a running model: ln_1 or ln_2 of one layer, or ln_f after the last.

    A model without biases shifts by 0. Raises ValueError for a layer that the model does not have.
    """
    if norm != "ln_f":
        check_layer(layer, model.config.n_layer)
    trace = Trace()
    model.hidden_states(torch.tensor([list(ids)], device=model.device), trace=trace)
    if norm == "ln_f":
        module, rows = model.ln_f, trace.layers[-1].resid_post
    else:
        here = trace.layers[layer]
        module = getattr(model.h[layer], norm)
        rows = here.resid_pre if norm == "ln_1" else here.resid_mid
    scale = module.weight.detach()
    shift = torch.zeros_like(scale) if module.bias is None else module.bias.detach()
    return NormInput(rows[0], scale, shift, module.eps)
