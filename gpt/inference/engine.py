"""Continuous batching: texts that are generated at the same time share forward passes.

Each round reads the next token of each text and the next chunk of each prompt. If the engine is idle, a caller runs its
own request. Requests that arrive meanwhile run in a worker thread, which all models in the process share.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.edits import Edits
from gpt.inference.admission import AdmissionQueue
from gpt.inference.batched_decode import batched_hidden_states, can_batch
from gpt.inference.decode_cache import MAX_ROWS, DecodeCache
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inference.threads import SMALL_WORK, threads_for
from gpt.model import GPT
from gpt.sampling import entropy_bits

MAX_TEXTS = MAX_ROWS  # maximum number of concurrent texts
CHUNK_TOKENS = 32  # prompt tokens per round and request when there are several requests
ROUND_MULTIPLICATIONS = 2**34  # limit on the work for a round's prompts; takes 0.5 s on two cores
BATCH_TOKENS = 128  # maximum tokens per forward pass; a single request may exceed it
GATHER_SHARE = 0.5  # longest wait for stragglers, as a fraction of the last round's duration
GATHER_SECONDS = 0.02  # longest wait for stragglers, in seconds
WORKER = 0  # value of `_leader` for the worker; no thread has this id
LARGE_MODEL = 2**25  # number of linear weights; a model this large exceeds any CPU cache, so two threads read it faster


@dataclass(frozen=True)
class NextTokenDistribution:
    """Next-token prediction. logits: (vocab_size,), float32. log_sum: logsumexp of the logits. entropy: in bits."""

    logits: Tensor
    log_sum: float
    entropy: float


@dataclass(eq=False)
class ReadRequest:
    """A request to read ids into one text's cache, with a callback that receives the result."""

    ids: Sequence[int]
    cache: KVCache
    edits: Edits | None
    on_read: Callable[[Tensor, NextTokenDistribution], Any]
    states: list[Tensor] = field(default_factory=list)  # states of the chunks read so far
    result: Any = None
    error: BaseException | None = None
    called: bool = False  # whether `on_read` has started, after which the cache keeps the tokens
    done: threading.Event = field(default_factory=threading.Event)
    thread: int = field(default_factory=threading.get_ident)  # thread of the caller

    def __post_init__(self) -> None:
        self.start = self.cache.length

    @property
    def n_read(self) -> int:
        return sum(map(len, self.states))

    def finish(self, distribution: NextTokenDistribution) -> None:
        """Call `on_read` with the result."""
        self.called = True
        try:
            self.result = self.on_read(torch.cat(self.states), distribution)
        except BaseException as error:
            self.error = error
            if is_interrupt(error):
                raise
        finally:
            self.done.set()

    def fail(self, error: BaseException) -> None:
        """End the request with an error and restore the cache."""
        self.cache.crop(min(self.start, self.cache.length))
        self.error = error
        self.done.set()


