"""One more token for each of several texts, in one pass: the same numbers as `GPT.hidden_states`, with less on the way.

At one token a text, most of a step on a CPU is waiting for weights and the cost of calling things. So the weights are
read once for all texts, from memory laid out for it (see `gpt.packed`), all short texts look back in one product (see
`gpt.slots`), and what a step without edits, traces, padding and dropout does not need is not called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import STEP, KVCache, whole_steps
from gpt.model import GPT, LayerNorm, TransformerBlock, causal_mask, rotary_angles, rotate
from gpt.packed import WHOLE, Blocks, PackedLinear, Product, product, unused_rows
from gpt.slots import Slots, Together, look_back
from gpt.threads import threads_for

LARGE = 2**23  # numbers: weights that a CPU's cache does not hold
# (layer, queries, keys and values of each token, (B, 3, nh, hs)) -> what its attention gives, (B, C); keeps them.
Look = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class Norm:
    """A LayerNorm without its module."""

    shape: tuple[int, ...]
    weight: Tensor
    bias: Tensor | None
    eps: float

    @classmethod
    def of(cls, norm: LayerNorm) -> Norm:
        return cls(tuple(norm.weight.shape), norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


@dataclass(frozen=True)
class Block:
    """What a step needs of one TransformerBlock."""

    ln_1: Norm
    c_attn: Product
    attn_proj: Product
    ln_2: Norm
    c_fc: Product
    mlp_proj: Product

    @classmethod
    def of(cls, block: TransformerBlock) -> Block:
        return cls(
            Norm.of(block.ln_1),
            _product(block.attn.c_attn),
            _product(block.attn.c_proj),
            Norm.of(block.ln_2),
            _product(block.mlp.c_fc),
            _product(block.mlp.c_proj),
        )


class Decoder:
    """A GPT in evaluation mode, made ready for steps; it shares the model's weights or keeps them packed.

    The weights are read when this is made: make a new one after they have changed.
    """

    @torch.inference_mode()
    def __init__(self, model: GPT) -> None:
        self.config, self.wte, self.wpe = model.config, model.wte, model.wpe
        self.blocks = [Block.of(block) for block in model.h]
        self.ln_f, self.head = Norm.of(model.ln_f), _product(model.lm_head)
        self.device = model.device
        self.size = matrix_numbers(model)
        self.by_fours = isinstance(self.head, Blocks)
        self.slots = Slots(self.config, model.dtype) if self.device.type == "cpu" else None
        hidden = torch.zeros(whole_steps(self.config.block_size) + STEP, dtype=model.dtype, device=self.device)
        hidden[-STEP:] = -math.inf
        self.hidden = hidden

    @torch.inference_mode()
    def step(self, ids: Sequence[int], caches: Sequence[KVCache]) -> Tensor:
        """Read one token of each text into its cache: (B, C), after the last norm.

        ids: B tokens; caches: B caches of batch size 1, each with room for one more.
        """
        for cache in caches:
            cache.need(1)
        with threads_for(self.size * len(caches)):
            return self._step(ids, caches)

    @torch.inference_mode()
    def read(self, ids: Sequence[int], cache: KVCache) -> Tensor:
        """Read T tokens of one text into its cache: (T, C), after the last norm."""
        T, start = len(ids), cache.length
        cache.need(T)
        mask = causal_mask(T, start + T, self.device) if start else None

        def look(layer: int, qkv: Tensor) -> Tensor:
            q, k, v = qkv.permute(1, 2, 0, 3)[:, None]  # 3 x (1, nh, T, hs)
            k, v = cache.update(layer, q, k, v)  # (1, nh, S, hs)
            y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
            return y[0].transpose(0, 1).reshape(T, -1)

        with threads_for(self.size * T):
            states = self._filled_up(ids, range(start, start + T), look)
        cache.advance(T)
        return states

    def _step(self, ids: Sequence[int], caches: Sequence[KVCache]) -> Tensor:
        together = None if self.slots is None or len(caches) == 1 else self.slots.together(caches)
        states = self._filled_up(ids, [cache.length for cache in caches], self._looks(caches, together))
        if together is not None:
            together.keep()
        for cache in caches:
            cache.advance(1)
        return states

    def _filled_up(self, ids: Sequence[int], positions: Sequence[int], look: Look) -> Tensor:
        """`run` with rows that nobody uses, where the products are faster, or sooner ready, for them."""
        count, unused = len(ids), [0] * self._unused(len(ids))

        def look_filled_up(layer: int, qkv: Tensor) -> Tensor:
            return F.pad(look(layer, qkv[:count]), (0, 0, 0, len(unused)))

        ids, positions = (torch.tensor([*numbers, *unused], device=self.device) for numbers in (ids, positions))
        return self.run(ids, positions, look_filled_up if unused else look)[:count]

    def _unused(self, count: int) -> int:
        """oneDNN reads large weights slower for one row than for four."""
        if not self.by_fours:
            return 0
        return WHOLE - 1 if count == 1 and self.size >= LARGE else unused_rows(count)

    def run(self, ids: Tensor, positions: Tensor, look: Look) -> Tensor:
        """Tokens (B,), each at its position (B,), that see what `look` lets them: (B, C), after the last norm."""
        nh, hs = self.config.n_head, self.config.head_size
        x = self.wte(ids)  # (B, C)
        if self.wpe is not None:
            x = x + self.wpe(positions)
        else:
            cos, sin = rotary_angles(positions, hs)
            rotation = cos[:, None, None], sin[:, None, None]  # (B, 1, 1, hs)
        for layer, block in enumerate(self.blocks):
            qkv = block.c_attn(block.ln_1(x)).view(-1, 3, nh, hs)
            if self.wpe is None:
                q, k = rotate(qkv[:, :2].reshape(-1, 2, nh, hs), *rotation).unbind(1)
                qkv = torch.stack((q, k, qkv[:, 2]), dim=1)
            x = block.attn_proj.added(look(layer, qkv), x)
            x = block.mlp_proj.added(block.c_fc.activated(block.ln_2(x), self.config.activation), x)
        return self.ln_f(x)

    def logits(self, states: Tensor) -> Tensor:
        """(B, C) after the last norm -> (B, vocab_size) float32."""
        with threads_for(self.size * len(states)):
            rows = F.pad(states, (0, 0, 0, self._unused(len(states))))
            return self.head(rows).float()[: len(states)]

    def _looks(self, caches: Sequence[KVCache], together: Together | None) -> Look:
        """Each text looks back at its own past: those that are seated together in one go, one by one the others."""
        if together is None and len(caches) == 1:
            return partial(self._alone, caches[0], self._hidden(caches[0].length + 1))
        rows = [] if together is None else together.rows
        apart = [(row, cache, self._hidden(cache.length + 1)) for row, cache in enumerate(caches) if row not in rows]
        if together is not None and not apart:
            return together.look

        def look(layer: int, qkv: Tensor) -> Tensor:
            looked = qkv.new_empty(len(qkv), qkv[0, 0].numel())
            if together is not None:
                looked[rows] = together.look(layer, qkv[rows])
            for row, cache, hidden in apart:
                looked[row] = self._alone(cache, hidden, layer, qkv[row : row + 1])
            return looked

        return look

    @staticmethod
    def _alone(cache: KVCache, hidden: Tensor, layer: int, qkv: Tensor) -> Tensor:
        """One text, (1, 3, nh, hs), looks back at all that its cache holds."""
        q = qkv[0, 0].unsqueeze(1)  # (nh, 1, hs)
        return look_back(q, *cache.append(layer, qkv[0]), hidden).view(1, -1)

    def _hidden(self, length: int) -> Tensor:
        """(S,), the first `length` 0 and the rest, up to a whole STEP, -inf."""
        start = len(self.hidden) - STEP - length
        return self.hidden[start : start + whole_steps(length)]


def is_plain(model: GPT) -> bool:
    """Whether a `Decoder` computes what this model does: our own blocks, not in training."""
    return type(model) is GPT and not model.training and all(type(block) is TransformerBlock for block in model.h)


def matrix_numbers(model: GPT) -> int:
    """How many numbers the matrices of a model hold: as many multiplications a token costs, besides attention."""
    sizes = ((linear.in_features, linear.out_features) for linear in model.modules() if hasattr(linear, "out_features"))
    return sum(rows * columns for rows, columns in sizes)


def _product(linear: torch.nn.Module) -> Product:
    if isinstance(linear, PackedLinear):
        return linear.product
    return product(linear.weight, linear.bias, "fp32")
