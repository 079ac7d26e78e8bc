"""Rotary positions: rotate queries and keys by angles that grow with the position (RoFormer, arXiv 2104.09864)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpt.config import RotaryScaling


def rotary_angles(
    positions: Tensor, size: int, base: float = 10000.0, scaling: RotaryScaling | None = None
) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine of position x frequency, where the frequency of pair i is base^(-2i/size).

    positions: (T,) or (B, T). size: number of rotated dimensions per head. scaling: how to scale the frequencies.
    Returns two tensors, each (T, size) or (B, 1, T, size).
    """
    frequencies = 1 / base ** (torch.arange(0, size, 2, device=positions.device).float() / size)  # (size / 2,)
    if scaling is not None:
        frequencies = scale_frequencies(frequencies, scaling)
    angle = positions[..., None] * frequencies  # (..., T, size / 2)
    angle = torch.cat((angle, angle), dim=-1)
    angle = angle[:, None] if positions.dim() == 2 else angle
    return angle.cos(), angle.sin()


def scale_frequencies(frequencies: Tensor, scaling: RotaryScaling) -> Tensor:
    """Scale the frequencies for texts longer than the training texts.

    "linear" divides all frequencies by the factor (arXiv 2306.15595). "llama3" divides frequencies that make fewer than
    low_freq_factor turns in the original context, keeps those with more than high_freq_factor turns, and interpolates
    in between (Llama 3.1's released code).
    """
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    turns = scaling.original_context * frequencies / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (x[i], x[i + rd/2]) in the first rd dimensions by its angle; x is (B, nh, T, hs)."""
    rd = cos.shape[-1]
    if rd < x.shape[-1]:
        return torch.cat((apply_rotary(x[..., :rd], cos, sin), x[..., rd:]), dim=-1)
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-b, a), dim=-1) * sin).to(x.dtype)
