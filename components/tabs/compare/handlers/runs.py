"""Runs: at most one of each part of the tab, which a new one or Stop ends."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

from components.state.session import Session
from components.tabs.compare.state import RunState


def run(state: type[RunState], steps: Callable[[Session], Generator[None]], session: Session) -> Generator[None]:
    """Run these steps until they end or are stopped; an error is shown, and the previous result stays."""
    number = session.state(state).run + 1
    session.change(state, run=number, busy=True, notice=None)
    try:
        yield
        with closing(steps(session)) as running:
            for _ in running:
                if session.state(state).run != number:
                    return
                yield
    except ValueError as problem:
        session.change(state, notice=problem)
    finally:
        if session.state(state).run == number:
            session.change(state, busy=False)


def stop_run(state: type[RunState], session: Session) -> None:
    """Stop what is running."""
    session.change(state, run=session.state(state).run + 1, busy=False)
