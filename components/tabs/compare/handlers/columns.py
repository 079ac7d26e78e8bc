"""The two columns: their settings, writing in step, the selected position."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

from components.api import checked_text
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

TOKENS_PER_SECOND = 30  # and column, so that one can follow
UPDATE_SECONDS = 0.03  # between two frames, at least
MAX_LENGTH = 200  # new tokens


def open_tab(session: Session) -> None:
    """The Playground's prompt, unless another was typed here."""
    state = session.state(CompareState)
    if state.prompt == state.taken:
        session.change(CompareState, prompt=session.typed, taken=session.typed)


def first_run(session: Session) -> Iterator[None]:
    """An example when the tab is opened for the first time."""
    if session.state(CompareState).pair is None and not session.state(CompareState).writing:
        yield from write(session)


def type_prompt(session: Session, prompt: str) -> None:
    session.change(CompareState, prompt=prompt)


def set_length(session: Session, length: object) -> None:
    session.change(CompareState, length=min(max_new_tokens(length), MAX_LENGTH))


def set_value(side: int, name: str, session: Session, value: object) -> None:
    """A setting of one column, moved to the nearest allowed one."""
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
    """Both columns as the preset has them: the page's model and the usual settings, but for what it is about."""
    session.change(CompareState, columns=PRESETS[name])


def write_typed(session: Session, prompt: str, left_seed: str, right_seed: str) -> Iterator[None]:
    """`write`, with what stands in the boxes."""
    type_prompt(session, prompt)
    for side, seed in enumerate((left_seed, right_seed)):
        set_value(side, "seed", session, seed)
    yield from write(session)


def write(session: Session) -> Iterator[None]:
    """Write both columns, token by token in step; what cannot be done is said, and the last result stays."""
    session.change(CompareState, writing=True, notice=None)
    pair = None
    try:
        yield
        pair = yield from _begin(session)
        if pair is not None:
            yield from _steps(session, pair)
    except ValueError as problem:
        session.change(CompareState, notice=problem)
    finally:
        if pair is not None:
            pair.stop()
        if pair is None or session.state(CompareState).pair is pair:
            session.change(CompareState, writing=False, measured=None)


def _begin(session: Session) -> Generator[None, None, Pair]:
    state = session.state(CompareState)
    prompt = checked_text("prompt", state.prompt)
    params = (_params(state.columns[0]), _params(state.columns[1]))
    loaded = []
    for column in state.columns:
        loaded.append((yield from load_with_progress(session, column.model or session.model)))
    _check_fits(session, prompt, loaded)
    pair = Pair((loaded[0], loaded[1]), prompt, params)
    before = session.state(CompareState).pair
    if before is not None:
        before.stop()  # the newest run is the one that goes on
    session.change(CompareState, pair=pair, notice=None if prompt else Message("prompt.started_empty"), pair_version=0)
    return pair


def _params(column: ColumnSettings) -> SamplingParams:
    """Checked settings of one column, with the seed that will be used."""
    return Settings(column.temperature, column.top_k, column.top_p, seed=column.seed).sampling_with_seed()


def _check_fits(session: Session, prompt: str, models: list[LoadedModel]) -> None:
    """Raise PageError, with the side, where a model cannot read so long a prompt."""
    for side, loaded in zip(SIDES, models, strict=True):
        n, limit = len(loaded.tokenizer.encode(prompt)), loaded.model.config.block_size
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
    """Let neither column write on."""
    pair = session.state(CompareState).pair
    if pair is not None:
        pair.stop()
    session.change(CompareState, writing=False)


def finish(session: Session) -> None:
    """After a run, however it ended: both texts, where they part, how far apart they are."""
    state = session.state(CompareState)
    pair = state.pair
    if pair is None or not pair.ended:  # another run has begun meanwhile
        return
    pair.read()
    pair.comparison.measure()
    session.change(CompareState, writing=False, pair_version=state.pair_version + 1)


def select_token(side: int, session: Session, sent: dict[str, Any]) -> None:
    """Look at the token that was clicked in one strip; in both, where they have one vocabulary."""
    _select(session, sent.get("index"), side)


def select_bar(session: Session, sent: dict[str, Any]) -> None:
    """Look at the position whose bar was clicked."""
    _select(session, sent.get("x"), None)


def _select(session: Session, position: object, side: int | None) -> None:
    state = session.state(CompareState)
    pair = state.pair
    if pair is not None and all(document.n_read for document in pair.documents) and pair.select(position, side):
        session.change(CompareState, pair_version=state.pair_version + 1)
