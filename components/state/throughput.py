"""How fast a text is being written."""

from __future__ import annotations

import time
from collections.abc import Iterator

from components.i18n import Language, t
from gpt import Generation, Step


class Meter:
    """Counts the tokens of one run and the time that the model took for them, waiting left out."""

    def __init__(self, document: Generation, seed: int) -> None:
        self.document, self.seed = document, seed
        self.count, self.seconds, self.first = 0, 0.0, 0.0

    def timed(self, steps: Iterator[Step], began: float) -> Iterator[Step]:
        """The same steps; began: when the person asked, by time.perf_counter()."""
        while True:
            asked = time.perf_counter()
            step = next(steps, None)
            now = time.perf_counter()
            if step is None:
                return
            self.first = self.first or now - began
            self.count, self.seconds = self.count + 1, self.seconds + now - asked
            yield step

    def sentence(self, language: Language) -> str:
        """Tokens, tokens a second, time to the first, position and context, seed."""
        return t(
            "status.one" if self.count == 1 else "status.running",
            language,
            n=self.count,
            rate=f"{self.count / self.seconds:.0f}" if self.seconds else "–",
            first=f"{1000 * self.first:.0f}",
            position=min(len(self.document.ids), self.document.block_size),
            limit=self.document.block_size,
            seed=self.seed,
        )
