"""Generation: prepare, generate token by token, stop; a single step; clear."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

from components.api import checked_text
from components.state.admission import admitted
from components.state.adoption import remark
from components.state.example import encodable_text
from components.state.loading import load_with_progress
from components.state.selection import NEWEST
from components.state.session import PendingGeneration, Session
from components.state.snapshot import Message
from components.state.throughput import Throughput, measured
from components.tabs.playground.components import PlaygroundState, tail_length
from components.update_rate import min_update_interval
from gpt import Generation, LoadedModel, get_model
from gpt.documents.sliding_window import sliding_steps

UPDATE_SECONDS = 0.02  # between two frames at full speed


def prepare(session: Session, typed: str, seed: str) -> Iterator[None]:
    """Prepare a generation from the prompt and the chosen model; `generate` runs it."""
    session.typed, session.settings = typed, session.settings.with_value("seed", seed)
    yield from _prepare(session, adapt_prompt=False)


def prepare_typed(session: Session) -> Iterator[None]:
    """`prepare` with the current text of the prompt box."""
    yield from _prepare(session, adapt_prompt=False)


def pick_model(session: Session, name: str) -> Iterator[None]:
    """Prepare a generation with another model. The browser sends a choice twice, and again when the list is closed."""
    if name == session.picking or (session.document is not None and name == session.document.loaded.name):
        return
    session.picking = session.model = name
    try:
        yield from _prepare(session, adapt_prompt=True)
    finally:
        session.picking = ""


def fill_prompt(session: Session, text: str) -> None:
    """Set an example as the prompt, as far as the model can encode it."""
    document = session.document
    if document is not None and document.loaded.name == session.model:
        text = encodable_text(document.loaded, text)
    session.typed = text


def _prepare(session: Session, *, adapt_prompt: bool) -> Iterator[None]:
    turn, began = session.lock.begin(), time.perf_counter()
    _reset(session)
    try:
        session.progress = Message("status.reading")
        yield
        params = session.settings.sampling_with_seed()
        loaded = yield from load_with_progress(session, session.model)
        if adapt_prompt:
            session.typed = encodable_text(loaded, session.typed)
        with session.lock.beginning(turn) as has_turn:
            if has_turn and (document := _start(session, loaded)) is not None:
                settings = session.settings
                session.pending = PendingGeneration(document, params, settings.length, settings.pace, turn, began)
    except ValueError as problem:
        session.notice = problem
        if session.document is not None:
            session.model = session.document.loaded.name
    finally:
        session.progress = None
        _end_unless_pending(session, turn)


def prepare_continuation(session: Session) -> Iterator[None]:
    """Prepare to continue after the selected token; the tokens after it remain as a branch."""
    document = session.document
    if document is None:
        session.notice = Message("error.no_text")
        return
    turn, began = session.lock.begin(), time.perf_counter()
    _reset(session)
    try:
        yield
        params, settings = session.settings.sampling_with_seed(), session.settings
        with session.lock.beginning(turn) as has_turn:
            if not has_turn or session.document is not document:
                return
            if 0 <= session.selection.position < len(document.ids) - 1:
                document.go_back(session.selection.position)
            session.selection = replace(session.selection, position=NEWEST)
            session.redo_stack.clear()
            slides = document.full
            if slides:
                session.push_undo()
            session.pending = PendingGeneration(document, params, settings.length, settings.pace, turn, began, slides)
    except ValueError as problem:
        session.notice = problem
    finally:
        _end_unless_pending(session, turn)


def generate(session: Session) -> Iterator[None]:
    """Run the pending generation once admitted: a frame for each token, fewer under load."""
    pending, session.pending = session.pending, None
    if pending is None:
        return
    try:
        with admitted(session, pending.document.loaded) as waiting:
            for _ in waiting:
                yield
                with session.lock.writing(pending.turn) as has_turn:
                    if not has_turn:
                        return
            yield from _generate_steps(session, pending)
    finally:
        session.lock.end(pending.turn)


def _generate_steps(session: Session, pending: PendingGeneration) -> Iterator[None]:
    document, lock = pending.document, session.lock
    with lock.writing(pending.turn) as has_turn:
        if not has_turn:
            return
        document.read()
        session.throughput = Throughput(pending.params.seed)
    yield

    if pending.slides:
        made = sliding_steps(document, pending.params, pending.length)
    else:
        made = ((document, step) for step in document.steps(pending.params, pending.length))
    steps = measured(made, pending.params.seed, pending.began, session.set_throughput)
    began, shown, count = time.perf_counter(), -math.inf, 0
    while True:
        with (lock.beginning if pending.slides else lock.writing)(pending.turn) as has_turn:
            latest = next(steps, None) if has_turn else None
            if latest is None:
                return
            document, step = latest
            session.document = document
            session.token_statistics.add(document, step)
            session.finish_reason = step.finish_reason
            if step.finish_reason is not None:
                document.read()  # so that the next-token bars are up to date
        count, now = count + 1, time.perf_counter()
        gap = max(min_update_interval(document.loaded), 0.0 if pending.pace else UPDATE_SECONDS)
        if now - shown >= gap or step.finish_reason is not None:
            shown = now
            yield
        if pending.pace:
            lock.rest(pending.turn, began + count / pending.pace - time.perf_counter())


def stop(session: Session) -> None:
    """Stop the running generation before its next token."""
    session.drop_pending()
    session.lock.take()
    finish(session)


def finish(session: Session) -> None:
    """After a stream: read the last token and update the status."""
    with session.lock.settling():
        if session.lock.streaming:  # another stream has begun, or the event that stopped this one updates the page
            return
        document = session.document
        if document is None or session.throughput is None:
            return
        document.read()
        session.finish_reason = session.finish_reason or "stopped"


def step(session: Session, typed: str, seed: str) -> Iterator[None]:
    """Generate one token: of the current document, or of a new one if prompt or model have changed."""
    session.typed, session.settings = typed, session.settings.with_value("seed", seed)
    params, loaded = session.settings.sampling_with_seed(), get_model(session.model)
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.changing():
            session.notice = None
            session.change(PlaygroundState, too_long=0)
            document = session.document
            if document is None or (session.prompt, document.loaded.name) != (session.typed, loaded.name):
                document = _start(session, loaded)
            if document is None:
                return
            session.redo_stack.clear()
            if document.full:
                session.push_undo()
                document = session.document = document.without_first()
            steps = document.steps(params, 1)
            for made in measured(steps, params.seed, time.perf_counter(), session.set_throughput):
                document.read()
                session.finish_reason = None if made.finish_reason == "max_new_tokens" else made.finish_reason
            session.selection = replace(session.selection, position=NEWEST)
            session.notice = remark(session)


def clear(session: Session) -> None:
    """Replace the document with an empty one."""
    with session.changing():
        session.push_undo()
        session.document = session.throughput = session.last_action = session.finish_reason = session.notice = None
        session.prompt = session.typed = ""
        session.selection = replace(session.selection, position=NEWEST)
        session.change(PlaygroundState, too_long=0)


def use_tail(session: Session) -> None:
    """Cut a too long prompt to its last half context."""
    loaded = get_model(session.model)
    ids = loaded.tokenizer.encode(session.typed)
    session.typed = loaded.tokenizer.decode(ids[-tail_length(loaded.model.config.block_size) :]).lstrip("\ufffd")
    session.change(PlaygroundState, too_long=0)


def _reset(session: Session) -> None:
    """Clear the status before a new run."""
    session.finish_reason = session.throughput = session.pending = session.notice = None
    session.last_action = Message("status.ready")
    session.change(PlaygroundState, too_long=0)


def _start(session: Session, loaded: LoadedModel) -> Generation | None:
    """Put a new document of the prompt into the session; None if the prompt is too long."""
    prompt = checked_text("prompt", session.typed)
    count, limit = len(loaded.tokenizer.encode(prompt)), loaded.model.config.block_size
    if count > limit:
        session.change(PlaygroundState, too_long=count)
        return None
    document = Generation(loaded, prompt)
    session.push_undo()
    session.document, session.prompt, session.model = document, prompt, loaded.name
    session.selection = session.selection.clamped_to(loaded.model.config, position=NEWEST)
    session.notice = remark(session)
    return document


def _end_unless_pending(session: Session, turn: int) -> None:
    """End the turn of a stream that will not run."""
    if session.pending is None or session.pending.turn != turn:
        session.lock.end(turn)
