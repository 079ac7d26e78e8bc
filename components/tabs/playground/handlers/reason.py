"""The analysis of the first screen: what the prediction depends on."""

from __future__ import annotations

from collections.abc import Iterator

from components.causes import causes_of
from components.render import Analysis
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.state import Reason, ReasonState
from gpt.background import run_with_progress

MULTIPLICATIONS = 4e9  # a tenth of a second or two: it is measured whenever a person pauses


def wanted(s: Snapshot) -> tuple[object, ...] | None:
    """The text and the position, unless they are known; None while the text changes."""
    if s.text is None or s.text.n_read == 0 or s.generating or s.unwritten is not None:
        return None
    position = s.text.at(s.selection)
    reason = s.state(ReasonState).reason
    return None if reason is not None and reason.belongs_to(s.text, position) else (s.text, position)


def measure(session: Session) -> Iterator[None]:
    """Measure what the token after the selected one depends on: the one that follows it, else the best."""
    with session.lock.reading():
        s = session.snapshot()
        if s.text is None or wanted(s) is None:
            return
        text, position = s.text, s.text.at(s.selection)
        follows = position + 1 < len(text.ids)
        token = text.ids[position + 1] if follows else int(text.document.logits(position).argmax())
        edits = text.document.edits
    ids, model = text.ids[: position + 1], text.loaded.model
    causes = yield from run_with_progress(
        lambda _: causes_of(model, ids, token, edits, MULTIPLICATIONS), lambda *_: None
    )
    session.change(ReasonState, reason=Reason(text.version, position, token, causes))
    yield


ANALYSIS = Analysis(wanted, measure)