class Engine:
    """Runs the forward passes for all texts of one model in this process.

    max_texts: maximum number of concurrent texts. n_tokens: number of tokens read so far. stopped: whether to stop
    generation before the next token.
    """

    def __init__(self, model: GPT, max_texts: int = MAX_TEXTS) -> None:
        self.model = model
        self.admission = AdmissionQueue(max_texts)
        self.n_tokens = 0
        self.stopped = False
        self.multiplications_per_token = multiplications_per_token(model)
        self._round_tokens = max(CHUNK_TOKENS, ROUND_MULTIPLICATIONS // max(1, self.multiplications_per_token))
        self._can_batch = can_batch(model)
        self._decode_cache = DecodeCache()
        self._is_large = self.multiplications_per_token >= LARGE_MODEL
        self._requests: list[ReadRequest] = []  # one per caller of `read`
        self._leader: int | None = None  # thread that runs the rounds: a caller's thread, or WORKER
        self._n_expected = 0  # number of texts likely to share the next round
        self._last_seconds = 0.0  # duration of the last round
        self._changed = threading.Condition()  # guards the attributes above
        self._round_lock = threading.Lock()  # held while caches are written

    @property
    def copied_bytes(self) -> int:
        """Size of the copies of keys and values for batched attention, in bytes."""
        return self._decode_cache.n_bytes

    def limit_copies(self, free_bytes: Callable[[], int]) -> None:
        """Limit the growth of `copied_bytes`. Texts whose copies do not fit run attention separately."""
        self._decode_cache.free_bytes = free_bytes

    def trim(self) -> None:
        """Free copies that no round has needed since the last call."""
        with self._round_lock:
            self._decode_cache.trim()

    def read(
        self,
        ids: Sequence[int],
        cache: KVCache,
        edits: Edits | None = None,
        on_read: Callable[[Tensor, NextTokenDistribution], Any] = lambda *read: read,
    ) -> Any:
        """Read tokens into a cache and return the result of `on_read`.

        cache: must have batch size 1 and room for all ids, and must not be used elsewhere in the meantime.
        on_read: called with the states (T, C) after the final norm and the distribution after the last token, in the
            thread that runs the rounds. Calls never overlap.
        Whatever the model, the edits and `on_read` raise, SystemExit included, propagates to this caller and no other.
        The cache is then restored unless `on_read` was called. The same applies to a KeyboardInterrupt at any point.
        """
        request = ReadRequest(ids, cache, edits, on_read)
        try:
            self._join(request)
            while self._leader == request.thread and not request.done.is_set():
                self._run_round()
            request.done.wait()
        finally:
            self._leave(request)
        if request.error is not None:
            raise request.error
        return request.result

    @torch.inference_mode()
    def logits(self, states: Tensor) -> Tensor:
        """Compute logits from final-norm states: (B, C) -> (B, vocab_size), float32."""
        with self._threads(len(states)):
            return self.model.logits(states).float()

    @torch.inference_mode()
    def distribution(self, state: Tensor) -> NextTokenDistribution:
        """Compute the next-token distribution from a final-norm state (C,)."""
        with self._threads(1):
            return self._distributions(state[None])[0]

    def _threads(self, n_tokens: int) -> AbstractContextManager[None]:
        """Return a context manager that sets the number of threads for a pass."""
        return threads_for(max(self.multiplications_per_token * n_tokens, SMALL_WORK if self._is_large else 0))

    def _join(self, request: ReadRequest) -> None:
        with self._changed:
            # An interrupted call from this thread may have left its request behind.
            self._requests = [other for other in self._requests if other.thread != request.thread] + [request]
            if self._leader in (None, request.thread):
                self._leader = request.thread
            self._changed.notify_all()

    def _leave(self, request: ReadRequest) -> None:
        with self._changed:
            self._requests = [other for other in self._requests if other is not request]
            if self._leader == request.thread:
                self._continue()
        if not request.done.is_set():  # interrupted; a round may still be reading it
            with self._round_lock:
                if not request.called and not request.done.is_set():
                    request.cache.crop(request.start)

    def _continue(self) -> None:
        """Let the worker run the remaining requests."""
        with self._changed:
            self._leader = WORKER if self._requests else None
            if self._leader == WORKER:
                worker(os.getpid()).submit(self._run_in_worker)

    def _run_in_worker(self) -> None:
        try:
            self._run_round()
            self._gather()
        except BaseException as error:  # the round itself failed, not one of its requests
            for request in self._unfinished():
                request.fail(error)
        finally:
            self._continue()

    def _run_round(self) -> None:
        """Read one token of each text and, if time allows, a chunk of each prompt."""
        began = time.perf_counter()
        with self._round_lock:
            requests = self._unfinished()
            chunk = CHUNK_TOKENS if len(requests) > 1 else self._round_tokens
            for batch in self._batches(self._of_round(requests, chunk), chunk):
                self._run_batch(batch, chunk)
        with self._changed:
            self._n_expected = len({id(request.cache) for request in (*requests, *self._unfinished())})
            self._last_seconds = time.perf_counter() - began

    def _unfinished(self) -> list[ReadRequest]:
        with self._changed:
            return [request for request in self._requests if not request.done.is_set()]

    def _gather(self) -> None:
        """Wait briefly for the texts in the last round to send their next requests."""
        with self._changed:
            timeout = min(GATHER_SHARE * self._last_seconds, GATHER_SECONDS)
            self._changed.wait_for(lambda: len(self._unfinished()) >= self._n_expected, timeout=timeout)

    def _of_round(self, requests: Sequence[ReadRequest], chunk: int) -> list[ReadRequest]:
        """Return all requests with one token left, and as many prompts as fit into `_round_tokens` tokens.

        Prompts with the fewest tokens read so far come first, so that all prompts take turns.
        """
        chosen, n_prompt_tokens = [], 0
        for request in sorted(requests, key=lambda request: request.n_read):
            size = min(chunk, len(request.ids) - request.n_read)
            if size == 1:
                chosen.append(request)
            elif n_prompt_tokens < self._round_tokens:
                chosen.append(request)
                n_prompt_tokens += size
        return chosen

    def _batches(self, requests: Sequence[ReadRequest], chunk: int) -> Iterator[list[ReadRequest]]:
        """Yield the requests for each forward pass. A request with edits other than steering gets its own pass."""
        batch: list[ReadRequest] = []
        n_tokens = 0
        for request in requests:
            if not self._shares(request):
                yield [request]
                continue
            size = min(chunk, len(request.ids) - request.n_read)
            if batch and n_tokens + size > BATCH_TOKENS:
                yield batch
                batch, n_tokens = [], 0
            batch.append(request)
            n_tokens += size
        if batch:
            yield batch

    @torch.inference_mode()
    def _run_batch(self, batch: list[ReadRequest], chunk: int) -> None:
        """Read the next `chunk` tokens for each request."""
        parts = [request.ids[request.n_read :][:chunk] for request in batch]
        is_last = [request.n_read + len(part) == len(request.ids) for request, part in zip(batch, parts, strict=True)]
        try:
            for request in batch:
                request.cache.crop(request.start + request.n_read)  # drop the positions from an interrupted pass
            with self._threads(sum(map(len, parts))):
                states = self._hidden_states(batch, parts)
                ends = [state[-1] for state, last in zip(states, is_last, strict=True) if last]
                distributions = iter(self._distributions(torch.stack(ends)) if ends else [])
        except BaseException as error:
            if is_interrupt(error):
                raise
            if len(batch) == 1:
                batch[0].fail(error)
            else:  # retry separately, so that only the faulty request fails
                for request in batch:
                    self._run_batch([request], chunk)
            return
        self.n_tokens += sum(map(len, parts))
        for request, state, last in zip(batch, states, is_last, strict=True):
            request.states.append(state)
            if last:
                request.finish(next(distributions))

    def _hidden_states(self, batch: list[ReadRequest], parts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Compute the states of each request, (T, C)."""
        if self._shares(batch[0]):
            caches = [request.cache for request in batch]
            steering = [() if request.edits is None else request.edits.steering for request in batch]
            return batched_hidden_states(self.model, parts, caches, self._decode_cache, steering)
        idx = torch.tensor([parts[0]], device=self.model.device)
        return list(self.model.hidden_states(idx, cache=batch[0].cache, edits=batch[0].edits))

    def _shares(self, request: ReadRequest) -> bool:
        """Return whether a request can share a forward pass with others."""
        return self._can_batch and (request.edits is None or request.edits.only_steers)

    def _distributions(self, states: Tensor) -> list[NextTokenDistribution]:
        """Compute the next-token distribution for each of the states (B, C)."""
        logits = self.model.logits(states).float()
        log_sum = logits.logsumexp(dim=-1)
        entropy = entropy_bits(logits.softmax(dim=-1))
        rows = (row.clone() for row in logits)  # a view would keep the whole batch's logits in memory
        return [NextTokenDistribution(*each) for each in zip(rows, log_sum.tolist(), entropy.tolist(), strict=True)]


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is a Ctrl-C, which Python raises in the main thread, whatever that is running."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


@cache
def worker(process: int) -> ThreadPoolExecutor:
    """Return the worker thread for a process. A forked process needs its own."""
    return ThreadPoolExecutor(1, thread_name_prefix="forward passes")
