"""Where a model starts: its first predictions, and how the residual stream grows from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.checks import check_number
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class FirstPrediction:
    """What a model that has learned nothing says. logits: (vocab_size,), after the last token of a text.

    loss: mean over the text, in nats; uniform: ln(vocab_size), the loss of a model that gives every token the same
    probability. logits_std: spread of the logits over the vocabulary.
    """

    logits: Tensor
    logits_std: float
    loss: float
    uniform: float


@dataclass(frozen=True)
class ResidualNorms:
    """Mean length of a token's vector before the first layer and after each, n_layer + 1 numbers.

    scaled: GPT-2's start, with what adds to the stream made smaller by 1/sqrt(2 n_layer); unscaled: without that.
    """

    scaled: tuple[float, ...]
    unscaled: tuple[float, ...]


@torch.inference_mode()
def first_prediction(config: GPTConfig, *, seed: int = 0, std: float = 0.02) -> FirstPrediction:
    """A fresh model's prediction and its loss on random tokens, near ln(vocab_size).

    std: of the first weights; GPT-2's is 0.02. Raises ValueError if it is negative or not finite.
    """
    check_number("std", std, 0)
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.mul_(std / 0.02)
    text = random_text(config, seed)
    logits = model(text[:, :-1])[0]  # (T, vocab_size)
    loss = torch.nn.functional.cross_entropy(logits, text[0, 1:])
    return FirstPrediction(logits[-1], logits[-1].std().item(), loss.item(), math.log(config.vocab_size))


@torch.inference_mode()
def residual_norms(config: GPTConfig, *, seed: int = 0) -> ResidualNorms:
    """How long the vectors of the residual stream are along a fresh model, with the scaling and without it."""
    model = GPT(config, generator=torch.Generator().manual_seed(seed)).eval()
    text = random_text(config, seed)[:, :-1]
    scaled = stream_norms(model, text)
    for name, parameter in model.named_parameters():
        if name.endswith("c_proj.weight"):
            parameter.mul_(math.sqrt(2 * config.n_layer))
    return ResidualNorms(scaled, stream_norms(model, text))


def stream_norms(model: GPT, idx: Tensor) -> tuple[float, ...]:
    """Mean length over the tokens of (1, T), before the first layer and after each."""
    trace = Trace()
    model.hidden_states(idx, trace=trace)
    streams = [trace.layers[0].resid_pre, *(layer.resid_post for layer in trace.layers)]  # (1, T, C) each
    return tuple(stream.norm(dim=-1).mean().item() for stream in streams)


def model_norms(model: GPT, ids: Sequence[int]) -> tuple[float, ...]:
    """The same along a running model, for a text."""
    with torch.inference_mode():
        return stream_norms(model, torch.tensor([list(ids)], device=model.device))


def random_text(config: GPTConfig, seed: int, limit: int = 256) -> Tensor:
    """(1, T + 1): random tokens, a context of them and one more, but no more than `limit`."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(config.vocab_size, (1, min(config.block_size, limit) + 1), generator=generator)
