"""Rotary positions: rotate queries and keys by angles that grow with the position (RoFormer, arXiv 2104.09864)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpt.config import RotaryScaling


def rotary_angles(
    positions: Tensor, size: int, base: float = 10000.0, scaling: RotaryScaling | None = None, length: int = 0
) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine of position x frequency, where the frequency of pair i is base^(-2i/size).

    positions: (T,) or (B, T). size: number of rotated dimensions per head. scaling: how to scale the frequencies.
    length: number of tokens in the whole text, for scalings that depend on it; 0 for a short text.
    Returns two tensors, each (T, size) or (B, 1, T, size).
    """
    frequencies = rotary_frequencies(size, base, scaling, positions.device, length)
    factor = 1.0 if scaling is None else scaling.attention_factor
    angle = positions[..., None] * frequencies  # (..., T, size / 2)
    angle = torch.cat((angle, angle), dim=-1)
    angle = angle[:, None] if positions.dim() == 2 else angle
    return angle.cos() * factor, angle.sin() * factor


def rotary_frequencies(
    size: int, base: float, scaling: RotaryScaling | None = None, device: torch.device | None = None, length: int = 0
) -> Tensor:
    """Return the frequency of each rotated pair, (size / 2,), scaled for a text of `length` tokens.

    "linear" divides all frequencies by the factor (arXiv 2306.15595). "dynamic" raises the base with the length beyond
    the original context (transformers' code). "llama3" divides frequencies that make fewer than low_freq_factor turns
    in the original context, keeps those with more than high_freq_factor turns, and interpolates in between (Llama 3.1's
    released code). "yarn" does the same, but interpolates along the numbers of the pairs (arXiv 2309.00071). "longrope"
    divides each frequency by a factor that was searched for (arXiv 2402.13753).
    """
    if scaling is not None and scaling.kind == "dynamic":
        share = scaling.angles_key(length) / scaling.original_context
        base *= (scaling.factor * share - scaling.factor + 1) ** (size / max(size - 2, 1))
    frequencies = 1 / base ** (torch.arange(0, size, 2, device=device).float() / size)
    if scaling is None or scaling.kind == "dynamic":
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind == "longrope":
        factors = scaling.long_factors if scaling.angles_key(length) else scaling.factors
        return frequencies / torch.tensor(factors, device=device)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    if scaling.kind == "yarn":
        pairs, context = size // 2, scaling.original_context
        first, last = (pairs * math.log(context / (turns * 2 * math.pi)) / math.log(base) for turns in (high, low))
        if scaling.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, size - 1)
        numbers = torch.arange(pairs, device=device)
        kept = 1 - ((numbers - first) / max(last - first, 0.001)).clamp(0, 1)
    else:
        turns = scaling.original_context * frequencies / (2 * math.pi)
        kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (x[i], x[i + rd/2]) in the first rd dimensions by its angle; x is (B, nh, T, hs)."""
    rd = cos.shape[-1]
    if rd < x.shape[-1]:
        return torch.cat((apply_rotary(x[..., :rd], cos, sin), x[..., rd:]), dim=-1)
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-b, a), dim=-1) * sin).to(x.dtype)
