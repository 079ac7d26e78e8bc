"""The handlers of the two columns: write in step, stop, select a position, tell it again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from components import legacy
from components import text_views as views
from components.api import checked_text
from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.legacy import loading
from components.state.settings import LIMITS, nearest, new_tokens, sampling_params
from components.tabs.compare import views as compare_views
from components.tabs.compare.memory import Memory
from components.tabs.compare.pair import Pair
from components.tabs.compare.views import SIDES
from components.widgets.tokens import selection
from gpt import DEFAULT_MODEL, LoadedModel, SamplingParams, with_seed
from gpt.errors import GPTError

if TYPE_CHECKING:
    from components.tabs.compare.sides import Column, Sides

Values = dict[Any, Any]
PACE = 30  # tokens a second and column, so that one can follow
UPDATE_SECONDS = 0.03  # between two updates of the texts, at least
CHART_SECONDS = 0.3  # between two charts while the texts stream
USUAL = {"temperature": LIMITS["temperature"].default, "top_k": 0, "top_p": 1.0, "seed": "1"}
PRESETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "seeds": ({}, {"seed": "2"}),
    "temperatures": ({"temperature": 0.3}, {"temperature": 1.5}),
    "trained": ({"model": DEFAULT_MODEL}, {"model": "untrained"}),
}


def preset(ui: Sides, name: str, values: Values) -> Values:
    """Both columns as the preset has them: the page's model and the usual settings, but for what it is about."""
    update: Values = {}
    for column, own in zip(ui.columns, PRESETS[name], strict=True):
        for key, value in ({"model": values[ui.frame.model]} | USUAL | own).items():
            update[getattr(column, key)] = value
    return update


def stream(ui: Sides, values: Values) -> Iterator[Values]:
    """Write both columns, token by token in step; what cannot be done is said in place, and the last result stays."""
    language: Language = values[ui.frame.language]
    yield {**_buttons(ui, running=True), ui.notice: ""}
    try:
        prompt = checked_text("prompt", values[ui.prompt] or "")
        params = tuple(_params(column, values) for column in ui.columns)
        length = new_tokens(values[ui.length])
        loaded = []
        for column in ui.columns:
            loaded.append((yield from loading(column.status, values[column.model], language)))
        _check_fits(prompt, loaded)
        pair = Pair(tuple(loaded), prompt, params)
    except ValueError as problem:
        yield {ui.notice: localize_error(problem, language)}
        return
    memory: Memory = values[ui.memory]
    if memory.pair is not None:
        memory.pair.stop()  # the newest run is the one that goes on
    memory.pair = pair
    try:
        yield from _write(ui, pair, length, language)
    finally:
        pair.stop()


def stop(ui: Sides, values: Values) -> None:
    """Stop writing."""
    pair: Pair | None = values[ui.memory].pair
    if pair is not None:
        pair.stop()


def _params(column: Column, values: Values) -> SamplingParams:
    """Checked settings of one column, with the seed that will be used."""
    typed = (values[column.seed] or "").strip()
    if typed and not (typed.isascii() and typed.isdecimal()):
        raise PageError("error.seed")
    settings = {name: nearest(name, values[getattr(column, name)]) for name in ("temperature", "top_k", "top_p")}
    return with_seed(sampling_params(seed=int(typed) if typed else None, **settings))


def _check_fits(prompt: str, models: list[LoadedModel]) -> None:
    """Raise ValueError, with the side, where a model cannot read so long a prompt."""
    for side, loaded in zip(SIDES, models, strict=True):
        n, limit = len(loaded.tokenizer.encode(prompt)), loaded.model.config.block_size
        if n > limit:
            problem = GPTError("context.prompt_too_long", n=n, excess=n - limit, limit=limit)
            raise PageError(f"compare.{side}.too_long", problem=problem)


