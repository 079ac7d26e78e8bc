"""What a TransformerBlock does for the newest tokens, as one call.

The steps of a small model are bound by the cost of calling things, and after each of them Python may have to wait for
whatever else it does in this process. So TorchScript runs a block from its first norm to its last sum: the same
operations in the same order, with no Python in between.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.config import GPTConfig
from gpt.inference.packed import PackedLinear
from gpt.inference.processor import is_intel
from gpt.inference.products import Product, activated, product
from gpt.model import LayerNorm, TransformerBlock, rotate

Rotation = tuple[Tensor, Tensor] | None


class Seen(NamedTuple):
    """What N queries look back at: the first S positions of each.

    rows: (N S,), where their values stand among all that are kept; starts: (N,), where each query's begin in rows.
    hidden: 0 where looking is allowed, else -inf; (1, S) or (N, 1, S), S in whole STEPs. keys_first: see there.
    """

    rows: Tensor
    starts: Tensor
    hidden: Tensor
    keys_first: bool


def keys_first(device: torch.device) -> bool:
    """Whether keys times query is done sooner than query times keys: on Intel's processors it takes twice as long."""
    return device.type != "cpu" or not is_intel()


def look_back(q: Tensor, k: Tensor, values: Tensor, seen: Seen) -> Tensor:
    """softmax(q k / sqrt(hs) + hidden) v of one query each: (N, hs).

    q: (N, 1, hs); k: (N, S, hs); values: (rows, hs), all that are kept, as they lie.
    """
    scale = 1 / math.sqrt(q.shape[-1])
    if seen.keys_first:
        scores = torch.baddbmm(seen.hidden.mT, k, q.mT, alpha=scale).squeeze(-1)  # (N, S)
    else:
        scores = torch.baddbmm(seen.hidden, q, k.mT, alpha=scale).squeeze(-2)
    weights = scores.softmax(dim=-1)
    return bags(values, seen, weights) if values.is_cpu else products(values, seen, weights)


def bags(values: Tensor, seen: Seen, weights: Tensor) -> Tensor:
    """The weighted sums of what is seen, weights (N, S) -> (N, hs), read from memory as fast as it gives.

    A kernel made for bags of words: products with so few rows take half as long again, or twice as long.
    """
    return torch.embedding_bag(values, seen.rows, seen.starts, False, 0, False, weights.view(-1))[0]


def products(values: Tensor, seen: Seen, weights: Tensor) -> Tensor:
    """The same where there may be no such kernel."""
    seen_values = values[seen.rows].view(weights.shape[0], weights.shape[1], -1)  # (N, S, hs)
    return torch.bmm(weights.unsqueeze(1), seen_values).squeeze(1)


def look_alone(qkv: Tensor, kept: Tensor, k: Tensor, values: Tensor, seen: Seen, position: int) -> Tensor:
    """One text's new token, (1, 3, nh, hs), looks back at all before it, and is kept: (1, C).

    kept, k, values: as `KVCache.views` gives them.
    """
    kept.select(2, position).copy_(qkv[0, -kept.shape[0] :])
    return look_back(qkv[0, 0].unsqueeze(1), k, values, seen).view(1, -1)


class Seated(NamedTuple):
    """Where the newest tokens of n texts stand, see `gpt.inference.slots`.

    places, positions: (n,), which slot is whose, and where its token stands there. seen: by the nh queries of each of
    the first slots, the places among them. in_order: places are 0, 1, ... n - 1.
    """

    places: Tensor
    positions: Tensor
    seen: Seen
    in_order: bool


def look_together(qkv: Tensor, kept: Tensor, seated: Seated) -> Tensor:
    """The same for n texts side by side, (n, 3, nh, hs) -> (n, C).

    kept: keys and values of all slots, (2, slots, nh, S, hs).
    """
    nh, hs = qkv.shape[2], qkv.shape[3]
    count, length = seated.seen.hidden.shape[0] // nh, seated.seen.hidden.shape[-1]
    kept[:, seated.places, :, seated.positions] = qkv[:, 1:]
    q = qkv[:, 0]  # (n, nh, hs)
    if not seated.in_order:
        q = q.new_zeros([count, nh, hs]).index_copy_(0, seated.places, q)
    k = kept[0, :count, :, :length].flatten(0, 1)  # (count nh, S, hs)
    y = look_back(q.reshape(-1, 1, hs), k, kept[1].view(-1, hs), seated.seen).view(count, -1)
    return y if seated.in_order else y[seated.places]


