"""What tabs that are not drawn from views yet read of the Playground. Goes with the last of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.errors import localize_error
from components.events import QUEUES, QUIET, Events
from components.frame import Frame
from components.i18n import Language
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
from gpt.inference.threads import threads_for

Values = dict[Any, Any]
LOOKING = {**QUIET, **QUEUES["look"]}
RUNNING = {**QUIET, **QUEUES["model"]}
LATEST = {"trigger_mode": "always_last", **LOOKING}


@dataclass(frozen=True)
class Playground:
    """The frame, the session in a gr.State, and what is read of the Playground's controls."""

    frame: Frame
    session: gr.State
    parts: PlaygroundComponents
    events: Events

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
        return [self.frame.updates]

    def begin_after(self, event: Any) -> None:
        """Write a new text of what is typed and the model that is chosen."""
        begun = self.events.on(event, begin_typed, queue="model")
        follow(self.events, begun)

    def shown(self, session: Session) -> Values:
        """What the new tabs show of the session now."""
        return {self.frame.updates: self.events.renderer.frame(session) or gr.skip()}


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


@dataclass(frozen=True)
class Panel:
    """One experiment. show: the handler that fills it, from {component: value} of inputs to that of outputs."""

    show: Callable[[Values], Values]
    inputs: set[Any]
    outputs: list[Any]

    def show_on(self, *triggers: Any) -> None:
        """Fill the panel whenever one of these events fires, such as `tab.select`."""
        gr.on(list(triggers), self.show, self.inputs, self.outputs, **LATEST)


def make_panel(
    frame: Frame,
    playground: Playground,
    draw: Callable[[Values, bool], Values],
    *,
    controls: Sequence[Any],
    outputs: Sequence[Any],
    notice: gr.HTML,
    reads: Sequence[Any] = (),
) -> Panel:
    """Wire a panel: every control that a person moves draws it again, and the language too once it was shown.

    draw(values, entering): the updates; entering is True when the panel is shown, and the visitor's selection may
    move the controls. A ValueError of it is said in `notice`, and all else stays. reads: inputs that draw nothing.
    """
    seen = gr.State(False)
    inputs = {seen, playground.session, frame.model, frame.language, *controls, *reads}
    written = [seen, notice, *outputs]

    def drawn(values: Values, entering: bool) -> Values:
        try:
            with threads_for(0):
                return {seen: True, notice: "", **draw(values, entering)}
        except ValueError as problem:
            return {seen: True, notice: localize_error(problem, values[frame.language])}

    def moved(values: Values) -> Values:
        return drawn(values, False)

    def retold(values: Values) -> Values:
        return drawn(values, False) if values[seen] else {seen: gr.skip()}

    if controls:
        gr.on([_moves(control) for control in controls], moved, inputs, written, **LATEST)
    frame.language.change(retold, inputs, written, **LOOKING)
    return Panel(lambda values: drawn(values, True), inputs, written)


def _moves(control: Any) -> Any:
    """The event of a person who moves a control; text that is pasted raises no `input`."""
    return control.change if isinstance(control, gr.Textbox) else control.input


def document_of(values: Values, playground: Playground) -> Generation | None:
    """The visitor's document, once the model has read some of it; None before."""
    document = values[playground.session].document
    return document if document is not None and document.n_read else None
