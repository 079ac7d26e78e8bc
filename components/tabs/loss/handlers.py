"""The event handlers of the Loss tab, and the analysis of its example."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from components.api import MAX_CHARACTERS
from components.errors import PageError
from components.render import Analysis
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.tabs.loss.components import LossState, ScoredText
from gpt import LoadedModel
from gpt.background import run_with_progress
from gpt.experiments.text_loss import TextScore, score_text

MAX_TOKENS = 4096
STRIDES = (1, 2, 4, 8)  # divisors of the context length that give the stride of the windows
HALF = 2


def example_analysis(loaded: LoadedModel, text: str) -> Analysis:
    """The analysis that shows a scored example when the tab is first opened. It is scored once for all visitors."""

    @cache
    def scored() -> ScoredText:
        return ScoredText(loaded, score_text(loaded, loaded.tokenizer.encode(text)))

    return Analysis(wanted, lambda session: show_example(scored, session))


def wanted(s: Snapshot) -> Any:
    """The example, unless a text was scored or is being scored."""
    state = s.state(LossState)
    return "example" if state.scored is None and state.run == 0 else None


def show_example(scored: Callable[[], ScoredText], session: Session) -> Iterator[None]:
    """Show the example, unless a text was scored in the meantime."""
    example = scored()
    if session.state(LossState).run == 0:
        session.change(LossState, scored=example, selected=most_surprising(example.result))
    yield


def measure_text(session: Session, parts: object = HALF, *, text: str) -> Iterator[None]:
    """Put a text into the box and score it."""
    session.change(LossState, filled=text, times_filled=session.state(LossState).times_filled + 1)
    yield from measure(session, text, parts)


def measure(session: Session, text: object, parts: object) -> Iterator[None]:
    """Score a text, window by window; an error is shown and the previous result stays."""
    run = session.state(LossState).run + 1
    session.change(LossState, run=run, running=True, notice=None, progress=Message("loss.loading"))
    try:
        yield
        typed = checked(text)
        loaded = yield from load_with_progress(session, session.model)
        ids = loaded.tokenizer.encode(typed)
        check_length(len(ids))
        stride = stride_of(parts, loaded.model.config.block_size)

        def show(n: int, total: int) -> None:
            if total and session.state(LossState).run == run:
                session.change(LossState, progress=Message("loss.progress", {"n": n, "total": total}))

        score = yield from run_with_progress(
            lambda progress: score_text(loaded, ids, stride=stride, progress=progress), show
        )
        if session.state(LossState).run == run:
            repaired = re.search("[\ud800-\udfff]", typed) is not None
            scored = ScoredText(loaded, score, run, repaired)
            session.change(LossState, scored=scored, selected=most_surprising(score))
    except ValueError as problem:
        if session.state(LossState).run == run:
            session.change(LossState, notice=problem)
    finally:
        if session.state(LossState).run == run:
            session.change(LossState, running=False, progress=None)


def stop(session: Session) -> None:
    """Stop scoring; the previous result stays."""
    session.change(LossState, run=session.state(LossState).run + 1, running=False, progress=None)


def select(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked token. sent: from the browser, may be anything."""
    scored, index = session.state(LossState).scored, sent.get("index")
    if scored is not None and type(index) is int and 0 <= index < len(scored.result.ids):
        session.change(LossState, selected=index)


def most_surprising(score: TextScore) -> int:
    """The position of the token with the largest loss."""
    return 1 + max(range(len(score.losses)), key=lambda i: score.losses[i].surprisal)


def checked(text: object) -> str:
    """The checked text. Raises ValueError for an empty or far too long one."""
    if not isinstance(text, str) or not text:
        raise PageError("loss.error.empty")
    if len(text) > MAX_CHARACTERS:
        raise PageError("loss.error.characters", n=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}")
    return text


def check_length(n: int) -> None:
    """Raise ValueError for too few or too many tokens."""
    if n < 2:
        raise PageError("loss.error.one")
    if n > MAX_TOKENS:
        raise PageError("loss.error.tokens", n=f"{n:,}", limit=f"{MAX_TOKENS:,}")


def stride_of(parts: object, block_size: int) -> int:
    """The stride in tokens, limited so that every token is scored."""
    divisor = parts if type(parts) is int and parts in STRIDES else HALF
    return max(1, min(block_size // divisor, block_size - 1))
