"""Pre-norm and post-norm blocks before training: gradients and lengths by depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gpt.checks import check_choice, check_integer
from gpt.config import GPTConfig
from gpt.experiments.initialisation import random_ids
from gpt.model import GPT, ForwardContext, TransformerBlock

Placement = Literal["pre", "post"]
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)


@dataclass(frozen=True)
class DepthProfile:
    """One forward and one backward pass of an untrained model, on random tokens.

    lengths: mean norm of a token's vector before the first block and after each, n_layer + 1 numbers.
    weight_gradients: norm of the gradient of each block's feed-forward output matrix, n_layer numbers.
    straight_gradients: norm of the gradient before the first block and after each that passes through additions and
    norms alone, not through the branches, in units of that after the last block; n_layer + 1 numbers.
    """

    lengths: tuple[float, ...]
    weight_gradients: tuple[float, ...]
    straight_gradients: tuple[float, ...]


class PostNormBlock(TransformerBlock):
    """The block of the first Transformer (arXiv 1706.03762): each sum is normalised."""

    def forward(self, x: Tensor, ctx: ForwardContext | None = None) -> Tensor:
        x = self.ln_1(x + self.attn(x, ctx))
        return self.ln_2(x + self.mlp(x, ctx))


class DetachedInput(nn.Module):
    """A branch of a block through which no gradient passes back to its input."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor, ctx: ForwardContext) -> Tensor:
        out: Tensor = self.branch(x.detach(), ctx)
        return out


def depth_profile(placement: Placement, *, n_layer: int = 12, n_embd: int = 64, seed: int = 0) -> DepthProfile:
    """The profile of a model with Xavier's initial weights, as in Xiong et al. (arXiv 2002.04745).

    Raises ValueError for an unknown placement and an invalid shape.
    """
    check_choice("placement", placement, PLACEMENTS)
    check_integer("n_layer", n_layer, 1)
    config = GPTConfig(vocab_size=256, block_size=64, n_layer=n_layer, n_head=4, n_embd=n_embd)
    model = xavier_model(config, placement, seed)
    ids = torch.tensor([random_ids(config, seed)])  # (1, T + 1)
    with torch.enable_grad():
        streams = backward(model, ids)
        matrices = [block.mlp.c_proj.weight for block in model.blocks]
        weight_gradients = tuple(gradient_norm(matrix) for matrix in matrices)
        for block in model.blocks:
            block.attn, block.mlp = DetachedInput(block.attn), DetachedInput(block.mlp)  # type: ignore[assignment]
        straight = [gradient_norm(stream) for stream in backward(model, ids)]
    lengths = tuple(stream.detach().norm(dim=-1).mean().item() for stream in streams)
    return DepthProfile(lengths, weight_gradients, tuple(norm / straight[-1] for norm in straight))


def xavier_model(config: GPTConfig, placement: Placement, seed: int) -> GPT:
    """A GPT of pre-norm blocks, or of post-norm blocks without a final norm; both draw the same weights."""
    generator = torch.Generator().manual_seed(seed)
    model = GPT(config, generator=generator)
    nn.init.normal_(model.wte.weight, generator=generator)
    for name, matrix in model.h.named_parameters():
        if matrix.dim() == 2:
            for each in matrix.chunk(3) if "c_attn" in name else [matrix]:
                nn.init.xavier_normal_(each, generator=generator)
    if placement == "post":
        for layer, block in enumerate(model.blocks):
            with torch.device("meta"):  # the weights are those of the block
                model.h[layer] = PostNormBlock(config, layer)
            model.h[layer].load_state_dict(block.state_dict(), assign=True)
        model.ln_f = nn.Identity()  # type: ignore[assignment]
    return model


def backward(model: GPT, ids: Tensor) -> list[Tensor]:
    """The loss of ids (1, T + 1) and its gradients. Returns the vectors before the first block and after each, n_layer
    + 1 tensors (1, T, C) with their gradients."""
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
    """The norm of a tensor's gradient."""
    assert tensor.grad is not None
    return tensor.grad.norm().item()
