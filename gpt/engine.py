"""Many texts, one model: whoever is writing at the same moment shares a step, so the weights are read once for all.

There is no worker that could die. Whoever asks while nobody computes leads a round for everybody who has asked; then
whoever waits next takes over. Alone this costs nothing, and together it is continuous batching: a text joins with its
next token and leaves by not asking. Long prompts are read in pieces, so that nobody's stream waits for more than one.

Each text has a cache of its own, and each row of a product is taken as if alone: what somebody gets does not depend on
who else is there.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.decode import Decoder, is_plain, matrix_numbers
from gpt.edits import Edits
from gpt.interrupts import interrupts_later
from gpt.model import GPT
from gpt.recorded import Recorder
from gpt.seats import Seats
from gpt.threads import SMALL, keep_helpers, threads_for
from gpt.zero import on_zero_gpu

SEATS = 32  # texts that are written at once
PIECE = 32  # tokens of a prompt that are read in one round when others write
MAX_ROWS = 64  # texts in one step
PATIENCE = 0.5  # of a round's time: how long to wait for those who were in the last one
LONGEST_WAIT = 0.02  # seconds
LEAST = -1e30  # of a logarithm: a probability of 0 has no information, and 0 times minus infinity is no number


@dataclass(frozen=True)
class Outlook:
    """What may follow a text. logits: (vocab_size,) float32; log_sum: of their exponentials; entropy: in bits."""

    logits: Tensor
    log_sum: float
    entropy: float


@dataclass(eq=False)
class Asked:
    """What one text wants to have read, and what is to be done with it then."""

    ids: Sequence[int]
    cache: KVCache
    edits: Edits | None
    then: Callable[[Tensor, Outlook], Any]
    states: list[Tensor] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None
    leads: bool = False
    ready: threading.Event = field(default_factory=threading.Event)

    @property
    def left(self) -> int:
        return 0 if self.error is not None else len(self.ids) - sum(map(len, self.states))

    def finish(self, outlook: Outlook) -> None:
        """All is read."""
        try:
            self.result = self.then(torch.cat(self.states) if len(self.states) > 1 else self.states[0], outlook)
        except Exception as error:
            self.error = error


class Engine:
    """The steps of everybody who writes with one model, in one process."""

    def __init__(self, model: GPT) -> None:
        self.model = model
        self.decoder = Decoder(model) if is_plain(model) else None
        graphs = self.decoder is not None and model.device.type == "cuda" and not on_zero_gpu()
        self.recorder = Recorder(self.decoder) if graphs else None
        self.size = matrix_numbers(model)
        self.seats = Seats(SEATS)
        self.last_rows = 0  # texts in the last round
        self._asked: list[Asked] = []
        self._busy = False
        self._last_seconds = 0.0
        self._change = threading.Condition()

    def read(
        self,
        ids: Sequence[int],
        cache: KVCache,
        edits: Edits | None = None,
        then: Callable[[Tensor, Outlook], Any] = lambda *read: read,
    ) -> Any:
        """Read tokens into a cache, and return what `then` makes of their states and of what may follow the last.

        cache: of batch size 1, with room for all of them; nobody else may use it meanwhile. then: called with states
        (T, C), after the last norm, and an Outlook, by whoever computed them; many threads that each choose their
        token at the same moment would only stand in each other's way. Raises as the model and `then` do; the cache is
        then as it was, unless `then` raised.
        """
        mine = Asked(ids, cache, edits, then)
        with interrupts_later():
            with self._change:
                self._asked.append(mine)
                mine.leads = not self._busy
                self._busy = True
                self._change.notify_all()
            if not mine.leads:
                mine.ready.wait()
            if mine.leads:
                try:
                    while mine.left:
                        self._lead()
                finally:
                    self._hand_over(mine)
        if mine.error is not None:
            raise mine.error
        return mine.result

    @torch.inference_mode()
    def logits(self, states: Tensor) -> Tensor:
        """(B, C) states -> (B, vocab_size) float32."""
        return self.model.lm_head(states).float() if self.decoder is None else self.decoder.logits(states)

    @torch.inference_mode()
    def outlook(self, state: Tensor) -> Outlook:
        """What may follow a text whose last state is (C,)."""
        return self._outlooks(state[None])[0]

    def _lead(self) -> None:
        """Do a round: in the same thread as all others, but for a small step of one text, sooner done than handed over.

        That thread keeps its helpers (see `gpt.threads`), and what oneDNN keeps for each thread is kept once: a kernel
        for each number of rows.
        """
        with self._change:
            rows = sum(one.left for one in self._asked)
        if rows == 1 and self.size < SMALL:
            self._round()
            return
        try:
            done = self._thread.submit(self._round)
        except RuntimeError:  # Python is about to end, and starts nothing new
            self._round()
        else:
            done.result()

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "steps", keep_helpers)

    def _round(self) -> None:
        """One token of everybody who waits for one, and a piece of every prompt."""
        self._gather()
        with self._change:
            asked = self._asked
            self._asked = []
        began = time.perf_counter()
        together = [one for one in asked if len(one.ids) == 1 and one.edits is None and self.decoder is not None]
        apart = [one for one in asked if one not in together]
        for start in range(0, len(together), MAX_ROWS):
            self._step(together[start : start + MAX_ROWS])
        piece = max(len(one.ids) for one in asked) if len(asked) == 1 else PIECE
        for one in apart:
            self._read(one, piece)
        with self._change:
            self._asked = [one for one in asked if one.left] + self._asked
            self.last_rows, self._last_seconds = len(asked), time.perf_counter() - began

    def _gather(self) -> None:
        """Wait a moment for those who were there a round ago and are choosing their token now."""
        with self._change:
            patience = min(PATIENCE * self._last_seconds, LONGEST_WAIT)
            self._change.wait_for(lambda: len(self._asked) >= self.last_rows, timeout=patience)

    @torch.inference_mode()
    def _step(self, asked: list[Asked]) -> None:
        caches = [one.cache for one in asked]
        lengths = [cache.length for cache in caches]
        try:
            states = self._states([one.ids[0] for one in asked], caches)
            outlooks = self._outlooks(states)
        except Exception:  # who is it? alone, everybody fails or goes on for himself
            for one, length in zip(asked, lengths, strict=True):
                one.cache.crop(length)
                self._read(one, 1)
            return
        for row, one in enumerate(asked):
            one.states.append(states[row : row + 1])
            one.finish(outlooks[row])
        for one in asked:
            one.ready.set()

    def _states(self, ids: list[int], caches: list[KVCache]) -> Tensor:
        if self.recorder is None:
            return self.decoder.step(ids, caches)
        try:
            return torch.cat([self.recorder.step(*text) for text in zip(ids, caches, strict=True)])
        except RuntimeError:  # no graphs on this GPU, or no memory for them: go on without
            self.recorder = None
            raise

    @torch.inference_mode()
    def _read(self, one: Asked, count: int) -> None:
        """The next `count` tokens of one text; edits are a matter for the model itself."""
        done, length = len(one.ids) - one.left, one.cache.length
        ids = one.ids[done : done + count]
        try:
            if one.edits is None and self.decoder is not None:
                one.states.append(self.decoder.read(ids, one.cache))
            else:
                idx = torch.tensor([ids], device=self.model.device)
                with threads_for(self.size * len(ids)):
                    one.states.append(self.model.hidden_states(idx, cache=one.cache, edits=one.edits)[0])
            if not one.left:
                one.finish(*self._outlooks(one.states[-1][-1:]))
        except Exception as error:
            one.error = error
            one.cache.crop(length - done)
        if not one.left:
            one.ready.set()

    def _outlooks(self, states: Tensor) -> list[Outlook]:
        """Of each of (B, C) states, in one go."""
        logits = self.logits(states)
        with threads_for(100 * logits.numel()):
            log_p = logits.log_softmax(dim=-1)  # (B, vocab_size)
            log_sum = logits.amax(dim=-1) - log_p.amax(dim=-1)  # (B,)
            surprise = log_p.clamp_(min=LEAST).mul_(logits.softmax(dim=-1))
            entropy = [-row.sum().item() / math.log(2) for row in surprise]  # one by one: to the bit as alone
        return [Outlook(*of) for of in zip(logits, log_sum.tolist(), entropy, strict=True)]

    def _hand_over(self, leader: Asked) -> None:
        """The leader leaves: let the one who has waited longest do the next round."""
        with self._change:
            self._asked = [one for one in self._asked if one is not leader]
            for one in self._asked:
                if not one.ready.is_set():
                    one.leads = True
                    one.ready.set()
                    return
            self._busy = False
