"""Activation functions, dropout and norms taken apart, and the placement of norms in a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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


def activation_curve(name: Activation, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return an activation function's values and slopes dy/dx (by autograd) at x, in float64."""
    x = x.detach().double().requires_grad_()
    with torch.enable_grad():
        y = ACTIVATIONS[name](x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    return y.detach(), slope


def gelu_difference(x: Tensor) -> Tensor:
    """Return GPT-2's GELU minus the exact function, in float64: below 0.0005, and largest near |x| = 2.7."""
    return ACTIVATIONS["gelu_tanh"](x.double()) - ACTIVATIONS["gelu"](x.double())


@torch.inference_mode()
def dropout_effect(
    model: GPT, ids: Sequence[int], *, p: float = 0.1, seed: int = 0
) -> tuple[Tensor, Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """Run a text twice in each mode with dropout probability 0 <= p < 1. Does not change the model.

    Returns the logits after the last token in two passes, (2, vocab_size), in training mode and in evaluation mode, and
    for each of PARTS the values (n,) at the last token before and after dropout, in the first training pass. Attention
    weights include all heads. The other blocks work the same way.
    """
    twin = meta_model(replace(model.config, dropout=p))
    twin.load_state_dict(model.state_dict(), assign=True)
    idx = torch.tensor([list(ids)], device=model.device)
    parts: dict[str, tuple[Tensor, Tensor]] = {}

    def record(name: str, before: Tensor, after: Tensor) -> None:
        parts.setdefault(name, (before[0, ..., -1, :].flatten(), after[0, ..., -1, :].flatten()))

    def run_twice() -> Tensor:
        return torch.stack([twin(idx, trace=Trace())[0, -1] for _ in range(2)])  # (2, vocab_size)

    for name in PARTS:
        twin.get_submodule(name).register_forward_hook(lambda _, args, out, name=name: record(name, args[0], out))
    with seeded(seed, model.device):
        twin.train()
        training = run_twice()
    twin.eval()
    return training, run_twice(), parts


@torch.inference_mode()
def normalise(
    rows: Tensor, *, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0, eps: float = 1e-5, kind: Norm = "layer"
) -> dict[str, Tensor]:
    """Apply LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv 1910.07467) to rows (n, C), by stage.

    before: the rows. standard: with mean 0 and variance 1 (LayerNorm) or with mean square 1 (RMSNorm), apart from the
    effect of eps. after: standard x scale + shift.
    """
    standard = (F.layer_norm if kind == "layer" else F.rms_norm)(rows, rows.shape[1:], eps=eps)
    return {"before": rows, "standard": standard, "after": standard * scale + shift}


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
def norm_input(model: GPT, ids: Sequence[int], norm: NormName, layer: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return the input that a norm receives for a text, (T, C), and the norm's learned scale and shift, (C,) each.

    norm: one of `norms_of`, in the given layer unless it is ln_f. shift is 0 in a model without biases. Both
    parallel branches read the stream before the layer.
    """
    trace, block = trace_text(model, ids), model.blocks[layer]
    traced, is_first = trace.layers[layer], norm.startswith("ln_1")
    x = traced.resid_pre if is_first or model.config.parallel else traced.resid_mid
    if norm == "ln_f":
        x = trace.layers[-1].resid_post
    elif norm.endswith("_post"):
        x = block.attn(block.ln_1(x)) if is_first else block.mlp(block.ln_2(x))
    module = getattr(model if norm == "ln_f" else block, norm)
    scale = module.weight.detach()
    return x[0], scale, torch.zeros_like(scale) if module.bias is None else module.bias.detach()


class PostNormBlock(TransformerBlock):
    """The block of the original Transformer (arXiv 1706.03762), which normalises each sum."""

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        x = self.ln_1(x + self.attn(x, ctx))
        return self.ln_2(x + self.mlp(x, ctx))


@torch.enable_grad()
def depth_profile(
    placement: Placement, *, n_layer: int = 12, n_embd: int = 64, seed: int = 0
) -> dict[str, list[float]]:
    """Measure a model with Xavier initialisation on random tokens, as in Xiong et al. (arXiv 2002.04745).

    lengths: mean norm of a token's vector before the first block and after each block; n_layer + 1 numbers.
    weight_gradients: norm of the gradient of each block's feed-forward output matrix; n_layer numbers.
    straight_gradients: norm of the part of the gradient that bypasses the branches, flowing only through additions and
    norms, before the first block and after each block, relative to the value after the last block.
    """
    config = GPTConfig(vocab_size=256, block_size=64, n_layer=n_layer, n_head=4, n_embd=n_embd)
    model = xavier_model(config, placement, seed)
    ids = torch.tensor([random_ids(config, seed)])  # (1, T + 1)

    def norms_of_gradients(loss: Tensor, tensors: list[Tensor]) -> list[float]:
        return [gradient.norm().item() for gradient in torch.autograd.grad(loss, tensors)]

    streams, loss = streams_and_loss(model, ids)
    lengths = [stream.detach().norm(dim=-1).mean().item() for stream in streams]
    weight_gradients = norms_of_gradients(loss, [block.mlp.c_proj.weight for block in model.blocks])
    for branch in (branch for block in model.blocks for branch in (block.attn, block.mlp)):
        branch.register_forward_pre_hook(lambda _, args: (args[0].detach(), *args[1:]))
    streams, loss = streams_and_loss(model, ids)
    straight = norms_of_gradients(loss, streams)
    straight = [norm / straight[-1] for norm in straight]
    return {"lengths": lengths, "weight_gradients": weight_gradients, "straight_gradients": straight}


def streams_and_loss(model: GPT, ids: Tensor) -> tuple[list[Tensor], Tensor]:
    """Run a model on ids (1, T + 1). Returns the vectors before the first block and after each, and the loss."""
    assert model.wpe is not None
    streams = [model.wte(ids[:, :-1]) + model.wpe.weight[: ids.shape[1] - 1]]  # (1, T, C)
    for block in model.h:
        streams.append(block(streams[-1]))
    logits = model.logits(model.ln_f(streams[-1]))
    return streams, F.cross_entropy(logits[0], ids[0, 1:])


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
        for block in model.blocks:
            block.__class__ = PostNormBlock  # the same weights, used in another order
        model.ln_f = nn.Identity()  # type: ignore[assignment]
    return model
