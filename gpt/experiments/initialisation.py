"""Before training: predictions, norms along the residual stream, and gradients with and without shortcuts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.residual import stream_norms
from gpt.analysis.tracing import trace_text
from gpt.config import Activation, GPTConfig
from gpt.experiments.minimal import DeepNetwork
from gpt.layers import ACTIVATIONS, seeded
from gpt.model import GPT

INIT_STD = 0.02  # standard deviation of GPT-2's initial weights
MAX_TOKENS = 256  # length limit for the random text


@torch.inference_mode()
def initial_prediction(config: GPTConfig, *, seed: int = 0, std: float = INIT_STD) -> tuple[Tensor, float]:
    """Return an untrained model's logits after a random text, (vocab_size,), and its mean loss on it, in nats."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.mul_(std / INIT_STD)
    ids = torch.tensor(random_ids(config, seed))  # (T + 1,)
    logits = model(ids[None, :-1])[0]  # (T, vocab_size)
    return logits[-1], F.cross_entropy(logits, ids[1:]).item()


@torch.inference_mode()
def residual_norms(config: GPTConfig, *, seed: int = 0) -> tuple[list[float], list[float]]:
    """Return the `model_norms` of an untrained model on a random text, with and without GPT-2's scaling of c_proj.

    The scaling multiplies the initial weights of c_proj by 1 / sqrt(2 n_layer).
    """
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    ids = random_ids(config, seed)[:-1]
    scaled = model_norms(model, ids)
    for name, parameter in model.named_parameters():
        if name.endswith("c_proj.weight"):
            parameter.mul_(math.sqrt(2 * config.n_layer))
    return scaled, model_norms(model, ids)


def model_norms(model: GPT, ids: Sequence[int]) -> list[float]:
    """Return the mean norm of a token's residual stream before the first layer and after each: n_layer + 1 numbers."""
    norms = stream_norms(trace_text(model, ids))
    return torch.cat((norms.resid_pre[:1], norms.resid_post)).mean(dim=1).tolist()


def random_ids(config: GPTConfig, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    n = min(config.block_size, MAX_TOKENS) + 1
    return torch.randint(config.vocab_size, (n,), generator=generator).tolist()


def shortcut_gradients(
    *, depth: int = 5, width: int = 3, seed: int = 123, activation: Activation = "gelu_tanh"
) -> tuple[list[float], list[float]]:
    """Return the mean absolute gradient of each layer's weights without and with shortcuts, first layer first.

    Of the `depth` layers, the last has one output and the others have `width`. The input decreases linearly from 1 to
    -1, the target is 0, and the loss is the squared error. A gradient is 0 if it underflows float32.
    """
    x = torch.linspace(1, -1, width)[None]  # (1, width)

    def gradients(shortcuts: bool) -> list[float]:
        with seeded(seed):
            network = DeepNetwork([width] * depth + [1], shortcuts)
        network.activation = ACTIVATIONS[activation]
        with torch.enable_grad():
            loss = F.mse_loss(network(x), torch.zeros(1, 1))
            found = torch.autograd.grad(loss, [layer.get_parameter("weight") for layer in network.layers])
        return [gradient.abs().mean().item() for gradient in found]

    return gradients(False), gradients(True)
