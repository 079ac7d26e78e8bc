"""The handlers of the Playground that run the model: write, one step, stop, start again."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future, TimeoutError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import checked_text, error
from components.i18n import Language, say
from components.playground import views
from components.playground.looking import fit, look, params_of
from components.session import Session
from components.settings import number
from components.widgets.tokens import selection
from gpt import Generation, LoadedModel, get_model, with_seed

if TYPE_CHECKING:
    from components.playground.tab import Playground

Values = dict[Any, Any]
HEATMAP_SECONDS = 0.3  # between two heatmaps while the text streams
UPDATE_SECONDS = 0.02  # between two updates at full speed
LOADING_SECONDS = 0.3  # until a person is told that a model is on its way, and between two words of it


def stream(ui: Playground, values: Values) -> Iterator[Values]:
    """Write: strip and bars with every token, the heatmap a few times a second."""
    language: Language = values[ui.frame.language]
    session: Session = values[ui.session]
    session.finish_reason = session.meter = None
    yield {
        **_buttons(ui, running=True),
        ui.status: say("status.reading", language),
        ui.notice: "",
        ui.use_tail: gr.update(visible=False),
    }
    try:
        params = with_seed(params_of(ui, values))
        length = int(number("max_new_tokens", values[ui.length], 1))
        loaded = yield from loading(ui.status, values[ui.frame.model], language)
        document = _start(ui, values, loaded)
    except ValueError as problem:
        if session.document is not None:  # back to the model that works
            yield {ui.frame.model: session.document.loaded.name}
        raise error(problem) from None
    if document is None:
        yield _too_long(ui, values, loaded)
        return
    pace = values[ui.pace]
    began = time.perf_counter()
    document.read()
    meter = session.meter = views.Meter(document, params.seed)
    strip = views.strip(document)
    yield {
        **look(ui, session, params, language),
        **fit(ui, session, loaded, values),
        ui.strip: gr.update(value=strip, selected=selection(views.NEWEST), shade=views.shading(document, session.look)),
        ui.notice: _remark(document, session.prompt, language),
    }
    drawn = shown = 0.0
    for made in meter.timed(document.steps(params, length), began):
        strip += views.strip_step(document, made)
        session.finish_reason = made.finish_reason
        now = time.perf_counter()
        if not pace and now - shown < UPDATE_SECONDS and made.finish_reason is None:
            continue
        shown = now
        shade = views.shading(document, session.look)
        update = {
            ui.strip: gr.update(value=strip, shade=shade) if shade else strip,
            ui.bars: views.bars(document, session.look, params, language),
            ui.status: meter.sentence(language),
        }
        if now - drawn >= HEATMAP_SECONDS:
            drawn = now
            update[ui.heatmap] = views.heatmap(document, session.look, language)
        yield update
        if pace:
            time.sleep(max(0.0, began + meter.count / pace - time.perf_counter()))


def finish(ui: Playground, values: Values) -> Values:
    """After a stream, however it ended: what could come next, and the buttons as they were."""
    language, session = values[ui.frame.language], values[ui.session]
    update = _buttons(ui, running=False)
    document = session.document
    if document is None or session.meter is None:
        return update | {ui.status: say("status.ready", language)}
    document.read()
    session.finish_reason = session.finish_reason or "stopped"
    return update | {
        **look(ui, session, params_of(ui, values), language),
        ui.status: views.status(session.meter, session.finish_reason, language),
    }


def step(ui: Playground, values: Values) -> Values:
    """One token more: of the document on the screen, or of a new one where prompt or model have changed."""
    language, session = values[ui.frame.language], values[ui.session]
    try:
        params = with_seed(params_of(ui, values))
        document = session.document
        wanted = (values[ui.prompt], values[ui.frame.model])
        if document is None or (session.prompt, document.loaded.name) != wanted:
            loaded = get_model(values[ui.frame.model])
            document = _start(ui, values, loaded)
            if document is None:
                return _too_long(ui, values, loaded)
        if document.full:
            limit = document.loaded.model.config.block_size
            return {ui.notice: say("error.full", language, limit=limit)}
        session.meter = views.Meter(document, params.seed)
        for _ in session.meter.timed(document.steps(params, 1), time.perf_counter()):
            document.read()
    except ValueError as problem:
        raise error(problem) from None
    session.look = replace(session.look, position=views.NEWEST)
    shade = views.shading(document, session.look)
    return {
        **look(ui, session, params, language),
        ui.strip: gr.update(value=views.strip(document), selected=selection(views.NEWEST), shade=shade),
        ui.status: session.meter.sentence(language),
        ui.notice: _remark(document, session.prompt, language),
        ui.use_tail: gr.update(visible=False),
    }


def clear(ui: Playground, values: Values) -> Values:
    """An empty page."""
    session = values[ui.session]
    session.document = session.meter = None
    session.prompt = ""
    return {
        **_buttons(ui, running=False),
        ui.prompt: "",
        ui.strip: gr.update(value="", selected=selection(views.NEWEST), shade=""),
        ui.bars: "",
        ui.heatmap: "",
        ui.hint: "",
        ui.notice: "",
        ui.use_tail: gr.update(visible=False),
        ui.status: say("status.ready", values[ui.frame.language]),
    }


def use_tail(ui: Playground, values: Values) -> str:
    """The last part of a prompt that was too long: half a context of it, so that there is room to go on."""
    loaded = get_model(values[ui.frame.model])
    ids = loaded.tokenizer.encode(values[ui.prompt] or "")
    return loaded.tokenizer.decode(ids[-_tail(loaded.model.config.block_size) :]).lstrip("\ufffd")


def _tail(block_size: int) -> int:
    return max(1, block_size // 2)


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
            yield {status: say(key, language, done=f"{done:.0f}", total=f"{total:.0f}")}


def _start(ui: Playground, values: Values, loaded: LoadedModel) -> Generation | None:
    """A new document from the prompt, in the visitor's session; None if the prompt is too long."""
    session: Session = values[ui.session]
    prompt = checked_text("prompt", values[ui.prompt] or "")
    if len(loaded.tokenizer.encode(prompt)) > loaded.model.config.block_size:
        return None
    session.document, session.prompt = Generation(loaded, prompt), prompt
    session.look = session.look.fitting(loaded.model.config, position=views.NEWEST)
    return session.document


def _too_long(ui: Playground, values: Values, loaded: LoadedModel) -> Values:
    """What is said of a prompt longer than the context, with the way out."""
    language = values[ui.frame.language]
    limit = loaded.model.config.block_size
    n = len(loaded.tokenizer.encode(values[ui.prompt]))
    return {
        ui.notice: views.count_sentence(n, limit, language),
        ui.use_tail: gr.update(visible=True, value=say("prompt.use_tail", language, n=_tail(limit))),
        ui.status: say("status.ready", language),
    }


def _remark(document: Generation, prompt: str, language: Language) -> str:
    """What a person should know of this run, if anything."""
    if document.loaded.name == "untrained":
        return say("untrained.note", language)
    return say("prompt.started_empty", language) if not prompt else ""


def _buttons(ui: Playground, *, running: bool) -> Values:
    return {
        ui.generate: gr.update(interactive=not running),
        ui.step: gr.update(interactive=not running),
        ui.stop: gr.update(interactive=running),
    }
