"""What tabs that are not drawn from views yet read of the Playground. Goes with the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.events import QUEUES, QUIET, Events
from components.frame import Frame
from components.i18n import Language
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
from gpt import Generation, SamplingParams

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


def params_of(ui: Playground, values: Values, *, seeded: bool = False) -> SamplingParams:
    settings = values[ui.session].settings
    return settings.seeded() if seeded else settings.sampling()


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
