"""GPT layers that also exist in torch: `formula` spells out the definition, and `forward` runs it in one kernel."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.config import GPTConfig
from gpt.errors import check_choice
from gpt.read_only import ReadOnlyTensor, ordinary

_global_generator = threading.Lock()


class Module(nn.Module):
    """nn.Module whose submodules are also ordinary attributes.

    nn.Module finds them by a call of its own. Without it, and without the calls for the weights in `Linear` and
    `LayerNorm`, a small model generates a token in a tenth less time.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self._modules:
            self.__dict__[name] = value

    def add_module(self, name: str, module: nn.Module | None) -> None:
        super().add_module(name, module)
        self.__dict__[name] = module


class LayerNorm(nn.Module):
    """Layer normalisation with an optional bias (arXiv 1607.06450).

    `formula` is the definition, which uses the biased variance; `forward` computes the same result in one kernel.
    """

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.eps = eps

    def formula(self, x: Tensor) -> Tensor:
        """Normalise the last dimension to mean 0 and variance 1, then apply weight and bias. Keeps the shape of x."""
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        y = (x - mean) / torch.sqrt(var + self.eps) * self.weight
        return y if self.bias is None else y + self.bias

    def scale(self, x: Tensor) -> Tensor:
        """Return the standard deviation of x, the divisor in the norm: (..., width) -> (..., 1)."""
        return torch.sqrt(x.var(dim=-1, keepdim=True, unbiased=False) + self.eps)

    def contribution(self, part: Tensor, scale: Tensor) -> Tensor:
        """Return how much one summand of x contributes to the normalised x, with the scale of x held constant.

        The contributions of all summands, plus the bias, add up to `formula(x)`.
        """
        return (part - part.mean(dim=-1, keepdim=True)) / scale * self.weight

    def forward(self, x: Tensor) -> Tensor:
        own: dict[str, Any] = self._parameters  # see Module
        is_plain = "weight" in own and "bias" in own  # otherwise pruned, parametrised or without a bias
        weight, bias = (own["weight"], own["bias"]) if is_plain else (self.weight, self.bias)
        return torch.layer_norm(x, weight.shape, weight, bias, self.eps)  # F.layer_norm without its checks


class RMSNorm(nn.Module):
    """Root mean square normalisation, which does not subtract the mean and has no bias (arXiv 1910.07467).

    `formula` is the definition; `forward` computes the same result in one call.
    """

    bias = None

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def formula(self, x: Tensor) -> Tensor:
        """Normalise the last dimension to mean square 1, then apply the weight. Keeps the shape of x."""
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x / torch.sqrt(mean_square + self.eps) * self.weight

    def scale(self, x: Tensor) -> Tensor:
        """Return the root mean square of x, the divisor in the norm: (..., width) -> (..., 1)."""
        return torch.sqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)

    def contribution(self, part: Tensor, scale: Tensor) -> Tensor:
        """Return how much one summand of x contributes to the normalised x, with the scale of x held constant."""
        return part / scale * self.weight

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class HeadsNorm(RMSNorm):
    """RMSNorm applied jointly to all heads, (..., nh, T, hs); its weight has nh * hs elements."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x.transpose(-3, -2).flatten(-2))  # (..., T, nh * hs)
        return y.unflatten(-1, (x.shape[-3], -1)).transpose(-3, -2)


class NoNorm(nn.Identity):
    """Placeholder for a missing norm: returns its input unchanged, like a norm with scale 1."""

    bias = None

    def formula(self, x: Tensor) -> Tensor:
        return x

    def scale(self, x: Tensor) -> Tensor:
        return torch.ones_like(x[..., :1])

    def contribution(self, part: Tensor, scale: Tensor) -> Tensor:
        return part


class GELU(nn.Module):
    """Gaussian error linear unit: x times the standard normal CDF of x (arXiv 1606.08415).

    GPT-2 uses the tanh approximation. `formula` is the definition; `forward` computes the same result in one kernel.
    """

    def __init__(self, approximate: str = "tanh") -> None:
        super().__init__()
        check_choice("approximate", approximate, ("tanh", "none"))
        self.approximate = approximate

    def formula(self, x: Tensor) -> Tensor:
        """Apply GELU to each element, with the tanh approximation or the error function."""
        if self.approximate == "tanh":
            return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate=self.approximate)


class SquaredReLU(nn.Module):
    """The square of a rectified linear unit (arXiv 2109.08668), as in nanochat."""

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


ACTIVATIONS: dict[str, nn.Module] = {
    "gelu_tanh": GELU("tanh"),
    "gelu": GELU("none"),
    "relu": nn.ReLU(),
    "silu": nn.SiLU(),
    "relu2": SquaredReLU(),
}


class Dropout(nn.Dropout):
    """Dropout: in training, sets elements to 0 with probability p and divides the others by 1 - p (arXiv 1207.0580).

    The division preserves the mean; in evaluation mode, dropout does nothing. `formula` is the definition; `forward`
    computes the same result. Both draw from torch's global generator.
    """

    def formula(self, x: Tensor) -> Tensor:
        """Drop random elements of x, a tensor of any shape. In evaluation mode, return x itself."""
        if not self.training:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.p)
        return x * kept / (1 - self.p)


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's global generators, which dropout uses, for the CPU and `device`, and restore them afterwards.

    Threads share these generators, so only one block runs at a time.
    """
    device = torch.device(device)
    gpus = [device] if device.type == "cuda" else []
    with _global_generator, torch.random.fork_rng(gpus):
        if gpus:
            torch.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed the GPUs
        yield


class Linear(nn.Linear):
    """nn.Linear that skips initialisation on the meta device, because it would import a large part of torch."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        own: dict[str, Any] = self._parameters  # see Module
        if "weight" not in own or "bias" not in own:  # pruned or parametrised
            return super().forward(x)
        weight, bias = own["weight"], own["bias"]
        if isinstance(weight, ReadOnlyTensor):  # what F.linear would do, in 5 microseconds less
            return weight.stored.linear(x, ordinary(bias))
        return F.linear(x, weight, bias)


def softcap(x: Tensor, cap: float | None) -> Tensor:
    """Smoothly limit each element to the range -cap to cap: cap * tanh(x / cap). If cap is None, return x itself."""
    return x if cap is None else cap * torch.tanh(x / cap)


def attention_scores(q: Tensor, k: Tensor, scale: float, cap: float | None) -> Tensor:
    """Compute the unmasked scores softcap(q k^T * scale, cap): (..., T, hs) and (..., S, hs) -> (..., T, S)."""
    return softcap((q @ k.transpose(-2, -1)).mul_(scale), cap)


def make_embedding(n: int, width: int) -> nn.Embedding:
    """Create nn.Embedding without initial values, which on the meta device would import a large part of torch."""
    return nn.Embedding(n, width, _weight=torch.empty(n, width))


def make_norm(config: GPTConfig, width: int) -> LayerNorm | RMSNorm:
    return LayerNorm(width, config.bias, config.norm_eps) if config.norm == "layer" else RMSNorm(width, config.norm_eps)


def make_qk_norm(config: GPTConfig, n_head: int) -> RMSNorm:
    """Create the norm for queries or keys (..., n_head, T, hs)."""
    if config.qk_norm == "full":
        return HeadsNorm(n_head * config.head_size, config.norm_eps)
    return RMSNorm(config.head_size, config.norm_eps)
