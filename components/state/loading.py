"""Loading a model with progress messages."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress

from components.state.session import Session
from components.state.snapshot import Message
from gpt import LoadedModel, get_model
from gpt.background import Cancelled, Progress, run_with_progress


def load_with_progress(session: Session, name: str) -> Generator[None, None, LoadedModel]:
    """Return the shared model with that name; yields while it loads, with its progress in `session.progress`.

    The model loads in its own thread, which continues if a waiting caller is cancelled. Raises the same errors as
    `get_model`.
    """

    def load(progress: Progress) -> LoadedModel:
        def report(done: int, total: int) -> None:
            with suppress(Cancelled):
                progress(done, total)

        return get_model(name, report)

    def show(done: int, total: int) -> None:
        key = "status.downloading" if total else "status.loading"
        session.progress = Message(key, {"done": f"{done / 1e6:.0f}", "total": f"{total / 1e6:.0f}"})

    try:
        loaded = yield from run_with_progress(load, show)
    finally:
        session.progress = None
    if name == session.model:
        session.loaded = loaded
    return loaded
