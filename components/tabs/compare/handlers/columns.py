"""The two columns: settings, generation in lockstep, selection."""

from __future__ import annotations

import time
from collections.abc import Generator, Hashable, Iterator
from dataclasses import replace
from typing import Any

from components.api.arguments import checked_text
from components.errors import PageError
from components.state.admission import admitted
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.settings import Settings, clamped, max_new_tokens
from components.state.snapshot import Message
from components.tabs.compare.components import PRESETS, SIDES, ColumnSettings, CompareState
from components.tabs.compare.pair import Pair
from components.text_views import count_sentence
from gpt import LoadedModel, SamplingParams, list_models
from gpt.errors import Verbatim
from gpt.tokenizer import prompt_ids

TOKENS_PER_SECOND = 30  # of each column
UPDATE_SECONDS = 0.05  # between two frames, at least
MAX_LENGTH = 200  # new tokens


def open_tab(session: Session) -> None:
    """Copy the Playground's prompt, unless another one was typed here."""
    state = session.state(CompareState)
    if state.prompt == state.taken:
        session.change(CompareState, prompt=session.next_prompt, taken=session.next_prompt)


def first_run(session: Session) -> Iterator[None]:
    """Run an example when the tab is opened for the first time."""
    if session.state(CompareState).pair is None and not session.state(CompareState).generating:
        yield from generate(session)


def type_prompt(session: Session, prompt: str) -> None:
    session.change(CompareState, prompt=prompt)


def type_right_prompt(session: Session, prompt: str) -> None:
    """Set the prompt of the right column; while it is equal to the left one, it stays the same as the left one."""
    same = prompt == session.state(CompareState).prompt
    session.change(CompareState, right_prompt=None if same else prompt)


def set_length(session: Session, length: object) -> None:
    session.change(CompareState, length=min(max_new_tokens(length), MAX_LENGTH))


def set_value(side: int, name: str, session: Session, value: object) -> None:
    """Set one column's setting, limited to its range."""
    columns = list(session.state(CompareState).columns)
    if name == "model":
        if value not in (*list_models(), *session.own_models):
            return
    elif name == "seed":
        value = value.strip() if isinstance(value, str) else ""
    else:
        value = getattr(Settings().with_value(name, clamped(name, value)), name)
    columns[side] = replace(columns[side], **{name: value})
    session.change(CompareState, columns=(columns[0], columns[1]))


def choose_preset(name: str, session: Session) -> None:
    """Set both columns to a preset: one prompt, the page's model and default settings, except for what is compared."""
    session.change(CompareState, columns=PRESETS[name], right_prompt=None)


def generate_typed(session: Session, prompt: str, right_prompt: str, left_seed: str, right_seed: str) -> Iterator[None]:
    """`generate` with the values of the boxes. The box of a right prompt that nobody changed may be out of date."""
    if session.state(CompareState).right_prompt is not None:
        session.change(CompareState, right_prompt=right_prompt)
    type_prompt(session, prompt)
    for side, seed in enumerate((left_seed, right_seed)):
        set_value(side, "seed", session, seed)
    yield from generate(session)


def generate(session: Session) -> Iterator[None]:
    """Generate both columns in lockstep; an error is shown and the previous result stays. If nothing has changed since
    the last run, the seeds become others: the texts would be the same."""
    session.change(CompareState, generating=True, notice=None)
    if _made_with(session) == session.state(CompareState).ran:
        session.change(CompareState, columns=other_seeds(session.state(CompareState).columns))
    session.change(CompareState, ran=_made_with(session))
    pair = None
    try:
        yield
        pair = yield from _prepare(session)
        if pair is not None:
            yield from _steps(session, pair)
    except ValueError as problem:
        session.change(CompareState, notice=problem)
    finally:
        if pair is not None:
            pair.stop()
        if pair is None or session.state(CompareState).pair is pair:
            session.change(CompareState, generating=False, measured=None)


def _made_with(session: Session) -> Hashable:
    state = session.state(CompareState)
    return session.model, state.prompts, state.columns, state.length


