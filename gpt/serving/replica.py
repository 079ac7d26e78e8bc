"""A replica of a deployment: one model, whose engine batches all requests. Does not depend on Ray."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from gpt.cache import KVCache
from gpt.documents.backends import StreamReply, StreamRequest
from gpt.documents.branch_cache import common_prefix_length
from gpt.documents.generation import Generation, replies
from gpt.errors import GPTError
from gpt.inference.cluster import ModelSpec
from gpt.inference.engine import MAX_TEXTS
from gpt.models.loading import LoadedModel
from gpt.models.sources import load_model

MAX_KEPT_BYTES = 2**29  # limit for the activations of finished texts
REPLY_SECONDS = 0.003  # time to send a reply, and reply interval per other running text
HEALTH_SECONDS = 20.0  # time limit for a forward pass, including the passes queued before it


class KeptTexts:
    """Activations of recently finished texts, kept for requests that continue these texts."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self.max_bytes = max_bytes
        self._documents: OrderedDict[int, Generation] = OrderedDict()
        self._numbers, self._lock = count(), threading.Lock()

    def put(self, document: Generation) -> None:
        """Keep a text. Drops the oldest texts if the total size exceeds max_bytes."""
        with self._lock:
            self._documents[next(self._numbers)] = document
            while sum(each.n_bytes for each in self._documents.values()) > self.max_bytes:
                self._documents.popitem(last=False)

    def take(self, ids: list[int]) -> Generation | None:
        """Remove and return the text that shares the longest prefix with the ids, or None if none matches.

        A text matches if it is a prefix of the ids, or vice versa.
        """

        def shared(number: int) -> int:
            document = self._documents[number]
            n = common_prefix_length(document.ids[: document.n_read], ids)
            return n if n >= min(document.n_read, len(ids)) else 0

        with self._lock:
            best = max(self._documents, key=shared, default=None)
            return self._documents.pop(best) if best is not None and shared(best) else None


class Replica:
    """Continues up to MAX_TEXTS texts at the same time, each in its own thread."""

    def __init__(self, spec: ModelSpec) -> None:
        self.loaded: LoadedModel = load_model(
            spec.location,
            precision=spec.precision,  # type: ignore[arg-type]
            **dict(spec.hints),
        )
        self._kept = KeptTexts()
        self._threads = ThreadPoolExecutor(MAX_TEXTS, thread_name_prefix="text")
        self._health_thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._n_running = 0

    async def stream(self, request: StreamRequest) -> AsyncIterator[StreamReply | GPTError]:
        """Stream the replies to a request (see `gpt.documents.generation.replies`). The last may be a GPTError."""
        loop, stopped = asyncio.get_running_loop(), threading.Event()
        made: asyncio.Queue[StreamReply | Exception | None] = asyncio.Queue()

        def put(reply: StreamReply | Exception | None) -> None:
            loop.call_soon_threadsafe(made.put_nowait, reply)

        self._n_running += 1
        writing = loop.run_in_executor(self._threads, self._write, request, put, stopped)
        try:
            while (reply := await made.get()) is not None:
                if isinstance(reply, Exception) and not isinstance(reply, GPTError):
                    raise reply
                yield reply
        finally:
            stopped.set()
            writing.cancel()  # has no effect once it is running
            self._n_running -= 1

    def _write(
        self, request: StreamRequest, put: Callable[[StreamReply | Exception | None], object], stopped: threading.Event
    ) -> None:
        try:
            document = self._document(request)
            try:
                for reply in replies(document, request, self._interval):
                    put(reply)
                    if stopped.is_set():
                        break
            finally:
                if request.edits is None and not document.full:
                    self._kept.put(document)
        except Exception as error:
            put(error)
        finally:
            put(None)

    def _document(self, request: StreamRequest) -> Generation:
        document = Generation.of_request(self.loaded, request)
        if request.edits is None and (kept := self._kept.take(request.ids)) is not None:
            document.take_activations(kept)
        return document

    def _interval(self) -> float:
        return REPLY_SECONDS * (self._n_running - 1)

    async def check_health(self) -> None:
        """Check that the engine can read a token, and free memory that has not been needed since the last check.

        Raises TimeoutError after HEALTH_SECONDS, which makes Ray replace the replica.
        """
        model, loop = self.loaded.model, asyncio.get_running_loop()
        cache = KVCache(model.config, max_length=1, device=model.device, dtype=model.dtype)
        reading = loop.run_in_executor(self._health_thread, self.loaded.engine.read, [0], cache)
        await asyncio.wait_for(reading, HEALTH_SECONDS)
        await loop.run_in_executor(self._health_thread, self.loaded.engine.trim)
