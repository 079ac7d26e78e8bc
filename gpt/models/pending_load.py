"""A model that is being loaded, for all who wait for it."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from gpt.background import Progress
from gpt.models.loading import LoadedModel


@dataclass(eq=False)
class PendingLoad:
    """A load in progress, shared by all callers of `Registry.get` for the model."""

    result: Future[LoadedModel] = field(default_factory=Future)
    bytes_done: int = 0
    bytes_total: int = 0
    thread: threading.Thread = field(init=False)

    def report(self, done: int, total: int) -> None:
        """Store the progress of the download, in bytes."""
        self.bytes_done, self.bytes_total = done, total

    def wait(self, progress: Progress | None) -> LoadedModel:
        """Return the model when it is loaded. progress is called ten times a second, in the waiting thread."""
        while progress is not None and not self.result.done():
            if self.bytes_total:
                progress(self.bytes_done, self.bytes_total)
            wait([self.result], timeout=0.1)
        loaded = self.result.result()
        self.thread.join()  # the thread references the model until it ends
        if progress is not None and self.bytes_total:
            progress(self.bytes_total, self.bytes_total)
        return loaded
