"""Opening a link: the settings as they were, the same text written again, the same place looked at."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

import gradio as gr

from components.errors import localize_error
from components.i18n import Language, t
from components.share.link import VIEW, decode
from components.share.telling import prompt_text, replay
from components.state.session import Session, first_prompt
from components.state.settings import LIMITS, sampling_params
from components.tabs.playground import looking, starting, views, writing
from components.tabs.playground.panels import LONGEST
from components.widgets.tokens import selection
from gpt import Edits, Generation, LoadedModel, SamplingParams, encode_prompt, list_models, with_seed
from gpt.documents.edit_text import parse_edits

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]
UPDATE_SECONDS = 0.1  # between two updates while the text is written again


@dataclass
class Asked:
    """What a link asks for. given: its sound values, taken out of it where they turn out not to fit.

    refused: the names of those that could not be followed. problem: a sentence about them, where there is one.
    """

    given: dict[str, Any]
    refused: list[str] = field(default_factory=list)
    problem: str = ""

    def refuse(self, *names: str) -> None:
        """Go on as if these had not been asked for."""
        self.refused += [name for name in names if self.given.pop(name, None) is not None]

    def note(self, language: Language) -> str:
        """What a person should know; nothing where all went as asked."""
        said = t("share.refused", language, names=", ".join(self.refused)) if self.refused else ""
        return " ".join(filter(None, (said, localize_error(self.problem, language))))


def open_link(ui: Playground, tabs: gr.Tabs, values: Values, request: gr.Request) -> Iterator[Values]:
    """Follow the query of the page's address; a page without one stays as it is."""
    asked = Asked(*decode(str(request.query_params)))
    language: Language = asked.given.get("lang", values[ui.frame.language])
    session: Session = values[ui.session]
    if asked.given.keys() - VIEW:
        yield from _write(ui, values, session, asked, language)
        yield writing.finish(ui, values)
    look = asked.given.keys() & VIEW
    if session.document is None or not (look or asked.refused):
        yield {ui.notice: gr.skip()}
        return
    yield _view(ui, tabs, values, session, asked) | {ui.notice: asked.note(language) or gr.skip()}


def _write(
    ui: Playground, values: Values, session: Session, asked: Asked, language: Language
) -> Generator[Values, None, None]:
    """The settings on the screen, and the text from its first token."""
    given = asked.given
    params = _settings(given)
    loaded = yield from _model(ui, values, asked, language)
    prompt, ids = _prompt(loaded, asked)
    document = Generation(loaded, ids)
    length = min(given.get("length", values[ui.length]), LONGEST)
    params, turn = with_seed(params), session.turns.begin()
    written = replay(document, given["text"], params) if "text" in given else document.steps(params, length)
    session.document, session.prompt, session.finish_reason = document, prompt, None
    session.look = session.look.fitting(loaded.model.config, position=views.NEWEST)
    meter = session.meter = views.Meter(document, params.seed)
    sliders = sampling_values(params) | {"seed": str(params.seed) if "seed" in given else "", "prompt": prompt}
    values |= {getattr(ui, name): value for name, value in sliders.items()}
    values[ui.frame.model], values[ui.length] = loaded.name, length
    yield {
        **{getattr(ui, name): value for name, value in sliders.items()},
        **looking.fit(ui, session, loaded, values),
        ui.frame.model: loaded.name,
        ui.length: length,
        ui.status: t("status.reading", language),
        ui.strip: gr.update(value=views.strip(document), selected=selection(views.NEWEST), shade=""),
    }
    shown = time.perf_counter()
    try:
        for made in session.turns.steps(turn, meter.timed(written, shown)):
            session.finish_reason = made.finish_reason or "max_new_tokens"
            if time.perf_counter() - shown > UPDATE_SECONDS:
                shown = time.perf_counter()
                yield {ui.strip: views.strip(document), ui.status: meter.sentence(language)}
    except ValueError as problem:  # ids that do not exist, or more than the context holds
        asked.refuse("text")
        asked.problem = str(problem)
    finally:
        session.turns.end(turn)
    with session.turns.settling():
        document.read()
    yield {ui.strip: gr.update(value=views.strip(document), selected=selection(views.NEWEST), shade="")}


