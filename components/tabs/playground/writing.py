"""The handlers of the Playground that write: token by token, until there is no more to write or somebody stops it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import error
from components.errors import localize_error
from components.i18n import Language, t
from components.state.session import Begun, Session
from components.tabs.playground import steer_views, views
from components.tabs.playground.looking import controls, look, params_of, pictures, told
from components.updates import update_gap
from components.widgets.tokens import selection

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]
HEATMAP_SECONDS = 0.3  # between two heatmaps while the text streams
DRAW_SECONDS = 1.0  # between two draws laid out
UPDATE_SECONDS = 0.02  # between two updates at full speed


def write(ui: Playground, values: Values) -> Iterator[Values]:
    """Write what was made ready, as soon as there is a seat: strip and bars with every token, the other pictures a few
    times a second.

    An event of its own, because every output of an event costs time at every update, whether it changes or not.
    """
    session: Session = values[ui.session]
    begun, session.begun = session.begun, None
    if begun is None:
        yield {ui.status: gr.skip()}
        return
    try:
        with begun.document.loaded.engine.seats.taken() as places:
            for before in places:
                yield {ui.status: t("status.waiting", values[ui.frame.language], before=before)}
                with session.turns.writing(begun.turn) as mine:
                    if not mine:
                        return
            yield from _seated(ui, session, begun, values[ui.frame.language])
    except ValueError as problem:  # logits beyond what a float can hold
        raise error(problem, values[ui.frame.language]) from None
    finally:
        session.turns.end(begun.turn)


def _seated(ui: Playground, session: Session, begun: Begun, language: Language) -> Iterator[Values]:
    document, params, pace = begun.document, begun.params, begun.pace
    with session.turns.writing(begun.turn) as mine:
        if not mine:
            return
        document.read()
        meter = session.meter = views.Meter(document, params.seed)
        strip = views.strip(document, session.known)
        shade = views.shading(document, session.look)
        update = {
            **pictures(ui, session, params, language),
            ui.strip: gr.update(value=strip, selected=selection(views.NEWEST), shade=shade),
        }
    yield update
    began, drawn, shown, laid_out = time.perf_counter(), -math.inf, -math.inf, -math.inf
    steps = meter.timed(document.steps(params, begun.length), begun.when)
    while True:
        with session.turns.writing(begun.turn) as mine:
            made = next(steps, None) if mine else None
            if made is None:
                return
            strip += views.strip_step(document, made, session.known)
            session.finish_reason = made.finish_reason
            now, update = time.perf_counter(), {}
            gap = max(update_gap(document.loaded), 0.0 if pace else UPDATE_SECONDS)
            if now - shown >= gap or made.finish_reason is not None:
                shown = now
                if made.finish_reason is not None:
                    document.read()  # so that the bars say at once what could come next
                shade = views.shading(document, session.look)
                update = {
                    ui.strip: gr.update(value=strip, shade=shade) if shade else strip,
                    ui.bars: views.bars(document, session.look, params, language),
                    ui.status: meter.sentence(language),
                }
                if now - drawn >= HEATMAP_SECONDS:
                    drawn = now
                    update[ui.heatmap] = views.heatmap(document, session.look, language)
                if now - laid_out >= DRAW_SECONDS:
                    laid_out = now
                    update[ui.draw] = steer_views.draw(document, session.look, language)
        if update:
            yield update
        if pace:
            session.turns.rest(begun.turn, began + meter.count / pace - time.perf_counter())


def stop(ui: Playground, values: Values) -> Values:
    """Let whatever writes stop before its next token."""
    session: Session = values[ui.session]
    session.drop()
    session.turns.take()
    return finish(ui, values)


def finish(ui: Playground, values: Values) -> Values:
    """After a stream, however it ended: what could come next, and the buttons as they were."""
    session: Session = values[ui.session]
    language = values[ui.frame.language]
    with session.turns.settling():
        if session.turns.streaming:  # another one has begun, or what stopped this one will show all of it
            return gr.skip()
        update = controls(ui, session)
        document = session.document
        if document is None or session.meter is None:
            return update | {ui.status: told(session, language)}
        document.read()
        session.finish_reason = session.finish_reason or "stopped"
        try:
            update |= look(ui, session, params_of(ui, values), language)
        except ValueError as problem:
            return update | {ui.status: localize_error(problem, language)}
        return update | {
            ui.status: told(session, language),
            ui.tree: steer_views.tree(document, language),
        }
