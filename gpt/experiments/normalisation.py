"""Layer and RMS normalisation with their intermediate results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gpt.analysis.tracing import trace_text
from gpt.checks import check_choice, check_layer
from gpt.config import GPTConfig, Norm
from gpt.errors import GPTError
from gpt.experiments.linear import linear
from gpt.model import GPT

NormName = Literal["ln_1", "ln_1_post", "ln_2", "ln_2_post", "ln_f"]
NORM_NAMES: tuple[NormName, ...] = get_args(NormName)


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
        raise GPTError(
            "experiment.rows", "rows must have shape (n, C) with C of at least 2, not {shape}", shape=tuple(rows.shape)
        )
    if not eps > 0:
        raise GPTError(
            "experiment.eps",
            "eps must be above 0, not {eps:g}: a row of equal numbers would be divided by zero",
            eps=eps,
        )
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


def norms_of(config: GPTConfig) -> tuple[NormName, ...]:
    """List the normalisations of a model: those before and after the branches of each block, and ln_f."""
    before, after = config.pre_norm, config.post_norm
    exists = {"ln_1": before, "ln_1_post": after, "ln_2": before, "ln_2_post": after, "ln_f": True}
    return tuple(norm for norm in NORM_NAMES if exists[norm])


@torch.inference_mode()
def norm_input(model: GPT, ids: Sequence[int], norm: NormName, layer: int = 0) -> NormInput:
    """The input of a normalisation for a text: one of `norms_of` in a layer, or ln_f.

    shift is 0 for a model without biases. With parallel branches both read the stream before the layer.
    Raises ValueError for a layer or a normalisation that the model does not have.
    """
    check_layer(layer, model.config.n_layer)
    check_choice("norm", norm, norms_of(model.config))
    trace = trace_text(model, ids)
    traced, block = trace.layers[layer], model.blocks[layer]
    before_mlp = traced.resid_pre if model.config.parallel else traced.resid_mid
    inputs: dict[NormName, Callable[[], Tensor]] = {
        "ln_1": lambda: traced.resid_pre,
        "ln_1_post": lambda: block.attn(block.ln_1(traced.resid_pre)),
        "ln_2": lambda: before_mlp,
        "ln_2_post": lambda: block.mlp(block.ln_2(before_mlp)),
        "ln_f": lambda: trace.layers[-1].resid_post,
    }
    rows, module = inputs[norm](), getattr(model if norm == "ln_f" else block, norm)
    scale = module.weight.detach()
    shift = torch.zeros_like(scale) if module.bias is None else module.bias.detach()
    return NormInput(model.config.norm, rows[0], scale, shift, module.eps)
