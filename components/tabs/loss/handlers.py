"""Event handlers for the Loss tab, and the analysis that scores its example."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

from components.api.arguments import check_scored_length
from components.errors import PageError
from components.limits import MAX_CHARACTERS
from components.render import Analysis
from components.state.example import encodable_text, language_of_model
from components.state.jobs import Job, in_thread, run_steps
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.loss.state import EXAMPLES, FIRST_EXAMPLE, STRIDES, LossState, ScoredText
from gpt import LoadedModel
from gpt.experiments.text_loss import TextScore, score_text
from gpt.tokenizer import prompt_ids


def analysis(loaded: LoadedModel) -> Analysis:
    """Return the analysis that scores the example when the tab first opens and rescores the text for a new model.

    `loaded` is the model at start-up, which scores the example once for all visitors.
    """

    @cache
    def at_startup() -> ScoredText:
        return scored_example(loaded)

    def run(session: Session) -> Iterator[None]:
        used, state = session.loaded, session.state(LossState)
        if used is None:
            return
        if state.scored is not None and state.run > 0:
            yield from measure(session, state.scored.text, state.scored.parts)
            if session.state(LossState).scored is state.scored:  # the model cannot read the text
                session.change(LossState, scored=None)
            return
        scored, before = at_startup() if used is loaded else scored_example(used), state.scored
        now = session.state(LossState)
        if now.run == 0:
            is_typed = now.text != (FIRST_EXAMPLE if before is None else before.text)
            text = now.text if is_typed else scored.text
            session.change(LossState, text=text, scored=scored, selected=most_surprising(scored.result))
        yield

    return Analysis(wanted, run)


def wanted(s: Snapshot) -> Any:
    """Return the name of the current model if it must score the example or rescore the text, else None."""
    state = s.state(LossState)
    is_old = state.run == 0 if state.scored is None else state.scored.loaded is not s.loaded
    return s.loaded.name if s.loaded is not None and is_old and not state.busy else None


def scored_example(loaded: LoadedModel) -> ScoredText:
    """Score the part of the example that the model can read."""
    text = encodable_text(loaded, EXAMPLES[language_of_model(loaded.name)]["turn"])
    return ScoredText(loaded, score_text(loaded, prompt_ids(loaded.tokenizer, text)), text)


def type_text(session: Session, text: object) -> None:
    """Set the text in the box, truncating it if it is far too long."""
    if isinstance(text, str):
        session.change(LossState, text=text[: MAX_CHARACTERS + 1])


def choose_stride(session: Session, parts: object) -> None:
    """Set the stride between windows."""
    if type(parts) is int and parts in STRIDES:
        session.change(LossState, parts=parts)


def measure_text(session: Session, *, text: str) -> Iterator[None]:
    """Fill the box with the part of a text that the model can read, and score it."""
    if session.loaded is not None and session.loaded.name == session.model:
        text = encodable_text(session.loaded, text)
    session.change(LossState, text=text)
    yield from measure_box(session)


def measure_box(session: Session) -> Iterator[None]:
    """Score the text in the box."""
    state = session.state(LossState)
    yield from measure(session, state.text, state.parts)


def measure(session: Session, text: str, parts: int) -> Iterator[None]:
    """Score a text window by window. If this fails, show the error and keep the previous result."""
    run = session.state(LossState).run + 1
    session.change(LossState, run=run)

    def steps(job: Job) -> Generator[None]:
        _check_length(text)
        loaded = yield from load_with_progress(session, session.model)
        ids = prompt_ids(loaded.tokenizer, text)
        check_scored_length(len(ids))
        stride = stride_of(parts, loaded.model.config.block_size)
        score = yield from in_thread(
            session,
            LossState,
            job,
            "loss.progress",
            lambda progress: score_text(loaded, ids, stride=stride, progress=progress),
        )
        repaired = re.search("[\ud800-\udfff]", text) is not None
        scored = ScoredText(loaded, score, text, run, parts, repaired)
        session.change(LossState, scored=scored, selected=most_surprising(score))

    yield from run_steps(session, LossState, steps)


def select(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked token. `sent` is an unvalidated browser payload."""
    scored, index = session.state(LossState).scored, sent.get("index")
    if scored is not None and type(index) is int and 0 <= index < len(scored.result.ids):
        session.change(LossState, selected=index)


def most_surprising(score: TextScore) -> int:
    """Return the position of the token with the largest loss."""
    return 1 + max(range(len(score.losses)), key=lambda i: score.losses[i].surprisal)


def _check_length(text: str) -> None:
    """Raise ValueError if a text is empty or far too long."""
    if not text:
        raise PageError("loss.error.empty")
    if len(text) > MAX_CHARACTERS:
        raise PageError("loss.error.characters", n=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}")


def stride_of(parts: int, block_size: int) -> int:
    """Return the stride in tokens: the context length divided by `parts`, limited so that every token is scored."""
    return max(1, min(block_size // parts, block_size - 1))
