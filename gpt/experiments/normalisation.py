"""Layer and RMS normalisation with their intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gpt.analysis.tracing import trace_text
from gpt.checks import check_layer
from gpt.config import Norm
from gpt.errors import GPTError
from gpt.experiments.linear import linear
from gpt.model import GPT

NormName = Literal["ln_1", "ln_2", "ln_f"]


@dataclass(frozen=True)
class Normalised:
    """Rows through a normalisation: LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467).

    before: (n, C). mean, variance, unbiased_variance: (n,) of each row; variance divides by C and is the one that
    LayerNorm uses, unbiased_variance divides by C - 1. standard: (n, C), but for eps with mean 0 and variance 1, or
    with a mean square of 1. after: (n, C), standard x scale + shift.
    """

    before: Tensor
    mean: Tensor
    variance: Tensor
    unbiased_variance: Tensor
    standard: Tensor
    after: Tensor


@dataclass(frozen=True)
class NormInput:
    """The input (T, C) of a normalisation of a model, and its learned parameters (C,)."""

    kind: Norm
    rows: Tensor
    scale: Tensor
    shift: Tensor
    eps: float


@torch.inference_mode()
def normalise(
    rows: Tensor, *, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0, eps: float = 1e-5, kind: Norm = "layer"
) -> Normalised:
    """Normalise each row of (n, C). Raises ValueError for C below 2, and for eps that is not above 0."""
    if rows.dim() != 2 or rows.shape[1] < 2:
        raise GPTError("experiment.rows", shape=tuple(rows.shape))
    if not eps > 0:
        raise GPTError("experiment.eps", eps=eps)
    mean = rows.mean(dim=1)
    variance = rows.var(dim=1, unbiased=False)
    if kind == "layer":
        standard = (rows - mean[:, None]) / torch.sqrt(variance[:, None] + eps)
    else:
        standard = rows / torch.sqrt(rows.square().mean(dim=1, keepdim=True) + eps)
    return Normalised(rows, mean, variance, rows.var(dim=1, unbiased=True), standard, standard * scale + shift)


@torch.inference_mode()
def linear_relu_rows(*, n_rows: int = 2, n_in: int = 5, n_out: int = 6, seed: int = 123) -> Tensor:
    """(n_rows, n_out): standard normal rows through an untrained linear layer and ReLU, an example to normalise."""
    generator = torch.Generator().manual_seed(seed)
    batch = torch.randn(n_rows, n_in, generator=generator)
    return linear(n_in, n_out, generator)(batch).relu()


def norm_input(model: GPT, ids: Sequence[int], norm: NormName, layer: int = 0) -> NormInput:
    """The input of a normalisation for a text: ln_1 or ln_2 of a layer, or ln_f.

    shift is 0 for a model without biases. With parallel branches both read the stream before the layer.
    Raises ValueError for a layer that the model does not have.
    """
    check_layer(layer, model.config.n_layer)
    trace = trace_text(model, ids)
    traced, block = trace.layers[layer], model.blocks[layer]
    before_mlp = traced.resid_pre if model.config.parallel else traced.resid_mid
    rows, module = {
        "ln_1": (traced.resid_pre, block.ln_1),
        "ln_2": (before_mlp, block.ln_2),
        "ln_f": (trace.layers[-1].resid_post, model.ln_f),
    }[norm]
    scale = module.weight.detach()
    shift = torch.zeros_like(scale) if module.bias is None else module.bias.detach()
    return NormInput(model.config.norm, rows[0], scale, shift, module.eps)
