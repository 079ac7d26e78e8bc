"""The handlers of the Playground that look at what is there: they read the document and never run the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import gradio as gr

from components.api import MAX_CHARACTERS
from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.state.session import Session
from components.state.settings import LIMITS, nearest, sampling_params
from components.tabs.playground import steer_views, views
from components.widgets.tokens import selection
from gpt import LoadedModel, SamplingParams, get_model

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]
STRIP_TOKENS = 600  # of a long prompt, as many are shown while one types
AVERAGE = -1  # the choice of the head picker that stands for all heads


def steady(function: Callable[..., Values]) -> Callable[..., Values]:
    """A handler during which the text never becomes shorter; it may grow."""

    @wraps(function)
    def look_on(ui: Playground, values: Values, *sent: Values) -> Values:
        with values[ui.session].turns.looking():
            return function(ui, values, *sent)

    return look_on


def params_of(ui: Playground, values: Values, *, seeded: bool = False) -> SamplingParams:
    """The settings of the sliders, checked here. Raises ValueError with a sentence in the page's language.

    seeded: with the seed, which only a draw needs.
    """
    typed = (values[ui.seed] or "").strip() if seeded else ""
    if typed and not (typed.isascii() and typed.isdecimal()):
        raise PageError("error.seed")
    seed = int(typed) if typed else None
    return sampling_params(seed=seed, **{name: nearest(name, values[getattr(ui, name)]) for name in LIMITS})


def look(ui: Playground, session: Session, params: SamplingParams, language: Language) -> Values:
    """Every picture of the selected position, and the buttons that depend on it."""
    return {**pictures(ui, session, params, language), **_selection_controls(ui, session)}


def pictures(ui: Playground, session: Session, params: SamplingParams, language: Language) -> Values:
    """Every picture of the selected position."""
    document = session.document
    return {
        ui.bars: views.bars(document, session.look, params, language),
        ui.heatmap: views.heatmap(document, session.look, language),
        ui.strip: gr.update(shade=views.shading(document, session.look)),
        ui.hint: views.hint(document, session.look, language),
        ui.draw: steer_views.draw(document, session.look, language),
        ui.hits: steer_views.found(document, session.look, session.query, language),
    }


def show_prompt(ui: Playground, values: Values) -> Values:
    """While one types: the prompt's tokens and their number."""
    text = (values[ui.prompt] or "")[:MAX_CHARACTERS]
    try:
        loaded = get_model(values[ui.frame.model])
        ids = loaded.tokenizer.encode(text)
    except ValueError as problem:  # a model that did not come, a character that its vocabulary does not have
        return {ui.prompt_strip: "", ui.prompt_count: localize_error(problem, values[ui.frame.language])}
    return {
        ui.prompt_strip: views.prompt_strip(loaded.tokenizer, ids[:STRIP_TOKENS]),
        ui.prompt_count: views.count_sentence(len(ids), loaded.model.config.block_size, values[ui.frame.language]),
    }


@steady
def select_token(ui: Playground, values: Values, sent: Values) -> Values:
    """Look from the token that was clicked in the strip."""
    return _select(ui, values, sent.get("index"))


@steady
def select_row(ui: Playground, values: Values, sent: Values) -> Values:
    """Look from the token whose row was clicked in the heatmap."""
    session: Session = values[ui.session]
    row = sent.get("y")
    if session.document is None or type(row) is not int:
        return gr.skip()
    return _select(ui, values, views.window(session.document, session.look)[0] + row)


def _select(ui: Playground, values: Values, index: object) -> Values:
    """index comes from the browser, so it may be anything."""
    session: Session = values[ui.session]
    document = session.document
    if document is None or type(index) is not int or not 0 <= index < len(document.ids):
        return gr.skip()
    session.look = replace(session.look, position=index)
    update = look(ui, session, params_of(ui, values), values[ui.frame.language])
    shade = views.shading(document, session.look)
    return update | {ui.strip: gr.update(selected=selection(index), shade=shade)}


