"""Save all activations of a text as an .npz file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.limits import MAX_TRACE_BYTES
from components.state.text import Text
from gpt.analysis.tracing import trace_window


@dataclass(frozen=True)
class TraceFile:
    """A saved file. `version` is its text's version; `first` and `last` are the first and last saved positions."""

    version: tuple[int, int]
    first: int
    last: int
    n_bytes: int

    @classmethod
    def write(cls, text: Text, path: Path) -> TraceFile:
        """Trace the text, or only its end if the file would exceed the size limit, and write the file."""
        config, n = text.config, text.n_read
        heads = (config.n_head + 2 * config.kv_heads) * config.head_size
        neurons = (3 if config.gated else 2) * config.ff_size
        bytes_per_position = 4 * config.n_layer * (5 * config.n_embd + heads + neurons + config.n_head * n)
        first = max(0, n - max(1, MAX_TRACE_BYTES // bytes_per_position))
        trace = trace_window(text.loaded.model, text.ids[:n], first, n, text.document.edits)
        trace.save(path)
        return cls(text.version, first, n - 1, path.stat().st_size)
