"""What tabs that are not drawn from views yet read of the Playground. Goes with the last of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import gradio as gr

from components.events import QUEUES, QUIET, Events
from components.frame import Frame
from components.i18n import Language, t
from components.render import Control, components_of
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.playground.components import PlaygroundComponents
from components.tabs.playground.handlers.generation import begin_typed
from components.tabs.playground.tab import follow
from components.text_views import document_lines, next_token_bars
from components.text_views import token_lines as _token_lines
from components.widgets.chart import chart_value
from components.widgets.tokens import header
from gpt import Generation, LoadedModel, SamplingParams, get_model
from gpt.background import run_with_progress

Values = dict[Any, Any]
LOOKING = {**QUIET, **QUEUES["look"]}
RUNNING = {**QUIET, **QUEUES["model"]}


@dataclass(frozen=True)
class Playground:
    """The frame, the session in a gr.State, and what is read of the Playground's controls."""

    frame: Frame
    session: gr.State
    parts: PlaygroundComponents
    events: Events
    controls: list[Control]

    @property
    def prompt(self) -> gr.Textbox:
        return self.parts.prompt

    @property
    def length(self) -> gr.Slider:
        return self.parts.length

    def inputs(self) -> set[Any]:
        names = (*LIMITS, "prompt", "length", "seed", "pace")
        return {*(getattr(self.parts, name) for name in names), self.session, self.frame.model, self.frame.language}

    def outputs(self) -> list[Any]:
        return [self.frame.updates, *components_of(self.controls)]

    def begin_after(self, event: Any) -> None:
        """Write a new text of what is typed and the model that is chosen."""
        begun = self.events.on(event, begin_typed, controls=self.controls, queue="model")
        follow(self.events, begun, self.controls)

    def shown(self, session: Session) -> Values:
        """What the new tabs show of the session now."""
        frame = self.events.renderer.frame(session)
        updates = self.events.renderer.updates(session, self.controls)
        return {self.frame.updates: frame or gr.skip(), **dict(zip(components_of(self.controls), updates, strict=True))}


def shared(playground: Playground) -> list[Any]:
    """The outputs of `agree`."""
    return [playground.frame.updates]


def agree(ui: Any, values: Values) -> Values:
    """Let the other tabs show what was selected here."""
    frame = ui.playground.events.renderer.frame(values[ui.playground.session])
    return {ui.playground.frame.updates: frame or gr.skip()}


def params_of(ui: Playground, values: Values, *, seeded: bool = False) -> SamplingParams:
    settings = values[ui.session].settings
    return settings.seeded() if seeded else settings.sampling()


def steady(function: Callable[..., Values]) -> Callable[..., Values]:
    @wraps(function)
    def look_on(ui: Playground, values: Values, *sent: Values) -> Values:
        with values[ui.session].lock.reading():
            return function(ui, values, *sent)

    return look_on


def loading(status: gr.HTML, name: str, language: Language) -> Generator[Values, None, LoadedModel]:
    def show(done: int, total: int) -> Values:
        key = "status.downloading" if total else "status.loading"
        return {status: t(key, language, done=f"{done / 1e6:.0f}", total=f"{total / 1e6:.0f}")}

    return run_with_progress(lambda progress: get_model(name, progress), show)


def strip(document: Generation, statistics: Any = None) -> str:
    return header(doc=str(document.key)) + "".join(document_lines(document, statistics))


def strip_step(document: Generation, step: Any, statistics: Any = None) -> str:
    if statistics is not None:
        statistics.add(document, step)
    return document_lines(document, statistics)[-1]


def prompt_strip(tokenizer: Any, ids: Any) -> str:
    return header(doc="prompt") + token_lines(tokenizer, ids, [(None, None)] * len(ids), len(ids))


def token_lines(*arguments: Any) -> str:
    return "".join(_token_lines(*arguments))


def bars(document: Generation, selection: Any, params: SamplingParams, language: Language) -> str:
    data = next_token_bars(document, selection.at(document), params, language)
    return chart_value(data["figure"], data["text"])