def other_seeds(columns: tuple[ColumnSettings, ColumnSettings]) -> tuple[ColumnSettings, ColumnSettings]:
    """The settings with the next seeds that neither column had; equal ones stay equal."""
    left, right = (
        replace(column, seed=str(int(column.seed) + len({each.seed for each in columns})))
        if column.seed.isascii() and column.seed.isdecimal()
        else column
        for column in columns
    )
    return left, right


def _prepare(session: Session) -> Generator[None, None, Pair]:
    state = session.state(CompareState)
    prompts = (checked_text("prompt", state.prompts[0]), checked_text("prompt", state.prompts[1]))
    params = (_params(state.columns[0]), _params(state.columns[1]))
    loaded = []
    for column in state.columns:
        loaded.append((yield from load_with_progress(session, column.model or session.model)))
    _check_fits(session, prompts, loaded)
    pair = Pair((loaded[0], loaded[1]), prompts, params)
    before = session.state(CompareState).pair
    if before is not None:
        before.stop()  # a new run ends the previous one
    notice = None if all(prompts) else Message("prompt.started_empty")
    session.change(CompareState, pair=pair, notice=notice, pair_version=0)
    return pair


def _params(column: ColumnSettings) -> SamplingParams:
    """Checked settings of one column with a seed."""
    return Settings(column.temperature, column.top_k, column.top_p, seed=column.seed).sampling_with_seed()


def _check_fits(session: Session, prompts: tuple[str, str], models: list[LoadedModel]) -> None:
    """Raise PageError, naming the side, if a prompt is too long for its model."""
    for side, prompt, loaded in zip(SIDES, prompts, models, strict=True):
        n, limit = len(prompt_ids(loaded.tokenizer, prompt)), loaded.model.config.block_size
        if n > limit:
            problem = Verbatim(count_sentence(n, limit, session.language))
            raise PageError(f"compare.{side}.too_long", problem=problem)


def _steps(session: Session, pair: Pair) -> Iterator[None]:
    with admitted(session, pair.documents[0].loaded) as waiting:
        yield from waiting
        pair.read()
        yield from _shown(session)
        for n in pair.measure():
            if pair.ended:
                return
            session.change(CompareState, measured=(n, pair.comparison.n_measurable))
            yield
        session.change(CompareState, measured=None)
        began, shown = time.perf_counter(), 0.0
        for count, _ in enumerate(pair.steps(session.state(CompareState).length), start=1):
            for _ in waiting.after_token():
                pass
            now = time.perf_counter()
            if now - shown < UPDATE_SECONDS:
                continue
            shown = now
            yield from _shown(session)
            time.sleep(max(0.0, began + count / TOKENS_PER_SECOND - time.perf_counter()))


def _shown(session: Session) -> Iterator[None]:
    session.change(CompareState, pair_version=session.state(CompareState).pair_version + 1)
    yield


def stop(session: Session) -> None:
    """Stop both columns."""
    pair = session.state(CompareState).pair
    if pair is not None:
        pair.stop()
    session.change(CompareState, generating=False)


def finish(session: Session) -> None:
    """After a run: measure the divergence of the two texts."""
    state = session.state(CompareState)
    pair = state.pair
    if pair is None or not pair.ended:  # another run has begun
        return
    pair.read()
    pair.comparison.measure()
    session.change(CompareState, generating=False, pair_version=state.pair_version + 1)


def select_token(side: int, session: Session, sent: dict[str, Any]) -> None:
    """Select the token clicked in one strip; in both columns if they share a vocabulary."""
    _select(session, sent.get("index"), side)


def select_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the position of the clicked bar."""
    _select(session, sent.get("x"), None)


def _select(session: Session, position: object, side: int | None) -> None:
    state = session.state(CompareState)
    pair = state.pair
    if pair is not None and all(document.n_read for document in pair.documents) and pair.select(position, side):
        session.change(CompareState, pair_version=state.pair_version + 1)
