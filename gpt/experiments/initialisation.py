"""Before training: predictions, norms along the residual stream, and gradients with and without shortcuts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.analysis.residual import stream_norms
from gpt.analysis.tracing import trace_text
from gpt.config import Activation, GPTConfig
from gpt.layers import ACTIVATIONS, seeded
from gpt.model import GPT

INIT_STD = 0.02  # standard deviation of GPT-2's initial weights
MAX_TOKENS = 256  # length limit for the random text


@dataclass(frozen=True)
class InitialPrediction:
    """An untrained model's logits after the last token of a random text, (vocab_size,), and its mean loss, in nats."""

    logits: Tensor
    loss: float


@dataclass(frozen=True)
class ResidualNorms:
    """Mean norm of a token's residual stream before the first layer and after each layer: n_layer + 1 numbers.

    scaled: with GPT-2's factor 1/sqrt(2 n_layer) for the initial weights of c_proj. unscaled: without this factor.
    """

    scaled: tuple[float, ...]
    unscaled: tuple[float, ...]


@torch.inference_mode()
def initial_prediction(config: GPTConfig, *, seed: int = 0, std: float = INIT_STD) -> InitialPrediction:
    """Return the prediction of an untrained model and its loss on random tokens, near ln(vocab_size)."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.mul_(std / INIT_STD)
    ids = torch.tensor(random_ids(config, seed))  # (T + 1,)
    logits = model(ids[None, :-1])[0]  # (T, vocab_size)
    return InitialPrediction(logits[-1], F.cross_entropy(logits, ids[1:]).item())


@torch.inference_mode()
def residual_norms(config: GPTConfig, *, seed: int = 0) -> ResidualNorms:
    """Return the residual norms of an untrained model on random tokens, with and without the scaling of c_proj."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    ids = random_ids(config, seed)[:-1]
    scaled = model_norms(model, ids)
    for name, parameter in model.named_parameters():
        if name.endswith("c_proj.weight"):
            parameter.mul_(math.sqrt(2 * config.n_layer))
    return ResidualNorms(scaled, model_norms(model, ids))


def model_norms(model: GPT, ids: Sequence[int]) -> tuple[float, ...]:
    """Return the mean norm of the residual stream over a text, before the first layer and after each layer."""
    norms = stream_norms(trace_text(model, ids))
    return tuple(torch.cat((norms.resid_pre[:1], norms.resid_post)).mean(dim=1).tolist())


def random_ids(config: GPTConfig, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    n = min(config.block_size, MAX_TOKENS) + 1
    return list(torch.randint(config.vocab_size, (n,), generator=generator).tolist())


@dataclass(frozen=True)
class ShortcutGradients:
    """Mean absolute gradient of each layer's weights, starting with the first layer; 0 if it underflows float32."""

    without: tuple[float, ...]
    with_shortcuts: tuple[float, ...]


class DeepNetwork(nn.Module):
    """Linear layers with activations. With shortcuts, a layer adds its input to its output if their shapes match."""

    def __init__(self, widths: list[int], activation: Activation, shortcuts: bool, seed: int) -> None:
        super().__init__()
        with seeded(seed):
            self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.activation, self.shortcuts = ACTIVATIONS[activation], shortcuts

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            out = self.activation(layer(x))
            x = x + out if self.shortcuts and x.shape == out.shape else out
        return x


def shortcut_gradients(
    *, depth: int = 5, width: int = 3, seed: int = 123, activation: Activation = "gelu_tanh"
) -> ShortcutGradients:
    """Return the gradients of one step without and with shortcuts, from the same initial weights.

    Of the `depth` layers, the last has one output and the others have `width`. The input decreases linearly from 1 to
    -1, the target is 0, and the loss is the squared error.
    """
    widths = [width] * depth + [1]
    return ShortcutGradients(*(mean_gradients(widths, seed, activation, shortcuts) for shortcuts in (False, True)))


def mean_gradients(widths: list[int], seed: int, activation: Activation, shortcuts: bool) -> tuple[float, ...]:
    network = DeepNetwork(widths, activation, shortcuts, seed)
    with torch.enable_grad():
        x = torch.linspace(1, -1, widths[0])[None]  # (1, width)
        loss = F.mse_loss(network(x), torch.zeros(1, 1))
        gradients = torch.autograd.grad(loss, [layer.get_parameter("weight") for layer in network.layers])
    return tuple(gradient.abs().mean().item() for gradient in gradients)
