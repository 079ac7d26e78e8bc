"""Continuous batching: texts that are generated at the same time share forward passes.

The callers run the passes. A caller that finds no other one running them reads the next token of each text that waits,
and the next chunk of each prompt, and hands the results out.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor

from gpt.background import SMALL_WORK, openmp, release_threads
from gpt.cache import KVCache
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.admission import AdmissionQueue
from gpt.inference.batched_decode import MAX_ROWS, DecodeCache, batched_hidden_states, can_batch
from gpt.inference.packed_weights import multiplications_per_token
from gpt.model import GPT

MAX_TEXTS = MAX_ROWS  # maximum number of concurrent texts
CHUNK_TOKENS = 32  # prompt tokens per pass and text when there are several texts
BATCH_TOKENS = 128  # maximum prompt tokens per pass when there are several texts
PASS_MULTIPLICATIONS = 2**34  # limit on the work for a pass's prompts; takes 0.5 s on two cores
GATHER_SHARE = 1.0  # longest wait for stragglers, as a fraction of the last pass's duration
GATHER_SECONDS = 0.02  # longest wait for stragglers, in seconds
LARGE_MODEL = 2**25  # number of linear weights; a model this large exceeds any CPU cache, so two threads read it faster


@dataclass(eq=False)
class ReadRequest:
    """A request to read ids into one text's cache.

    states: final-norm states of the chunks read so far. logits: (vocab_size,), after the last token, once all are read.
    woken: set when it is done, or when the caller is to run the passes. thread: of the caller.
    """

    ids: Sequence[int]
    cache: KVCache
    edits: Edits | None = None
    states: list[Tensor] = field(default_factory=list)
    n_read: int = 0
    logits: Tensor | None = None
    error: BaseException | None = None
    woken: threading.Event = field(default_factory=threading.Event)
    thread: int = field(default_factory=threading.get_ident)

    def __post_init__(self) -> None:
        self.start = self.cache.length
        if self.cache.begin(self.start + len(self.ids)) and self.start:
            raise GPTError("cache.scaling", n=self.cache.n_text)

    @property
    def done(self) -> bool:
        return self.logits is not None or self.error is not None

    def result(self) -> tuple[Tensor, Tensor]:
        """Return the states (T, C) and the logits (vocab_size,), or raise the error."""
        if self.error is not None:
            raise self.error
        assert self.logits is not None
        return self.states[0] if len(self.states) == 1 else torch.cat(self.states), self.logits


class Engine:
    """Runs the forward passes for all texts of one model in this process.

    max_texts: maximum number of concurrent texts. decode_cache: copies of keys and values for batched attention.
    n_tokens: number of tokens read so far. stopped: whether to stop generation before the next token.
    After a pass, its callers wake up one after the other, each when the one before has sampled (see `wake_next`). If
    they sampled at once, they would hand the GIL over at every operation of torch, which takes longer.
    """

    def __init__(self, model: GPT, max_texts: int = MAX_TEXTS) -> None:
        self.model = model
        self.admission = AdmissionQueue(max_texts)
        self.n_tokens = 0
        self.stopped = False
        self.multiplications_per_token = multiplications_per_token(model)
        self._pass_tokens = max(CHUNK_TOKENS, PASS_MULTIPLICATIONS // max(1, self.multiplications_per_token))
        self._can_batch = can_batch(model)
        self.decode_cache = DecodeCache()
        self._requests: list[ReadRequest] = []  # those that can share a pass and are not done
        self._done: deque[ReadRequest] = deque()  # those whose callers sleep until it is their turn
        self._leader: int | None = None  # thread that runs their passes
        self._n_expected = 0  # number of texts likely to share the next pass
        self._last_seconds = 0.0  # duration of the last pass
        self._changed = threading.Condition()  # guards the five attributes above
        self._pass_lock = threading.Lock()  # held while caches are written
        self._documents: WeakSet[Any] = WeakSet()
        self._documents_lock = threading.Lock()

    @property
    def document_bytes(self) -> int:
        with self._documents_lock:
            documents = list(self._documents)
        return sum(document.n_bytes for document in documents)

    def count(self, document: Any) -> None:
        """Include a document in `document_bytes` as long as it exists."""
        with self._documents_lock:
            self._documents.add(document)

    def trim(self) -> None:
        """Free copies of texts. The next pass copies again what it needs."""
        with self._pass_lock:
            self.decode_cache.trim()

    def read(
        self, ids: Sequence[int], cache: KVCache, edits: Edits | None = None, *, samples: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Read tokens into a cache. Returns the states (T, C) after the final norm and the logits after the last token.

        samples: whether the caller is going to call `wake_next`, once it has sampled or failed.
        cache: must have batch size 1 and room for all ids, and must not be used elsewhere in the meantime.
        Whatever the model and the edits raise, SystemExit included, propagates to this caller and no other. The cache
        is then as before. The same applies to a KeyboardInterrupt at any point.
        """
        request = ReadRequest(ids, cache, edits)
        try:
            if self._shares(request):
                self._wait_or_lead(request)
            else:
                self._run([request])
            return request.result()
        except BaseException as error:
            request.error = error  # no later pass reads it
            with self._pass_lock:
                cache.crop(min(request.start, cache.length))
            raise
        finally:
            self._leave(request)
            if not samples:
                self.wake_next()
                release_threads()

    def wake_next(self) -> None:
        """Wake the caller of the next request that is done, if one sleeps. A call too many does no harm."""
        if self._done:
            with self._changed:
                if self._done:
                    self._done.popleft().woken.set()

    def read_together(
        self, texts: Sequence[tuple[Sequence[int], KVCache, Edits | None]]
    ) -> list[tuple[Tensor, Tensor]]:
        """Like `read`, for several texts in shared passes. Raises the first error."""
        requests = [ReadRequest(*text) for text in texts]
        shared = [request for request in requests if self._shares(request)]
        try:
            for group in (shared, *([request] for request in requests if request not in shared)):
                self._run(group)
            return [request.result() for request in requests]
        except BaseException:
            for request in requests:
                request.cache.crop(min(request.start, request.cache.length))
            raise

    @torch.inference_mode()
    def logits(self, states: Tensor) -> Tensor:
        """Compute logits from final-norm states: (B, C) -> (B, vocab_size), float32."""
        with self._threads(len(states)):
            logits = self.model.logits(states).float()
        release_threads()
        return logits

    def _threads(self, n_tokens: int) -> AbstractContextManager[None]:
        per_token = self.multiplications_per_token
        if per_token >= LARGE_MODEL or per_token * n_tokens >= SMALL_WORK:
            return nullcontext()
        torch.get_num_threads()  # see threads_for
        return openmp().limit(limits=1)

    def _shares(self, request: ReadRequest) -> bool:
        """Return whether a request can share a pass with others. Long texts, and edits other than steering, may not."""
        only_steers = request.edits is None or request.edits == Edits(steering=request.edits.steering)
        return self._can_batch and only_steers and not request.cache.is_long

    def _wait_or_lead(self, request: ReadRequest) -> None:
        """Run passes for all requests, or wait for another caller that does, until this one is done."""
        with self._changed:
            # An interrupted call from this thread may have left its request behind.
            self._requests = [other for other in self._requests if other.thread != request.thread] + [request]
            if self._leader in (None, request.thread):
                self._leader = request.thread
            elif len(self._requests) >= self._n_expected:
                self._changed.notify_all()
        while not request.done:
            if self._leader == request.thread:
                self._lead()
                if not request.done:
                    self.wake_next()
            else:
                release_threads()
                request.woken.wait()

    def _leave(self, request: ReadRequest) -> None:
        """Withdraw a request. If its caller led, another takes over."""
        with self._changed:
            self._requests = [other for other in self._requests if other is not request]
            if request in self._done:  # interrupted before its turn
                self._done.remove(request)
            if self._leader == request.thread:
                self._leader = self._requests[0].thread if self._requests else None
                if self._requests:
                    self._requests[0].woken.set()

    def _lead(self) -> None:
        """Wait briefly for the texts of the last pass to send their next requests, and run a pass."""
        with self._changed:
            timeout, n_waiting = min(GATHER_SHARE * self._last_seconds, GATHER_SECONDS), 0
            while len(self._requests) > n_waiting:  # as long as more arrive
                n_waiting = len(self._requests)
                if self._changed.wait_for(lambda: len(self._requests) >= self._n_expected, timeout):
                    break
            requests = list(self._requests)
        began = time.perf_counter()
        with self._pass_lock:
            self._run_pass(requests)
        with self._changed:
            self._n_expected, self._last_seconds = len({*requests, *self._requests}), time.perf_counter() - began
            self._requests = [request for request in self._requests if not request.done]
            self._done.extend(request for request in requests if request.done and request.thread != self._leader)

    def _run(self, requests: Sequence[ReadRequest]) -> None:
        """Run passes for these requests alone until all are done."""
        while not all(request.done for request in requests):
            with self._pass_lock:
                self._run_pass(requests)

    @torch.inference_mode()
    def _run_pass(self, requests: Sequence[ReadRequest]) -> None:
        """Read one token of each text and, up to a limit, a chunk of each prompt."""
        batch = self._batch([request for request in requests if not request.done])
        parts = [request.ids[request.n_read : request.n_read + size] for request, size in batch]
        texts = [request for request, _ in batch]
        try:
            for request in texts:
                request.cache.crop(request.start + request.n_read)  # drop the positions from an interrupted pass
            with self._threads(sum(map(len, parts))):
                states = self._hidden_states(texts, parts) if texts else []
                ends = [i for i, (request, size) in enumerate(batch) if request.n_read + size == len(request.ids)]
                logits = self.model.logits(torch.stack([states[i][-1] for i in ends])).float() if ends else None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise  # Python raises the error of a Ctrl-C in the main thread, whatever that is running
            if len(texts) == 1:
                is_full = isinstance(error, torch.OutOfMemoryError)
                texts[0].error = GPTError("memory.text", device=self.model.device) if is_full else error
            else:  # retry separately, so that only the faulty request fails
                for request in texts:
                    self._run_pass([request])
            return
        for (request, size), state in zip(batch, states, strict=True):
            request.states.append(state)
            request.n_read += size
            self.n_tokens += size
        for row, i in enumerate(ends):
            assert logits is not None
            texts[i].logits = logits[row] if len(ends) == 1 else logits[row].clone()  # a view would keep all rows

    def _batch(self, requests: Sequence[ReadRequest]) -> list[tuple[ReadRequest, int]]:
        """Choose the requests for a pass, and how many tokens to read for each.

        These are all requests with one token left, and prompts up to a limit. Prompts with the fewest tokens read so
        far come first, so that all take turns.
        """
        chunk, room = self._pass_tokens, self._pass_tokens
        if len(requests) > 1:
            chunk, room = CHUNK_TOKENS, min(BATCH_TOKENS, room)
        chosen = []
        for request in sorted(requests, key=lambda request: request.n_read):
            size = min(chunk, len(request.ids) - request.n_read)
            if size == 1 or room > 0:
                chosen.append((request, size))
                room -= size if size > 1 else 0
        return chosen

    def _hidden_states(self, requests: Sequence[ReadRequest], parts: Sequence[Sequence[int]]) -> list[Tensor]:
        if len(requests) == 1:
            idx = torch.tensor([parts[0]], device=self.model.device)
            return [self.model.hidden_states(idx, cache=requests[0].cache, edits=requests[0].edits)[0]]
        caches = [request.cache for request in requests]
        edits = [request.edits for request in requests]
        return batched_hidden_states(self.model, parts, caches, self.decode_cache, edits)