def sampling_values(params: SamplingParams) -> dict[str, float]:
    """Settings as the sliders show them: those that are off stand at the end that means so."""
    off = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
    return {name: off[name] if (value := getattr(params, name)) is None else value for name in LIMITS}


def _settings(given: dict[str, Any]) -> SamplingParams:
    values = {name: given.get(name, limit.default) for name, limit in LIMITS.items()}
    return sampling_params(**values, seed=given.get("seed"))


def _model(ui: Playground, values: Values, asked: Asked, language: Language) -> Generator[Values, None, LoadedModel]:
    """The model that was asked for, or the one that the page has anyway."""
    name = asked.given.get("model", values[ui.frame.model])
    if name in list_models():
        try:
            return (yield from starting.loading(ui.status, name, language))
        except ValueError as problem:
            asked.problem = str(problem)
    asked.refuse("model", "text")
    return ui.frame.example.loaded


def _prompt(loaded: LoadedModel, asked: Asked) -> tuple[str, str | list[int]]:
    """The prompt as the box shows it, and as the document takes it; the example's where it does not fit."""
    for name in ("prompt", "prompt_ids"):
        if name in asked.given:
            prompt = asked.given[name]
            try:
                document = Generation(loaded, prompt)
            except ValueError as problem:
                asked.problem = str(problem)
                asked.refuse(name, "text")
            else:
                return prompt_text(document), prompt
    return (prompt := first_prompt(loaded)), prompt


def _edits(asked: Asked, loaded: LoadedModel) -> tuple[Edits, tuple[int, ...]]:
    """What is changed in the model, and the prompt to try it on; nothing where the model has no such parts."""
    edits, ids = Edits(), asked.given.get("edits_on", ())
    try:
        edits = parse_edits(asked.given.get("edits", ""), loaded.model)
        edits.check(loaded.model.config)
    except ValueError:
        asked.refuse("edits", "edits_on")
        return Edits(), ()
    try:
        return edits, tuple(encode_prompt(loaded, list(ids))) if ids else ()
    except ValueError:
        asked.refuse("edits_on")
        return edits, ()


def _view(ui: Playground, tabs: gr.Tabs, values: Values, session: Session, asked: Asked) -> Values:
    """Look at the same place, in the same tab."""
    document, given = session.document, asked.given
    config = document.loaded.model.config
    limits = {"position": len(document.ids), "layer": config.n_layer, "head": config.n_head}
    asked.refuse(*(name for name, limit in limits.items() if given.get(name, 0) >= limit))
    known = [tab.id for tab in tabs.children if isinstance(tab, gr.Tab)]
    if given.get("tab") not in known:
        asked.refuse("tab")
    if given.get("shading") not in get_args(views.Shading):
        asked.refuse("shading")
    session.edits, session.edits_on = _edits(asked, document.loaded)
    look = session.look
    session.look = replace(
        look,
        position=given.get("position", views.NEWEST),
        layer=given.get("layer", look.layer),
        head=given.get("head", None if "layer" in given else look.head),
        shading=given.get("shading", look.shading),
    )
    language = given.get("lang", values[ui.frame.language])
    shade = views.shading(document, session.look)
    return {
        **looking.look(ui, session, looking.params_of(ui, values), language),
        ui.strip: gr.update(selected=selection(session.look.position), shade=shade, by=session.look.shading),
        ui.shading: session.look.shading,
        ui.layer: session.look.layer,
        ui.head: looking.AVERAGE if session.look.head is None else session.look.head,
        tabs: gr.Tabs(selected=given["tab"]) if "tab" in given else gr.skip(),
    }