class Norm(nn.Module):
    """A LayerNorm that never learns."""

    def __init__(self, norm: LayerNorm) -> None:
        super().__init__()
        self.shape, self.eps = list(norm.weight.shape), norm.eps
        self.weight, self.bias = norm.weight.detach(), None if norm.bias is None else norm.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class Block(nn.Module):
    """What a step needs of a TransformerBlock.

    x: (B, C), the stream of B tokens, of one text or of many; the last of them may be there to fill up only. rotation:
    cos and sin of the rotary angles, each (B, 1, 1, hs); None for a model without.
    """

    def __init__(self, block: TransformerBlock, config: GPTConfig, large: bool = False) -> None:
        super().__init__()
        self.n_head, self.head_size = config.n_head, config.head_size
        self.ln_1, self.ln_2 = Norm(block.ln_1), Norm(block.ln_2)
        self.c_attn, self.attn_proj = of_linear(block.attn.c_attn, large), of_linear(block.attn.c_proj, large)
        self.c_fc = activated(of_linear(block.mlp.c_fc, large), config.activation)
        self.mlp_proj = of_linear(block.mlp.c_proj, large)

    @torch.jit.export
    def ask(self, x: Tensor, rotation: Rotation) -> Tensor:
        """Queries, keys and values: (B, 3, nh, hs)."""
        qkv = self.c_attn(self.ln_1(x)).view(-1, 3, self.n_head, self.head_size)
        if rotation is None:
            return qkv
        cos, sin = rotation
        return torch.cat((rotate(qkv[:, :2], cos, sin), qkv[:, 2:]), dim=1)

    @torch.jit.export
    def answer(self, x: Tensor, looked: Tensor) -> Tensor:
        """The stream with what attention gives for its first tokens, (n, C), and then with what the MLP adds."""
        if len(looked) < len(x):
            looked = F.pad(looked, (0, 0, 0, len(x) - len(looked)))
        x = self.attn_proj.added(looked, x)
        return self.mlp_proj.added(self.c_fc(self.ln_2(x)), x)

    @torch.jit.export
    def alone(
        self,
        x: Tensor,
        rotation: Rotation,
        views: tuple[Tensor, Tensor, Tensor],
        seen: Seen,
        position: int,
    ) -> Tensor:
        """The stream after this block, for one text's newest token; see `look_alone`."""
        kept, k, values = views
        return self.answer(x, look_alone(self.ask(x, rotation)[:1], kept, k, values, seen, position))

    @torch.jit.export
    def together(self, x: Tensor, rotation: Rotation, kept: Tensor, seated: Seated) -> tuple[Tensor, Tensor]:
        """The same for n texts, and their queries, keys and values, (n, 3, nh, hs); see `look_together`."""
        qkv = self.ask(x, rotation)[: len(seated.places)]
        return self.answer(x, look_together(qkv, kept, seated)), qkv


def of_linear(linear: nn.Module, large: bool) -> Product:
    """The product that a linear layer of a model computes, large as in `gpt.inference.products`."""
    return linear.product if isinstance(linear, PackedLinear) else product(linear.weight, linear.bias, "fp32", large)


def scripted(blocks: Sequence[Block]) -> list[nn.Module]:
    """The blocks of a model, run by TorchScript where there is one. Not for GPUs, where it would compile kernels."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript gets no new features, which is no matter here
            first = torch.jit.script(blocks[0])
    except Exception:  # a version of Python or torch that it does not know: Python gives the same numbers, later
        return list(blocks)
    if first is blocks[0]:  # PYTORCH_JIT=0
        return list(blocks)
    return [first, *(_like(first, block) for block in blocks[1:])]


def _like(first: nn.Module, module: nn.Module) -> nn.Module:
    """A copy of a scripted module with the weights of another one of the same kind: its source is read only once."""
    twin = copy(first)
    for name, value in vars(module).items():
        if isinstance(value, Tensor | torch.ScriptObject):
            setattr(twin, name, value)
    for name, child in module.named_children():
        setattr(twin, name, _like(getattr(first, name), child))
    return twin
