"""What the events of the Loss tab do to the session, and the example that it computes when it is first opened."""

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
from components.tabs.loss.components import EXAMPLES, LossState, ScoredText
from gpt import LoadedModel
from gpt.background import run_with_progress
from gpt.experiments.text_loss import TextScore, score_text

MAX_TOKENS = 4096
STRIDES = (1, 2, 4, 8)  # parts of a context that each window moves on by
HALF = 2


def example_analysis(loaded: LoadedModel, text: str) -> Analysis:
    """Shows this text, which fits the context, when the tab is first opened. It is scored once for all visitors."""

    @cache
    def scored() -> ScoredText:
        return ScoredText(loaded, score_text(loaded, loaded.tokenizer.encode(text)))

    return Analysis(wanted, lambda session: show_example(scored, session))


def wanted(s: Snapshot) -> Any:
    """The example, unless a text was scored already or is being scored."""
    state = s.state(LossState)
    return "example" if state.scored is None and state.run == 0 else None


def show_example(scored: Callable[[], ScoredText], session: Session) -> Iterator[None]:
    """The example, unless a text was scored meanwhile."""
    example = scored()
    if session.state(LossState).run == 0:
        session.change(LossState, scored=example, selected=most_surprising(example.result))
    yield


def measure_example(key: str, session: Session, parts: object) -> Iterator[None]:
    """Put an example into the box and score it."""
    session.change(LossState, example=key, filled=session.state(LossState).filled + 1)
    yield from measure(session, EXAMPLES[key], parts)


def measure(session: Session, text: object, parts: object) -> Iterator[None]:
    """Score a text, window by window; what cannot be scored is said in place, and the last result stays."""
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
    """Stop scoring; the last result stays."""
    session.change(LossState, run=session.state(LossState).run + 1, running=False, progress=None)


def select(session: Session, sent: dict[str, Any]) -> None:
    """Look at the token that was clicked; what the browser sends may be anything."""
    scored, index = session.state(LossState).scored, sent.get("index")
    if scored is not None and type(index) is int and 0 <= index < len(scored.result.ids):
        session.change(LossState, selected=index)


def most_surprising(score: TextScore) -> int:
    """The position of the token with the largest loss."""
    return 1 + max(range(len(score.losses)), key=lambda i: score.losses[i].surprisal)


def checked(text: object) -> str:
    """The text as typed. Raises ValueError with a sentence for none and for far too much."""
    if not isinstance(text, str) or not text:
        raise PageError("loss.error.empty")
    if len(text) > MAX_CHARACTERS:
        raise PageError("loss.error.characters", n=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}")
    return text


def check_length(n: int) -> None:
    """Raise ValueError with a sentence for too few and too many tokens."""
    if n < 2:
        raise PageError("loss.error.one")
    if n > MAX_TOKENS:
        raise PageError("loss.error.tokens", n=f"{n:,}", limit=f"{MAX_TOKENS:,}")


def stride_of(parts: object, block_size: int) -> int:
    """A part of the context in tokens, never so long that a token would be left out."""
    divisor = parts if type(parts) is int and parts in STRIDES else HALF
    return max(1, min(block_size // divisor, block_size - 1))
