"""Measure the effects of the five changes from GPT-2 to Llama on a text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import trace_text
from gpt.experiments.masks import total_variation
from gpt.layers import LayerNorm
from gpt.model import GPT, ForwardContext


class Moments(NamedTuple):
    """Mean and root mean square of a vector."""

    mean: float
    rms: float


@torch.inference_mode()
def norm_effect(model: GPT, ids: Sequence[int], layer: int) -> tuple[Moments, ...]:
    """Measure the last token's vector before and after the norm before a layer's attention, without its weights."""
    before = trace_text(model, ids).layers[layer].resid_pre[0, -1].float()  # (C,)
    norm = model.blocks[layer].ln_1
    after = (before - before.mean() if isinstance(norm, LayerNorm) else before) / norm.scale(before)
    return tuple(Moments(x.mean().item(), x.square().mean().sqrt().item()) for x in (before, after))


@torch.inference_mode()
def token_seconds(models: Sequence[GPT], ids: Sequence[int], *, n_tokens: int = 16, rounds: int = 5) -> list[float]:
    """Measure each model's median seconds per token with a KV cache, over interleaved rounds."""
    idx = torch.tensor([list(ids)], device=models[0].device)
    times: list[list[float]] = [[] for _ in models]
    for _ in range(rounds):
        for model, seconds in zip(models, times, strict=True):
            cache = model.new_cache(max_length=len(ids) + n_tokens)
            model(idx, cache=cache)
            next_id = torch.zeros_like(idx[:, :1])
            began = time.perf_counter()
            for _ in range(n_tokens):
                next_id = model(next_id, cache=cache).argmax(dim=-1)
            seconds.append((time.perf_counter() - began) / n_tokens)
    return [median(seconds) for seconds in times]


@torch.inference_mode()
def shift_effect(model: GPT, ids: Sequence[int], shifts: Sequence[int]) -> Tensor:
    """Measure how the next-token prediction changes when each shift is added to all positions of a text.

    The tokens do not change. Returns total variation distances, (len(shifts),), from 0 to 1.
    """
    idx = torch.tensor([list(ids)], device=model.device)
    logits = []
    for shift in (0, *shifts):
        positions = torch.arange(shift, shift + len(ids), device=model.device)
        ctx = ForwardContext(is_causal=len(ids) > 1).with_positions(model.config, positions)
        logits.append(model.logits(model.hidden_states_in(ctx, idx, positions)[0, -1]))
    return torch.stack([total_variation(each, logits[0]) for each in logits[1:]]).cpu()


@torch.inference_mode()
def bias_effect(model: GPT, ids: Sequence[int]) -> tuple[int, float, float]:
    """Count a model's biases, and measure its loss on a text, in nats, with them and with all of them set to 0.

    Does not change the model.
    """
    biases = {name: value for name, value in model.named_parameters() if name.endswith(".bias")}
    idx, targets = torch.tensor([list(ids[:-1])], device=model.device), torch.tensor(list(ids[1:]), device=model.device)
    zeros = {name: torch.zeros_like(value) for name, value in biases.items()}
    logits = [model(idx), torch.func.functional_call(model, zeros, (idx,))] if zeros else [model(idx)] * 2
    losses = [F.cross_entropy(each[0].float(), targets).item() for each in logits]
    return sum(value.numel() for value in biases.values()), losses[0], losses[1]
