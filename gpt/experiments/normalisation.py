"""Layer normalisation with its intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor

from gpt.analysis.tracing import trace_text
from gpt.checks import check_layer
from gpt.errors import GPTError
from gpt.experiments.linear import linear
from gpt.layers import LayerNorm
from gpt.model import GPT

Norm = Literal["ln_1", "ln_2", "ln_f"]


@dataclass(frozen=True)
class Normalised:
    """Rows through a layer normalisation (arXiv 1607.06450).

    before: (n, C). mean, variance, unbiased_variance: (n,) of each row; variance divides by C and is the one that is
    used, unbiased_variance divides by C - 1. standard: (n, C), with mean 0 and, but for eps, variance 1.
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
    """The input (T, C) of a layer normalisation of a model, and its learned parameters (C,)."""

    rows: Tensor
    scale: Tensor
    shift: Tensor
    eps: float


@torch.inference_mode()
def normalise(
    rows: Tensor, *, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0, eps: float = 1e-5
) -> Normalised:
    """Normalise each row of (n, C). Raises ValueError for C below 2, and for eps that is not above 0."""
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
    """(n_rows, n_out): standard normal rows through an untrained linear layer and ReLU, an example to normalise."""
    generator = torch.Generator().manual_seed(seed)
    batch = torch.randn(n_rows, n_in, generator=generator)
    return linear(n_in, n_out, generator)(batch).relu()


def norm_input(model: GPT, ids: Sequence[int], norm: Norm, layer: int = 0) -> NormInput:
    """The input of a normalisation for a text: ln_1 or ln_2 of a layer, or ln_f.

    shift is 0 for a model without biases. Raises ValueError for a layer that the model does not have.
    """
    check_layer(layer, model.config.n_layer)
    trace = trace_text(model, ids)
    activations = trace.layers[layer]
    rows = {"ln_1": activations.resid_pre, "ln_2": activations.resid_mid, "ln_f": trace.layers[-1].resid_post}[norm]
    module = cast(LayerNorm, model.get_submodule("ln_f" if norm == "ln_f" else f"h.{layer}.{norm}"))
    scale = module.weight.detach()
    shift = torch.zeros_like(scale) if module.bias is None else module.bias.detach()
    return NormInput(rows[0], scale, shift, module.eps)
