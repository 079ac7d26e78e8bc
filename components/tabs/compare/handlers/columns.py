"""Handlers for the two columns: settings, generation in lockstep, and selection."""

from __future__ import annotations

import time
from collections.abc import Generator, Hashable, Iterator
from dataclasses import replace
from typing import Any

from components.api.arguments import checked_text
from components.errors import PageError
from components.state.admission import admitted
from components.state.jobs import run_steps
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.settings import Settings, clamped, max_new_tokens
from components.state.snapshot import Message
from components.tabs.compare.pair import Pair
from components.tabs.compare.state import PRESETS, SIDES, ColumnSettings, CompareState, prompts
from components.text_views import count_sentence
from gpt import LoadedModel, SamplingParams, list_models
from gpt.errors import Verbatim
from gpt.tokenizer import hold_back, prompt_ids

TOKENS_PER_SECOND = 30  # per column
UPDATE_SECONDS = 0.05  # minimum time between page updates
MAX_LENGTH = 200  # new tokens


def open_tab(session: Session) -> Iterator[None]:
    """Run an example the first time the tab is opened."""
    state = session.state(CompareState)
    if state.pair is None and not state.busy:
        yield from generate(session)


def type_prompt(session: Session, prompt: object) -> None:
    """Set the prompt. It stays in sync with Write's prompt as long as the two are equal."""
    if isinstance(prompt, str):
        session.change(CompareState, prompt=None if prompt == session.next_prompt else prompt)


def type_right_prompt(session: Session, prompt: object) -> None:
    """Set the right column's prompt. It stays in sync with the left prompt as long as the two are equal."""
    if isinstance(prompt, str):
        session.change(CompareState, right_prompt=None if prompt == prompts(session)[0] else prompt)


def set_length(session: Session, length: object) -> None:
    session.change(CompareState, length=min(max_new_tokens(length), MAX_LENGTH))


def set_value(side: int, name: str, session: Session, value: object) -> None:
    """Set one of a column's settings, clamped to its range."""
    columns = list(session.state(CompareState).columns)
    if name == "model":
        if value not in (*list_models(), *session.own_models):
            return
    elif name == "seed":
        value = value.strip() if isinstance(value, str) else ""
    else:
        value = getattr(Settings().with_value(name, clamped(name, value)), name)
    changes: dict[str, Any] = {name: value}
    columns[side] = replace(columns[side], **changes)
    session.change(CompareState, columns=(columns[0], columns[1]))


def run_preset(name: str, session: Session) -> Iterator[None]:
    """Run a preset with a single prompt. Settings that the preset does not compare are reset to defaults."""
    session.change(CompareState, columns=PRESETS[name], right_prompt=None)
    yield from generate(session)


def generate(session: Session) -> Iterator[None]:
    """Generate both columns in lockstep, and compare them up to the last token.

    If nothing has changed since the last run, new seeds are used to avoid repeating the same texts.
    """
    if _made_with(session) == session.state(CompareState).ran:
        session.change(CompareState, columns=other_seeds(session.state(CompareState).columns))
    session.change(CompareState, ran=_made_with(session))
    yield from run_steps(session, CompareState, lambda job: _write(session))
    state = session.state(CompareState)
    if state.pair is not None and not state.busy:
        state.pair.read()
        state.pair.comparison.measure()
        session.change(CompareState, pair_version=state.pair_version + 1)


def _made_with(session: Session) -> Hashable:
    state = session.state(CompareState)
    return session.model, prompts(session), state.columns, state.length


def other_seeds(columns: tuple[ColumnSettings, ColumnSettings]) -> tuple[ColumnSettings, ColumnSettings]:
    """Return the settings with the next seeds that neither column has used. Equal seeds stay equal."""
    left, right = (
        replace(column, seed=str(int(column.seed) + len({each.seed for each in columns})))
        if column.seed.isascii() and column.seed.isdecimal()
        else column
        for column in columns
    )
    return left, right


def _write(session: Session) -> Generator[None]:
    pair = yield from _prepare(session)
    try:
        yield from _steps(session, pair)
    finally:
        pair.stop()
        session.change(CompareState, measured=None)


def _prepare(session: Session) -> Generator[None, None, Pair]:
    state, (left, right) = session.state(CompareState), prompts(session)
    checked = (checked_text("prompt", left), checked_text("prompt", right))
    params = (_params(state.columns[0]), _params(state.columns[1]))
    loaded = []
    for column in state.columns:
        loaded.append((yield from load_with_progress(session, column.model or session.model)))
    _check_fits(session, checked, loaded)
    pair = Pair((loaded[0], loaded[1]), checked, params)
    notice = None if all(checked) else Message("prompt.started_empty")
    session.change(CompareState, pair=pair, notice=notice, pair_version=0)
    return pair


def _params(column: ColumnSettings) -> SamplingParams:
    """Return one column's validated settings, including a seed."""
    return Settings(column.temperature, column.top_k, column.top_p, seed=column.seed).sampling_with_seed()


def _check_fits(session: Session, texts: tuple[str, str], models: list[LoadedModel]) -> None:
    """Raise PageError, naming the side, if a prompt is too long for its model."""
    for side, prompt, loaded in zip(SIDES, texts, models, strict=True):
        n, limit = (
            len(prompt_ids(loaded.tokenizer, hold_back(loaded.tokenizer, prompt)[0])),
            loaded.model.config.block_size,
        )
        if n > limit:
            problem = Verbatim(count_sentence(n, limit))
            raise PageError(f"compare.{side}.too_long", problem=problem)


def _steps(session: Session, pair: Pair) -> Iterator[None]:
    with admitted(session, *(document.loaded for document in pair.documents)) as waiting:
        yield from waiting
        pair.read()
        yield from _shown(session)
        for n in pair.measure():
            session.change(CompareState, measured=(n, pair.comparison.n_measurable))
            yield
        session.change(CompareState, measured=None)
        began, shown = time.perf_counter(), 0.0
        for count, _ in enumerate(pair.steps(session.state(CompareState).length), start=1):
            now = time.perf_counter()
            if now - shown >= UPDATE_SECONDS:
                shown = now
                yield from _shown(session)
                waiting.rest()
                time.sleep(max(0.0, began + count / TOKENS_PER_SECOND - time.perf_counter()))
            for _ in waiting.after_token():
                pass


def _shown(session: Session) -> Iterator[None]:
    session.change(CompareState, pair_version=session.state(CompareState).pair_version + 1)
    yield


def select_token(side: int, session: Session, sent: dict[str, Any]) -> None:
    """Select the token clicked in one strip, in both columns if their texts are comparable."""
    _select(session, sent.get("index"), side)


def select_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked bar's position."""
    _select(session, sent.get("x"), None)


def _select(session: Session, position: object, side: int | None) -> None:
    state = session.state(CompareState)
    pair = state.pair
    if pair is not None and all(document.n_read for document in pair.documents) and pair.select(position, side):
        session.change(CompareState, pair_version=state.pair_version + 1)
