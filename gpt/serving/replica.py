"""A model in a replica: its engine batches all requests. Does not depend on Ray."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpt.documents.document import common_prefix_length
from gpt.documents.generation import Generation, of_request, replies
from gpt.errors import GPTError
from gpt.inference.cluster import ModelSpec
from gpt.models.sources import load_model

MAX_KEPT_BYTES = 2**29  # limit for the activations of finished texts
REPLY_SECONDS = 0.003  # time to send a reply, and reply interval per other running text
HEALTH_SECONDS = 20.0  # time limit for a forward pass, including the passes queued before it
END = json.dumps({"end": True}) + "\n"


def error_line(error: Exception) -> str:
    """Return an error as the last line of an answer. Errors other than GPTError get a sentence around them."""
    if not isinstance(error, GPTError):
        reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        error = GPTError("cluster.failed", reason=reason[0])
    return json.dumps({"error": [error.key, error.sentence, error.values]}, default=str) + "\n"


class KeptTexts:
    """Activations of recently finished texts, kept for requests that continue these texts."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self.max_bytes = max_bytes
        self._documents: list[Generation] = []  # oldest first
        self._lock = threading.Lock()

    def put(self, document: Generation) -> None:
        """Keep a text. Drops the oldest texts if the total size exceeds max_bytes."""
        with self._lock:
            self._documents.append(document)
            while sum(each.n_bytes for each in self._documents) > self.max_bytes:
                del self._documents[0]

    def take(self, ids: list[int]) -> Generation | None:
        """Remove and return the text that shares the longest prefix with the ids, or None if none matches.

        A text matches if it is a prefix of the ids, or vice versa.
        """

        def shared(document: Generation) -> int:
            n = common_prefix_length(document.ids[: document.n_read], ids)
            return n if n >= min(document.n_read, len(ids)) else 0

        with self._lock:
            best = max(self._documents, key=shared, default=None)
            if best is None or not shared(best):
                return None
            self._documents.remove(best)
            return best


class Replica:
    """A loaded model that continues texts."""

    def __init__(self, spec: ModelSpec) -> None:
        self.loaded = load_model(**spec)
        self._kept = KeptTexts()
        self._health_thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._n_running = 0

    def lines(self, request: dict[str, Any]) -> Generator[str, None, None]:
        """Yield the answer to a request (see `replies`). Closing the generator stops the text."""
        self._n_running += 1
        try:
            document = of_request(self.loaded, request)
            if document.edits is None and (kept := self._kept.take(document.ids)) is not None:
                document.take_activations(kept)
            try:
                for reply in replies(document, request, lambda: REPLY_SECONDS * (self._n_running - 1)):
                    yield json.dumps(reply) + "\n"
            finally:
                if document.edits is None and not document.full:
                    self._kept.put(document)
            yield END
        except Exception as error:
            yield error_line(error)
        finally:
            self._n_running -= 1

    def check_health(self) -> None:
        """Check that the engine can read a token, and free copies of texts.

        Raises TimeoutError after HEALTH_SECONDS.
        """
        cache = self.loaded.model.new_cache(max_length=1)
        self._health_thread.submit(self.loaded.engine.read, [0], cache).result(HEALTH_SECONDS)
        self.loaded.engine.trim()