@steady
def select_head(ui: Playground, values: Values) -> Values:
    """Look through another head, or shade the strip by something else."""
    session: Session = values[ui.session]
    document, language = session.document, values[ui.frame.language]
    shading = values[ui.shading]
    session.look = replace(session.look, shading=shading if shading in get_args(views.Shading) else "probability")
    if document is None:
        return gr.skip()
    config = document.loaded.model.config
    layer, head = _whole_number(values[ui.layer]), _whole_number(values[ui.head])
    if layer in range(config.n_layer):
        session.look = replace(session.look, layer=layer)
    if head in range(AVERAGE, config.n_head):
        session.look = replace(session.look, head=None if head == AVERAGE else head)
    return {
        **pickers(ui, session),
        ui.heatmap: views.heatmap(document, session.look, language),
        ui.strip: gr.update(shade=views.shading(document, session.look), by=session.look.shading),
        ui.hint: views.hint(document, session.look, language),
    }


def _whole_number(choice: object) -> int | None:
    """A choice of a picker, or what was typed into it; None for what is no number."""
    if isinstance(choice, str) and choice.isascii() and choice.isdecimal():
        return int(choice[:9])
    return choice if type(choice) is int else None


def pickers(ui: Playground, session: Session) -> Values:
    """Layer and head as they are selected."""
    head = session.look.head
    return {ui.layer: session.look.layer, ui.head: AVERAGE if head is None else head}


@steady
def show_bars(ui: Playground, values: Values) -> Values:
    """The bars after a slider moved: recomputed from the stored state."""
    session: Session = values[ui.session]
    document = session.document
    if document is None:
        return gr.skip()
    params = params_of(ui, values)
    return {ui.bars: views.bars(document, session.look, params, values[ui.frame.language])}


def fit(ui: Playground, session: Session, loaded: LoadedModel, values: Values) -> Values:
    """What depends on the model: its layers and heads to choose from."""
    config, head = loaded.model.config, session.look.head
    choices = head_choices(config.n_head, values[ui.frame.language])
    return {
        ui.layer: gr.update(choices=list(range(config.n_layer)), value=session.look.layer),
        ui.head: gr.update(choices=choices, value=AVERAGE if head is None else head),
        **show_prompt(ui, values),
    }


@steady
def retell(ui: Playground, values: Values) -> Values:
    """Every sentence again, in the language chosen just now."""
    language = values[ui.frame.language]
    session: Session = values[ui.session]
    document = session.document
    update = show_prompt(ui, values)
    update[ui.head] = gr.update(choices=head_choices(get_model(values[ui.frame.model]).model.config.n_head, language))
    if document is None:
        return update
    return update | {
        **look(ui, session, params_of(ui, values), language),
        ui.tree: steer_views.tree(document, language),
        ui.status: told(session, language),
    }


def told(session: Session, language: Language) -> str:
    """The line above the text: the last run, or what was done since."""
    document = session.document
    if document is None:
        return t("status.ready", language)
    if session.meter is not None:
        one_step = session.meter.count == 1 and session.finish_reason == "max_new_tokens"
        return views.status(session.meter, None if one_step else session.finish_reason, language)
    if session.deed is None:
        return t("status.example", language)
    limit = document.loaded.model.config.block_size
    where = t("status.position", language, position=min(len(document.ids), limit), limit=limit)
    return f"{t(session.deed.key, language, **session.deed.values)} · {where}"


def head_choices(n_head: int, language: Language) -> list[tuple[str, int]]:
    """(what the head picker says, value)."""
    return [(t("attention.all", language), AVERAGE), *((str(head), head) for head in range(n_head))]


def controls(ui: Playground, session: Session) -> Values:
    """Which buttons can be pressed now."""
    running = session.turns.streaming
    return {
        ui.generate: gr.update(interactive=not running),
        ui.step: gr.update(interactive=not running),
        ui.stop: gr.update(interactive=running),
        ui.undo: gr.update(interactive=session.can_undo),
        ui.redo: gr.update(interactive=session.can_redo and not running),
        **_selection_controls(ui, session),
    }


def _selection_controls(ui: Playground, session: Session) -> Values:
    """Those that depend on the selection."""
    running, document = session.turns.streaming, session.document
    there = document is not None
    earlier = there and steer_views.selected(document, session.look) < len(document.ids) - 1
    return {
        ui.back: gr.update(interactive=earlier),
        ui.go_on: gr.update(interactive=there and not running),
    }
