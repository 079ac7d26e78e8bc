"""Views for the Inside tab."""

from __future__ import annotations

from typing import Any

from components.i18n import t
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.inside.state import InsideState
from components.tabs.inside.views import embeddings, head_stages, machine, stream
from gpt.models.memory import format_bytes


def notice(s: Snapshot) -> dict[str, Any]:
    """Explain why the text is missing or only partly shown."""
    state = s.state(InsideState)
    if s.text is None:
        return {"text": t("error.no_text")}
    if state.reading:
        return {"text": t("inside.reading", n=f"{state.reading:,}")}
    recording, total = state.recording, s.text.n_read
    if recording is None or recording.document is not s.text.document or total <= recording.limit:
        return {"text": ""}
    memory = format_bytes(recording.max_bytes)
    return {"text": t("inside.too_long", n=recording.limit, total=total, memory=memory)}


def trace_said(s: Snapshot) -> dict[str, Any]:
    """Describe the saved file until the text changes."""
    file = s.state(InsideState).trace_file
    if file is None or s.text is None or file.version != s.text.version:
        return {"text": ""}
    size = format_bytes(file.n_bytes)
    return {"text": t("trace.saved", first=file.first, last=file.last, size=size)}


VIEWS = (
    View("inside-notice", notice),
    View("trace-said", trace_said),
    *machine.VIEWS,
    *head_stages.VIEWS,
    *stream.VIEWS,
    *embeddings.VIEWS,
)
