"""One more token for each of several texts, in one pass: the same numbers as `GPT.hidden_states`, with less on the way.

At one token a text, most of a step on a CPU is waiting for weights and the cost of calling things. So the weights are
read once for all texts, from memory laid out for it (see `gpt.inference.products`), all short texts look back in one product (see
`gpt.inference.slots`), each block is one call (see `gpt.inference.step`), and what a step without edits, traces, padding and dropout does
not need is not called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import STEP, KVCache, whole_steps
from gpt.inference.processor import is_intel
from gpt.inference.products import LARGE, LEAST, WHOLE, Blocks, Columns, matrix_numbers, pass_work, unused_rows
from gpt.inference.slots import Slots, Together
from gpt.inference.step import Block, Norm, Rotation, Seen, keys_first, look_alone, of_linear, scripted
from gpt.inference.threads import threads_for
from gpt.model import GPT, TransformerBlock, causal_mask, rotary_angles

# (layer, its block, the stream before it, rotation) -> the stream behind it; keeps what later tokens look back at.
Pass = Callable[[int, Block, Tensor, Rotation], Tensor]


class Decoder:
    """A GPT in evaluation mode, made ready for steps; it shares the model's weights or keeps them packed.

    The weights are read when this is made: make a new one after they have changed.
    """

    @torch.inference_mode()
    def __init__(self, model: GPT) -> None:
        self.config, self.wte, self.wpe = model.config, model.wte, model.wpe
        self.device = model.device
        self.size = matrix_numbers(model)
        large = self.size >= LARGE
        blocks = [Block(block, model.config, large) for block in model.h]
        self.blocks = scripted(blocks) if self.device.type == "cpu" else blocks
        self.ln_f, self.head = Norm(model.ln_f), of_linear(model.lm_head, large)
        self.by_fours = isinstance(self.head, Columns | Blocks)
        self.one_by_one = isinstance(self.head, Blocks) and self.head.exact and is_intel()
        self.slots = Slots(self.config, model.dtype) if self.device.type == "cpu" else None
        hidden = torch.zeros(1, whole_steps(self.config.block_size) + STEP, dtype=model.dtype, device=self.device)
        hidden[:, -STEP:] = -math.inf
        self.hidden = hidden

    @torch.inference_mode()
    def step(self, ids: Sequence[int], caches: Sequence[KVCache]) -> Tensor:
        """Read one token of each text into its cache: (B, C), after the last norm.

        ids: B tokens; caches: B caches of batch size 1, each with room for one more.
        """
        for cache in caches:
            cache.need(1)
        with threads_for(pass_work(self.size, len(caches))):
            return self._step(ids, caches)

    @torch.inference_mode()
    def read(self, texts: Sequence[Sequence[int]], caches: Sequence[KVCache]) -> list[Tensor]:
        """Read some tokens of each text into its cache: for each (T, C), after the last norm.

        texts: ids, T of them each; caches: of batch size 1, each with room for them.
        """
        sizes, starts = [len(ids) for ids in texts], [cache.length for cache in caches]
        for cache, T in zip(caches, sizes, strict=True):
            cache.need(T)
        masks = [causal_mask(T, at + T, self.device) if at else None for T, at in zip(sizes, starts, strict=True)]

        def through(layer: int, block: Block, x: Tensor, rotation: Rotation) -> Tensor:
            looked = []
            for qkv, cache, mask in zip(block.ask(x, rotation)[: sum(sizes)].split(sizes), caches, masks, strict=True):
                q, k, v = qkv.permute(1, 2, 0, 3)[:, None]  # 3 x (1, nh, T, hs)
                k, v = cache.update(layer, q, k, v)  # (1, nh, S, hs)
                y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
                looked.append(y[0].transpose(0, 1).reshape(len(qkv), -1))
            return block.answer(x, torch.cat(looked) if len(looked) > 1 else looked[0])

        ids, positions = list(chain(*texts)), [at + i for T, at in zip(sizes, starts, strict=True) for i in range(T)]
        if len(texts) > 1:  # of texts together there are all too many sizes, and for each oneDNN would keep kernels
            ids, positions = (numbers + [0] * (whole_steps(len(ids)) - len(ids)) for numbers in (ids, positions))
        with threads_for(pass_work(self.size, sum(sizes))):
            states = self._run(ids, positions, through)[: sum(sizes)]
        for cache, T in zip(caches, sizes, strict=True):
            cache.advance(T)
        return list(states.split(sizes))

    def _step(self, ids: Sequence[int], caches: Sequence[KVCache]) -> Tensor:
        together = None if self.slots is None or len(caches) == 1 else self.slots.together(caches)
        positions = [cache.length for cache in caches]
        if together is not None and len(together.rows) == len(caches):
            states = self._run(ids, positions, together.through)
        elif len(caches) == 1:
            states = self._run(ids, positions, self._alone(caches[0]))
        else:
            states = self._run(ids, positions, self._apart(caches, together))
        if together is not None:
            together.keep()
        for cache in caches:
            cache.advance(1)
        return states

    def _run(self, ids: Sequence[int], positions: Sequence[int], through: Pass) -> Tensor:
        """`run` with rows that nobody uses, where the products are faster, or sooner ready, for them."""
        unused = [0] * self._unused(len(ids))
        filled_up = (torch.tensor([*numbers, *unused], device=self.device) for numbers in (ids, positions))
        return self.run(*filled_up, through)[: len(ids)]

    def _unused(self, count: int) -> int:
        """One row of small weights begins sooner in company, and of large ones it is read sooner; not by Intel's."""
        if not self.by_fours:
            return 0
        if count > 1:
            return unused_rows(count)
        if self.size < LARGE:
            return LEAST - 1
        return 0 if self.one_by_one else WHOLE - 1

    def run(self, ids: Tensor, positions: Tensor, through: Pass) -> Tensor:
        """Tokens (B,), each at its position (B,), `through` one block after the other: (B, C), after the last norm."""
        x, rotation = self.wte(ids), None  # (B, C)
        if self.wpe is not None:
            x = x + self.wpe(positions)
        else:
            cos, sin = rotary_angles(positions, self.config.head_size)
            rotation = cos[:, None, None], sin[:, None, None]  # (B, 1, 1, hs)
        for layer, block in enumerate(self.blocks):
            x = through(layer, block, x, rotation)
        return self.ln_f(x)

    def logits(self, states: Tensor) -> Tensor:
        """(B, C) after the last norm -> (B, vocab_size) float32."""
        with threads_for(pass_work(self.size, len(states))):
            rows = F.pad(states, (0, 0, 0, self._unused(len(states))))
            return self.head(rows).float()[: len(states)]

    def _alone(self, cache: KVCache) -> Pass:
        """One text looks back at all that its cache holds."""
        views, seen, position = self._seen(cache)
        return lambda layer, block, x, rotation: block.alone(x, rotation, views[layer], seen, position)

    def _apart(self, caches: Sequence[KVCache], together: Together | None) -> Pass:
        """Those texts that are seated together look back in one go, one by one the others."""
        seated = [] if together is None else together.rows
        alone = [(row, *self._seen(cache)) for row, cache in enumerate(caches) if row not in seated]

        def through(layer: int, block: Block, x: Tensor, rotation: Rotation) -> Tensor:
            qkv = block.ask(x, rotation)[: len(caches)]
            looked = x.new_empty(len(caches), x.shape[1])
            if together is not None:
                looked[seated] = together.look(layer, qkv[seated])
            for row, views, seen, position in alone:
                looked[row] = look_alone(qkv[row : row + 1], *views[layer], seen, position)
            return block.answer(x, looked)

        return through

    def _seen(self, cache: KVCache) -> tuple[list[tuple[Tensor, Tensor, Tensor]], Seen, int]:
        """What a text's next token needs of each layer, what it sees, and its position."""
        views, rows = cache.views()
        length = cache.length + 1
        start = self.hidden.shape[1] - STEP - length  # the first `length` are 0, the rest up to a whole STEP -inf
        hidden = self.hidden[:, start : start + whole_steps(length)]
        return views, Seen(*rows, hidden, keys_first(self.device)), cache.length


def is_plain(model: GPT) -> bool:
    """Whether a `Decoder` computes what this model does: our own blocks, not in training."""
    return type(model) is GPT and not model.training and all(type(block) is TransformerBlock for block in model.h)