def _write(ui: Sides, pair: Pair, length: int, language: Language) -> Iterator[Values]:
    pair.read()
    strips = [legacy.strip(document) for document in pair.documents]
    newest = {"selected": selection(views.NEWEST), "parted": "-1"}
    yield {
        ui.notice: "" if pair.prompt else t("prompt.started_empty", language),
        ui.parting: "",
        ui.divergence: "",
        **{
            column.strip: gr.update(
                value=strips[side], labels=compare_views.strip_words(SIDES[side], language), **newest
            )
            for side, column in enumerate(ui.columns)
        },
        **{part: "" for column in ui.columns for part in (column.status, column.bars)},
    }
    for n in pair.measure():
        if pair.ended:
            return
        yield {ui.parting: t("compare.measuring", language, n=n, total=pair.comparison.n_measurable)}
    yield {ui.parting: "", ui.divergence: compare_views.divergence(pair, language)}
    began, shown, drawn = time.perf_counter(), 0.0, 0.0
    for count, steps in enumerate(pair.steps(length), start=1):
        for side, step in enumerate(steps):
            if step is not None:
                strips[side] += legacy.strip_step(pair.documents[side], step)
        now = time.perf_counter()
        if now - shown < UPDATE_SECONDS:
            continue
        shown = now
        parted = _parted(pair)
        update: Values = {
            column.strip: gr.update(value=strips[side], parted=parted) for side, column in enumerate(ui.columns)
        }
        if now - drawn >= CHART_SECONDS:
            drawn = now
            update |= {ui.divergence: compare_views.divergence(pair, language), **_told(ui, pair, language)}
        yield update
        time.sleep(max(0.0, began + count / PACE - time.perf_counter()))


def _parted(pair: Pair) -> str:
    at = pair.comparison.divergence_index
    return "-1" if at is None else str(at)


def finish(ui: Sides, values: Values) -> Values:
    """After a run, however it ended: both texts, where they part, how far apart they are."""
    pair: Pair | None = values[ui.memory].pair
    update = _buttons(ui, running=False)
    if pair is None:
        return update
    if not pair.ended:  # another run has begun meanwhile
        return gr.skip()
    pair.read()
    pair.comparison.measure()
    strips = {
        column.strip: gr.update(
            value=legacy.strip(pair.documents[side]), parted=_parted(pair), selected=selection(pair.at(side))
        )
        for side, column in enumerate(ui.columns)
    }
    return update | strips | _seen(ui, pair, values[ui.frame.language])


def _told(ui: Sides, pair: Pair, language: Language) -> Values:
    update = {column.status: compare_views.status(pair, side, language) for side, column in enumerate(ui.columns)}
    return update | {ui.parting: compare_views.parting(pair, language)}


def _seen(ui: Sides, pair: Pair, language: Language) -> Values:
    """Everything that is said and drawn of the selected position."""
    bars = {column.bars: compare_views.bars(pair, side, language) for side, column in enumerate(ui.columns)}
    return _told(ui, pair, language) | bars | {ui.divergence: compare_views.divergence(pair, language)}


def select_token(ui: Sides, side: int, values: Values, sent: Values) -> Values:
    """Selection at the token that was clicked in one strip; in both, where they have one vocabulary."""
    return _select(ui, values, sent.get("index"), side)


def select_column(ui: Sides, values: Values, sent: Values) -> Values:
    """Selection at the position whose bar was clicked."""
    return _select(ui, values, sent.get("x"), None)


def _select(ui: Sides, values: Values, position: object, side: int | None) -> Values:
    pair: Pair | None = values[ui.memory].pair
    if pair is None or not all(document.n_read for document in pair.documents) or not pair.select(position, side):
        return gr.skip()
    update = _seen(ui, pair, values[ui.frame.language])
    for each, column in enumerate(ui.columns):
        if each != side and pair.positions[each] is not None:
            update[column.strip] = gr.update(selected=selection(pair.at(each)))
    return update


def retell(ui: Sides, values: Values) -> Values:
    """Every sentence again, in the language chosen just now."""
    pair: Pair | None = values[ui.memory].pair
    if pair is None or not all(document.n_read for document in pair.documents):
        return gr.skip()
    return {ui.notice: "", **_seen(ui, pair, values[ui.frame.language])}


def _buttons(ui: Sides, *, running: bool) -> Values:
    return {ui.generate: gr.update(interactive=not running), ui.stop: gr.update(interactive=running)}
