"""The notice of panels that need a text."""

from __future__ import annotations

from typing import Any

from components.errors import PageError


def no_text(s: Any) -> PageError | None:
    """Return the error for a page without a text that the model has read, or None if there is one."""
    return PageError("error.no_text") if s.text is None or s.text.n_read == 0 else None
