"""The handlers of the Playground that make a text ready to be written, or write one token; and an empty page."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future, TimeoutError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import checked_text
from components.errors import localize_error
from components.i18n import Language, t
from components.state.session import Begun, Session, spelled
from components.state.settings import new_tokens
from components.tabs.playground import steer_views, views
from components.tabs.playground.looking import controls, fit, params_of
from components.tabs.playground.steering import remark, whole
from components.tabs.playground.views import Deed
from components.widgets.tokens import selection
from gpt import Generation, LoadedModel, SamplingParams, get_model, with_seed

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]
LOADING_SECONDS = 0.3  # until a person is told that a model is on its way, and between two words of it


def fill(ui: Playground, text: str, values: Values) -> Values:
    """An example as the prompt, as far as the model on the screen can spell it."""
    document = values[ui.session].document
    if document is not None and document.loaded.name == values[ui.frame.model]:
        text = spelled(document.loaded, text)
    return {ui.prompt: text}


def begin(ui: Playground, values: Values) -> Iterator[Values]:
    """Make ready for a new text, which `write` goes on with."""
    session: Session = values[ui.session]
    turn, when = session.turns.begin(), time.perf_counter()
    try:
        yield _begun(ui, values)
        try:
            params, length = _asked(ui, values)
            loaded = yield from loading(ui.status, values[ui.frame.model], values[ui.frame.language])
            given = _for_model(ui, values, loaded)
            values |= given
            with session.turns.beginning(turn) as mine:
                if not mine:
                    return
                document = _start(ui, values, loaded)
        except ValueError as problem:
            works = {} if session.document is None else {ui.frame.model: session.document.loaded.name}
            yield works | {ui.notice: localize_error(problem, values[ui.frame.language])}
            return
        if document is None:
            yield given | _too_long(ui, values, loaded)
            return
        session.begun = Begun(document, params, length, values[ui.pace], turn, when)
        yield given | _ready(ui, values)
    finally:
        _unless_ready(session, turn)


def pick(ui: Playground, values: Values) -> Iterator[Values]:
    """Begin with another model. The browser says twice that one was picked, and also that the list was left again."""
    session, name = values[ui.session], values[ui.frame.model]
    if name == session.picking or (session.document is not None and name == session.document.loaded.name):
        yield {ui.status: gr.skip()}
        return
    session.picking = name
    try:
        yield from begin(ui, values)
    finally:
        session.picking = ""


def go_on(ui: Playground, values: Values) -> Iterator[Values]:
    """Make ready to write on behind the selected token; what stood there stays as a branch."""
    session: Session = values[ui.session]
    language, document = values[ui.frame.language], session.document
    if document is None:
        yield {ui.notice: t("error.no_text", language)}
        return
    turn, when = session.turns.begin(), time.perf_counter()
    try:
        yield _begun(ui, values)
        try:
            params, length = _asked(ui, values)
        except ValueError as problem:
            yield {ui.notice: localize_error(problem, language)}
            return
        with session.turns.beginning(turn) as mine:
            if not mine or session.document is not document:
                return
            position = steer_views.selected(document, session.look)
            if position < len(document.ids) - 1:
                document.go_back(position)
            full = document.full
            session.look = replace(session.look, position=views.NEWEST)
            session.later.clear()
        if full:
            yield {ui.notice: t("error.context.full", language, limit=document.block_size)}
            return
        session.begun = Begun(document, params, length, values[ui.pace], turn, when)
        yield _ready(ui, values)
    finally:
        _unless_ready(session, turn)


def step(ui: Playground, values: Values) -> Values:
    """One token more: of the document on the screen, or of a new one where prompt or model have changed."""
    language, session = values[ui.frame.language], values[ui.session]
    try:
        params = with_seed(params_of(ui, values, seeded=True))
        loaded = get_model(values[ui.frame.model])
        with session.changing():
            document = session.document
            wanted = (values[ui.prompt], loaded.name)
            if document is None or (session.prompt, document.loaded.name) != wanted:
                document = _start(ui, values, loaded)
                if document is None:
                    return _too_long(ui, values, loaded)
            if document.full:
                return {ui.notice: t("error.context.full", language, limit=document.block_size)}
            session.later.clear()
            session.meter = views.Meter(document, params.seed)
            for made in session.meter.timed(document.steps(params, 1), time.perf_counter()):
                document.read()
                session.finish_reason = made.finish_reason
            session.look = replace(session.look, position=views.NEWEST)
            return whole(ui, session, values)
    except ValueError as problem:
        return {ui.notice: localize_error(problem, language)}


def clear(ui: Playground, values: Values) -> Values:
    """An empty page."""
    session = values[ui.session]
    with session.changing():
        session.leave()
        session.document = session.meter = session.deed = None
        session.prompt = ""
        session.look = replace(session.look, position=views.NEWEST)
        update = controls(ui, session)
    nothing = dict.fromkeys((ui.prompt, ui.bars, ui.heatmap, ui.hint, ui.notice, ui.draw, ui.hits, ui.tree), "")
    return {
        **update,
        **nothing,
        ui.strip: gr.update(value="", selected=selection(views.NEWEST), shade=""),
        ui.use_tail: gr.update(visible=False),
        ui.status: t("status.ready", values[ui.frame.language]),
    }


def use_tail(ui: Playground, values: Values) -> str:
    """The last part of a prompt that was too long: half a context of it, so that there is room to go on."""
    loaded = get_model(values[ui.frame.model])
    ids = loaded.tokenizer.encode(values[ui.prompt] or "")
    return loaded.tokenizer.decode(ids[-_tail(loaded.model.config.block_size) :]).lstrip("\ufffd")


def loading(status: gr.HTML, name: str, language: Language) -> Generator[Values, None, LoadedModel]:
    """The shared model, with word of how far it is in the line `status` while it comes."""
    here = [0, 0]
    task: Future[LoadedModel] = Future()

    def load() -> None:
        try:
            task.set_result(get_model(name, lambda done, total: here.__setitem__(slice(None), [done, total])))
        except ValueError as problem:
            task.set_exception(problem)

    threading.Thread(target=load, daemon=True).start()
    while True:
        try:
            return task.result(timeout=LOADING_SECONDS)
        except TimeoutError:
            done, total = (n / 1e6 for n in here)
            key = "status.downloading" if total else "status.loading"
            yield {status: t(key, language, done=f"{done:.0f}", total=f"{total:.0f}")}


def _for_model(ui: Playground, values: Values, loaded: LoadedModel) -> Values:
    """A prompt that a model picked just now can spell, where it cannot spell the one that stands there."""
    document, prompt = values[ui.session].document, values[ui.prompt] or ""
    if document is None or document.loaded is loaded or (new := spelled(loaded, prompt)) == prompt:
        return {}
    return {ui.prompt: new}


def _begun(ui: Playground, values: Values) -> Values:
    """At once, before anything is known."""
    session: Session = values[ui.session]
    session.finish_reason = session.meter = session.begun = None
    session.deed = Deed("status.ready", {})
    return {
        **controls(ui, session),
        ui.status: t("status.reading", values[ui.frame.language]),
        ui.notice: "",
        ui.use_tail: gr.update(visible=False),
    }


def _asked(ui: Playground, values: Values) -> tuple[SamplingParams, int]:
    """Settings with a seed, and how many tokens. Raises ValueError with a sentence."""
    return with_seed(params_of(ui, values, seeded=True)), new_tokens(values[ui.length])


def _ready(ui: Playground, values: Values) -> Values:
    """What stays as it is while the text is written."""
    session: Session = values[ui.session]
    language, document = values[ui.frame.language], session.document
    return {
        **fit(ui, session, document.loaded, values),
        **controls(ui, session),
        ui.tree: steer_views.tree(document, language),
        ui.notice: remark(session, language),
    }


def _unless_ready(session: Session, turn: int) -> None:
    """A stream that will not be written has ended."""
    if session.begun is None or session.begun.turn != turn:
        session.turns.end(turn)


def _tail(block_size: int) -> int:
    return max(1, block_size // 2)


def _start(ui: Playground, values: Values, loaded: LoadedModel) -> Generation | None:
    """A new document from the prompt, in the visitor's session; None if the prompt is too long."""
    session: Session = values[ui.session]
    prompt = checked_text("prompt", values[ui.prompt] or "")
    if len(loaded.tokenizer.encode(prompt)) > loaded.model.config.block_size:
        return None
    document = Generation(loaded, prompt)
    session.leave()
    session.document, session.prompt = document, prompt
    session.look = session.look.fitting(loaded.model.config, position=views.NEWEST)
    return session.document


def _too_long(ui: Playground, values: Values, loaded: LoadedModel) -> Values:
    """What is said of a prompt longer than the context, with the way out."""
    language = values[ui.frame.language]
    limit = loaded.model.config.block_size
    n = len(loaded.tokenizer.encode(values[ui.prompt]))
    return {
        ui.notice: views.count_sentence(n, limit, language),
        ui.use_tail: gr.update(visible=True, value=t("prompt.use_tail", language, n=_tail(limit))),
        ui.status: t("status.ready", language),
    }
