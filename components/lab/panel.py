"""What all panels share: they compute when they are shown, when a control moves, and when the language changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.frame import Frame
from components.playground.tab import LOOKING, RUNNING, Playground
from gpt import Generation

Values = dict[Any, Any]
LATEST = {"trigger_mode": "always_last", **LOOKING}
# What takes seconds: one at a time for all visitors together, so that those who write keep the computer.
EXPERIMENT = {**RUNNING, "concurrency_id": "experiment", "concurrency_limit": 1}


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
            return {seen: True, notice: "", **draw(values, entering)}
        except ValueError as problem:
            return {seen: True, notice: str(problem)}

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
