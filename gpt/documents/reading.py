"""What a model made of the text that it has read: enough to look at every position without another pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.documents.branch_cache import Shelf
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.engine import Engine, Outlook

BRANCH_MEMORY = 2**28  # bytes
T = TypeVar("T")


class Reading:
    """Keys, values, queries and the final hidden state of each position of one text, and of branches that were left.

    A text is a path of numbered tokens. `leave` puts what lies behind a fork on a shelf, `resume` takes back what is
    there for the new path, and `read` runs the model over the rest: no token is kept twice.
    """

    def __init__(self, engine: Engine, edits: Edits | None, branch_memory: int) -> None:
        self.engine, self.model = engine, engine.model
        self.edits = None if edits == Edits() else edits
        config, where = self.model.config, {"dtype": self.model.dtype, "device": self.model.device}
        self.cache = KVCache(config, **where, keep_queries=True)
        self.states = torch.empty(config.block_size, config.n_embd, **where)
        self.shelf = Shelf(branch_memory)
        self._newest: tuple[int, Outlook] | None = None  # of a position, the one that was asked for last

    def copy(self) -> Reading:
        """The same, to go on with on its own."""
        other = Reading(self.engine, self.edits, self.shelf.memory)
        other.cache.copy_(self.cache)
        other.states[: self.length] = self.states[: self.length]
        other.shelf = self.shelf.copy()
        return other

    @property
    def length(self) -> int:
        """How many positions have been read."""
        return self.cache.length

    def leave(self, path: Sequence[int], start: int) -> None:
        """Put everything from position `start` on aside: another path parts from this one there."""
        if start < self.length:
            self.shelf.put(path[start : self.length], self._rows(), start)
            self.cache.crop(start)
            self._newest = None

    def resume(self, path: Sequence[int]) -> None:
        """Take back what was put aside of this path."""
        unread = path[self.length : self.model.config.block_size]
        self.cache.advance(self.shelf.take(unread, self._rows(), self.length))

    def read(self, ids: Sequence[int], path: Sequence[int], then: Callable[[], T] = lambda: None) -> T:
        """One pass over what is unread, as far as the context goes; then call `then`, and return what it gives.

        ids: of the tokens of the path.
        """
        start, end = self.length, min(len(ids), self.model.config.block_size)
        if start == end:
            return then()

        def keep(states: Tensor, outlook: Outlook) -> T:
            self.states[start:end] = states
            self._newest = end - 1, outlook
            self.shelf.forgotten.difference_update(path[start:end])
            return then()

        return self.engine.read(ids[start:end], self.cache, self.edits, keep)

    @torch.inference_mode()
    def logits(self, position: int) -> Tensor:
        """(vocab_size,) float32: the scores of what may follow a position."""
        if not 0 <= position < self.length:
            raise GPTError("position.not_read", position=position, n=self.length)
        if self._newest is not None and self._newest[0] == position:
            return self._newest[1].logits
        return self.engine.logits(self.states[position : position + 1])[0]

    def outlook(self, position: int) -> Outlook:
        """What may follow a position."""
        if self._newest is None or self._newest[0] != position:
            self._newest = position, self.engine.outlook(self.states[position])
        return self._newest[1]

    @torch.inference_mode()
    def attn_weights(self, layer: int, head: int | None = None) -> Tensor:
        """(length, length): who looked at whom, in one head, or averaged over the heads for None."""
        config = self.model.config
        if not 0 <= layer < config.n_layer:
            raise GPTError("layer.unknown", layer=layer, last=config.n_layer - 1)
        if head is not None and not 0 <= head < config.n_head:
            raise GPTError("head.unknown", head=head, last=config.n_head - 1)
        weights = self.cache.attn_weights(layer)[0]  # (nh, S, S)
        return weights.mean(dim=0) if head is None else weights[head]

    def fork(self, batch_size: int, max_length: int) -> KVCache:
        """A cache for a batch of texts that all go on from here."""
        return self.cache.fork(self.model.config, batch_size, max_length)

    def rows(self, start: int) -> tuple[Tensor, ...]:
        """All that is kept of the positions from `start` on, in memory of its own."""
        return tuple(rows[..., start : self.length, :].clone() for rows in self._rows())

    def take(self, start: int, rows: Sequence[Tensor]) -> None:
        """Put in what another reading of the same text gave as its `rows` from `start` on."""
        self.cache.crop(min(start, self.length))
        self._newest = None
        count = rows[0].shape[-2]
        for mine, theirs in zip(self._rows(), rows, strict=True):
            mine[..., start : start + count, :] = theirs
        self.cache.advance(count)

    def _rows(self) -> tuple[Tensor, ...]:
        """All that is kept of a position: tensors with the positions in the dimension before the last."""
        return self.cache.k, self.cache.v, self.cache.q, self.states
