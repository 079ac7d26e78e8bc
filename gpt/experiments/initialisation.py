"""A model before training: its predictions, and the norms along its residual stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.analysis.residual import stream_norms
from gpt.analysis.tracing import trace_text
from gpt.config import GPTConfig
from gpt.model import GPT

INIT_STD = 0.02  # standard deviation of GPT-2's initial weights
MAX_TOKENS = 256  # length limit for the random text


@dataclass(frozen=True)
class InitialPrediction:
    """An untrained model's prediction. logits: (vocab_size,), after the last token of a random text.

    logits_std: standard deviation of the logits over the vocabulary. loss: mean over the random text, in nats.
    uniform_loss: ln(vocab_size), the loss of the uniform distribution.
    """

    logits: Tensor
    logits_std: float
    loss: float
    uniform_loss: float


@dataclass(frozen=True)
class ResidualNorms:
    """Mean norm of a token's residual stream before the first layer and after each layer: n_layer + 1 numbers.

    scaled: with GPT-2's factor 1/sqrt(2 n_layer) for the initial weights of c_proj. unscaled: without this factor.
    """

    scaled: tuple[float, ...]
    unscaled: tuple[float, ...]


@torch.inference_mode()
def initial_prediction(config: GPTConfig, *, seed: int = 0, std: float = INIT_STD) -> InitialPrediction:
    """Return the prediction of an untrained model and its loss on random tokens, near ln(vocab_size).

    std: standard deviation of the initial weights.
    """
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.mul_(std / INIT_STD)
    ids = torch.tensor(random_ids(config, seed))  # (T + 1,)
    logits = model(ids[None, :-1])[0]  # (T, vocab_size)
    loss = F.cross_entropy(logits, ids[1:])
    return InitialPrediction(logits[-1], logits[-1].std().item(), loss.item(), math.log(config.vocab_size))


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
    """Return min(block_size, MAX_TOKENS) + 1 random ids."""
    generator = torch.Generator().manual_seed(seed)
    n = min(config.block_size, MAX_TOKENS) + 1
    return list(torch.randint(config.vocab_size, (n,), generator=generator).tolist())


def linear(n_in: int, n_out: int, generator: torch.Generator) -> nn.Linear:
    """Create a layer with the weights that `nn.Linear` would draw if torch's global generator had the same state."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out)
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    nn.init.uniform_(layer.bias, -1 / math.sqrt(n_in), 1 / math.sqrt(n_in), generator=generator)
    return layer
