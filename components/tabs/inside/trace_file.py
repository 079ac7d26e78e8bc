"""All activations of the text as an .npz file; one per session, deleted with it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from components.state.text import Text
from gpt.analysis.tracing import trace_window

MAX_BYTES = 2**26  # of the file; only the end of a longer text is included


@dataclass(frozen=True)
class TraceFile:
    """A file in its own folder. version: of its text. first, last: the included positions."""

    path: Path
    version: tuple[int, int]
    first: int
    last: int
    n_bytes: int

    @classmethod
    def write(cls, text: Text) -> TraceFile:
        """Trace the text, or the part of its end within the limit, and write the file."""
        config, n = text.config, text.n_read
        bytes_per_position = 4 * config.n_layer * (8 * config.n_embd + 2 * config.ff_size + config.n_head * n)
        first = max(0, n - max(1, MAX_BYTES // bytes_per_position))
        trace = trace_window(text.loaded.model, text.ids[:n], first, n, text.document.edits)
        path = Path(tempfile.mkdtemp(prefix="glassbox-")) / "trace.npz"
        trace.save(path)
        return cls(path, text.version, first, n - 1, path.stat().st_size)

    def delete(self) -> None:
        """Remove the file and its folder if they exist."""
        shutil.rmtree(self.path.parent, ignore_errors=True)
