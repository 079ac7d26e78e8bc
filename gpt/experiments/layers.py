"""Activation functions, dropout and norms taken apart, and the placement of norms in a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gpt.analysis.tracing import trace_text
from gpt.config import Activation, GPTConfig, Norm
from gpt.experiments.initialisation import random_ids
from gpt.layers import ACTIVATIONS, seeded
from gpt.model import GPT, ForwardContext, TransformerBlock, meta_model
from gpt.trace import Trace

PARTS = ("drop", "h.0.attn.attn_dropout", "h.0.attn.resid_dropout", "h.0.mlp.dropout")
NormName = Literal["ln_1", "ln_1_post", "ln_2", "ln_2_post", "ln_f"]
NORM_NAMES: tuple[NormName, ...] = get_args(NormName)
Placement = Literal["pre", "post"]
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)


@dataclass(frozen=True)
class Curve:
    """Points of an activation function: x, y and the slope dy/dx, float64 tensors of the same shape."""

    x: Tensor
    y: Tensor
    slope: Tensor


def activation_curve(name: Activation, x: Tensor) -> Curve:
    """Compute values and slopes (by autograd) of an activation function."""
    x = x.detach().double().requires_grad_()
    with torch.enable_grad():
        y = ACTIVATIONS[name](x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    return Curve(x.detach(), y.detach(), slope)


def gelu_difference(x: Tensor) -> Tensor:
    """Return GPT-2's GELU minus the exact function, in float64: below 0.0005, and largest near |x| = 2.7."""
    return activation_curve("gelu_tanh", x).y - activation_curve("gelu", x).y


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
    """Run a text twice in each mode with dropout probability 0 <= p < 1. Does not change the model."""
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


@dataclass(frozen=True)
class Normalised:
    """Rows (n, C) normalised by LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467).

    standard: rows with mean 0 and variance 1 (LayerNorm) or with mean square 1 (RMSNorm), apart from the effect of eps.
    after: standard x scale + shift.
    """

    before: Tensor
    standard: Tensor
    after: Tensor


@dataclass(frozen=True)
class NormInput:
    """The input (T, C) to a norm in a model, and the norm's learned parameters (C,)."""

    kind: Norm
    rows: Tensor
    scale: Tensor
    shift: Tensor
    eps: float


@torch.inference_mode()
def normalise(
    rows: Tensor, *, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0, eps: float = 1e-5, kind: Norm = "layer"
) -> Normalised:
    centred = rows - rows.mean(dim=1, keepdim=True) if kind == "layer" else rows
    standard = centred / torch.sqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    return Normalised(rows, standard, standard * scale + shift)


@torch.inference_mode()
def linear_relu_rows(*, n_rows: int = 2, n_in: int = 5, n_out: int = 6, seed: int = 123) -> Tensor:
    """Return example rows to normalise, (n_rows, n_out): Gaussian noise put through a random linear layer and ReLU."""
    with seeded(seed):
        batch = torch.randn(n_rows, n_in)
        return nn.Linear(n_in, n_out)(batch).relu()


def norms_of(config: GPTConfig) -> tuple[NormName, ...]:
    """Return the names of a model's norms: those before and after the branches of each block, and ln_f."""
    before, after = config.pre_norm, config.post_norm
    exists = {"ln_1": before, "ln_1_post": after, "ln_2": before, "ln_2_post": after, "ln_f": True}
    return tuple(norm for norm in NORM_NAMES if exists[norm])


@torch.inference_mode()
def norm_input(model: GPT, ids: Sequence[int], norm: NormName, layer: int = 0) -> NormInput:
    """Return the input that a norm receives for a text, and the norm's parameters.

    norm: one of `norms_of`, in the given layer unless it is ln_f. shift is 0 in a model without biases. Both
    parallel branches read the stream before the layer.
    """
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


@dataclass(frozen=True)
class DepthProfile:
    """Results of a forward and a backward pass through an untrained model on random tokens.

    lengths: mean norm of a token's vector before the first block and after each block; n_layer + 1 numbers.
    weight_gradients: norm of the gradient of each block's feed-forward output matrix; n_layer numbers.
    straight_gradients: norm of the part of the gradient that bypasses the branches, flowing only through additions and
    norms, before the first block and after each block, relative to the value after the last block; n_layer + 1 numbers.
    """

    lengths: tuple[float, ...]
    weight_gradients: tuple[float, ...]
    straight_gradients: tuple[float, ...]


class PostNormBlock(TransformerBlock):
    """The block of the original Transformer (arXiv 1706.03762), which normalises each sum."""

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        x = self.ln_1(x + self.attn(x, ctx))
        return self.ln_2(x + self.mlp(x, ctx))


def depth_profile(placement: Placement, *, n_layer: int = 12, n_embd: int = 64, seed: int = 0) -> DepthProfile:
    """Return the depth profile of a model with Xavier initialisation, as in Xiong et al. (arXiv 2002.04745)."""
    config = GPTConfig(vocab_size=256, block_size=64, n_layer=n_layer, n_head=4, n_embd=n_embd)
    model = xavier_model(config, placement, seed)
    ids = torch.tensor([random_ids(config, seed)])  # (1, T + 1)
    with torch.enable_grad():
        streams = backward(model, ids)
        matrices = [block.mlp.c_proj.weight for block in model.blocks]
        weight_gradients = tuple(gradient_norm(matrix) for matrix in matrices)
        for branch in (branch for block in model.blocks for branch in (block.attn, block.mlp)):
            branch.register_forward_pre_hook(lambda _, args: (args[0].detach(), *args[1:]))
        straight = [gradient_norm(stream) for stream in backward(model, ids)]
    lengths = tuple(stream.detach().norm(dim=-1).mean().item() for stream in streams)
    return DepthProfile(lengths, weight_gradients, tuple(norm / straight[-1] for norm in straight))


def xavier_model(config: GPTConfig, placement: Placement, seed: int) -> GPT:
    """Return a GPT with pre-norm blocks, or with post-norm blocks and no final norm. Both have the same weights."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(config, generator=generator)
    nn.init.normal_(model.wte.weight, generator=generator)
    for name, matrix in model.h.named_parameters():
        if matrix.dim() == 2:
            for each in matrix.chunk(3) if "c_attn" in name else [matrix]:
                nn.init.xavier_normal_(each, generator=generator)
    if placement == "post":
        for layer, block in enumerate(model.blocks):
            with torch.device("meta"):  # the weights come from the original block
                model.h[layer] = PostNormBlock(config, layer)
            model.h[layer].load_state_dict(block.state_dict(), assign=True)
        model.ln_f = nn.Identity()  # type: ignore[assignment]
    return model


def backward(model: GPT, ids: Tensor) -> list[Tensor]:
    """Compute the loss on ids (1, T + 1) and its gradients.

    Returns the vectors before the first block and after each block: n_layer + 1 tensors (1, T, C) with gradients."""
    streams: list[Tensor] = []

    def keep(stream: Tensor) -> None:
        stream.retain_grad()
        streams.append(stream)

    handles = [model.h[0].register_forward_pre_hook(lambda _, args: keep(args[0]))]
    handles += [block.register_forward_hook(lambda _, __, out: keep(out)) for block in model.h]
    model.zero_grad()
    model.loss(ids[:, :-1], ids[:, 1:]).backward()
    for handle in handles:
        handle.remove()
    return streams


def gradient_norm(tensor: Tensor) -> float:
    assert tensor.grad is not None
    return tensor.grad.norm().item()
