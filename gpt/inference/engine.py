"""Many texts, one model: whoever is writing at the same moment shares a step, so the weights are read once for all.

There is no worker that could die. Whoever asks while nobody computes leads a round for everybody who has asked; then
whoever waits next takes over. Alone this costs nothing, and together it is continuous batching: a text joins with its
next token and leaves by not asking. Prompts that come at once are read in one pass, long ones in pieces, so that
nobody's stream waits for more than one.

Each text has a cache of its own, and each row of a product is taken as if alone: what somebody gets does not depend on
who else is there.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.edits import Edits
from gpt.inference.admission import Seats
from gpt.inference.decode import Decoder, is_plain
from gpt.inference.interrupts import interrupts_later
from gpt.inference.products import LARGE, matrix_numbers, pass_work
from gpt.inference.recorded import Recorder
from gpt.inference.threads import keep_helpers, threads_for
from gpt.inference.zero_gpu import on_zero_gpu
from gpt.model import GPT

SEATS = 32  # texts that are written at once
PIECE = 32  # tokens of a prompt that are read in one round when others write
MAX_ROWS = 64  # texts in one step
PROMPT_ROWS = 128  # tokens of prompts in one pass
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

    def fail(self, error: Exception) -> None:
        """Nothing of it is read: the cache is as it was."""
        self.cache.crop(self.cache.length - sum(map(len, self.states)))
        self.error = error
        self.ready.set()


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

        That thread keeps its helpers (see `gpt.inference.threads`), and what oneDNN keeps for each thread is kept once: a kernel
        for each number of rows.
        """
        with self._change:
            rows = sum(one.left for one in self._asked)
        if rows == 1 and self.size < LARGE:
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
        piece = max(len(one.ids) for one in asked) if len(asked) == 1 else PIECE
        for several in self._passes(asked, piece):
            self._pass(several, piece)
        with self._change:
            self._asked = [one for one in asked if one.left] + self._asked
            self.last_rows, self._last_seconds = len(asked), time.perf_counter() - began

    def _gather(self) -> None:
        """Wait a moment for those who were there a round ago and are choosing their token now."""
        with self._change:
            patience = min(PATIENCE * self._last_seconds, LONGEST_WAIT)
            self._change.wait_for(lambda: len(self._asked) >= self.last_rows, timeout=patience)

    def _passes(self, asked: list[Asked], piece: int) -> Iterator[list[Asked]]:
        """Who is read in one pass with whom: steps with steps, prompts with prompts, and everybody with edits alone."""
        shared = [one for one in asked if one.edits is None and self.decoder is not None]
        steps = [one for one in shared if len(one.ids) == 1]
        prompts = [one for one in shared if len(one.ids) != 1]
        for start in range(0, len(steps), MAX_ROWS):
            yield steps[start : start + MAX_ROWS]
        several: list[Asked] = []
        rows = 0
        for one in prompts:
            size = min(piece, one.left)
            if several and rows + size > PROMPT_ROWS:
                yield several
                several, rows = [], 0
            several.append(one)
            rows += size
        if several:
            yield several
        yield from ([one] for one in asked if one not in shared)

    @torch.inference_mode()
    def _pass(self, asked: list[Asked], count: int) -> None:
        """The next `count` tokens of each."""
        parts = [one.ids[len(one.ids) - one.left :][:count] for one in asked]
        lengths = [one.cache.length for one in asked]
        read = [one for one, part in zip(asked, parts, strict=True) if len(part) == one.left]
        try:
            states = self._states(asked, parts)
            last = [state[-1:] for one, state in zip(asked, states, strict=True) if one in read]
            outlooks = self._outlooks(torch.cat(last)) if read else []
        except Exception as error:
            for one, length in zip(asked, lengths, strict=True):
                one.cache.crop(length)
            if len(asked) == 1:
                asked[0].fail(error)
            else:  # who is it? alone, everybody fails or goes on for himself
                for one in asked:
                    self._pass([one], count)
            return
        for one, state in zip(asked, states, strict=True):
            one.states.append(state)
        for one, outlook in zip(read, outlooks, strict=True):
            one.finish(outlook)
        for one in read:
            one.ready.set()

    def _states(self, asked: list[Asked], parts: list[Sequence[int]]) -> Sequence[Tensor]:
        """Of each (T, C)."""
        caches = [one.cache for one in asked]
        if self.decoder is None or asked[0].edits is not None:  # a matter for the model itself, one by one
            idx = torch.tensor([parts[0]], device=self.model.device)
            with threads_for(pass_work(self.size, len(parts[0]))):
                return self.model.hidden_states(idx, cache=caches[0], edits=asked[0].edits)
        if len(asked[0].ids) > 1:
            return self.decoder.read(parts, caches)
        ids = [part[0] for part in parts]
        if self.recorder is not None:
            lengths = [cache.length for cache in caches]
            try:
                return [self.recorder.step(*text) for text in zip(ids, caches, strict=True)]
            except RuntimeError:  # no graphs on this GPU, or no memory for them: go on without
                self.recorder = None
                for cache, length in zip(caches, lengths, strict=True):
                    cache.crop(length)
        return self.decoder.step(ids, caches)[:, None]

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
