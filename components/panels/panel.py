"""What all panels share: they compute when they are shown, when a control moves, and when the language changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import gradio as gr
from torch import Tensor

from components.errors import localize_error
from components.frame import Frame
from components.legacy import LOOKING, RUNNING, Playground
from components.localized import Words
from gpt import Generation
from gpt.inference.threads import threads_for

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


def best_of_both(before: Tensor, after: Tensor, n: int) -> list[int]:
    """The likeliest tokens of two predictions, (vocab_size,) each: n - 3 of the one and 3 of the other, each once."""
    counted = zip((before, after), (n - 3, 3), strict=True)
    return list(dict.fromkeys(i for one, k in counted for i in one.topk(min(k, len(one))).indices.tolist()))


def _moves(control: Any) -> Any:
    """The event of a person who moves a control; text that is pasted raises no `input`."""
    return control.change if isinstance(control, gr.Textbox) else control.input


@dataclass(frozen=True)
class Experiment:
    """Two buttons: one starts what takes seconds, the other stops it. found: what came of it, for this visitor."""

    start: gr.Button
    stop: gr.Button
    found: gr.State


def build_experiment(words: Words, key: str, name: str) -> Experiment:
    """Lay both buttons out; the text of the first is that of `key`, and the ids begin with `name`."""
    with gr.Row(elem_classes="gb-buttons gb-short"):
        start = words.build(gr.Button, {"value": key}, size="md", elem_id=f"{name}-start", min_width=0)
        stop = words.build(
            gr.Button, {"value": "stop"}, size="md", elem_id=f"{name}-stop", interactive=False, min_width=0
        )
    return Experiment(start, stop, gr.State(None))


def wire_experiment(
    frame: Frame,
    experiment: Experiment,
    run: Callable[[Values], Iterator[Values]],
    outputs: Sequence[Any],
    notice: gr.HTML,
    *,
    reads: Sequence[Any] = (),
    alone: bool = True,
) -> None:
    """Let the first button run it, one visitor at a time, and the second end it; a ValueError is said in `notice`.

    run: from the language and what it reads. alone: on one core, whatever it computes.
    """
    buttons = [experiment.start, experiment.stop]

    def running(values: Values) -> Iterator[Values]:
        yield {experiment.start: gr.update(interactive=False), experiment.stop: gr.update(interactive=True), notice: ""}
        steps = run(values)
        try:
            while True:
                with threads_for(0) if alone else nullcontext():  # a step may run on another thread than the last one
                    update = next(steps, None)
                if update is None:
                    return
                yield update
        except ValueError as problem:
            yield {notice: localize_error(problem, values[frame.language])}

    written = [*buttons, experiment.found, notice, *outputs]
    started = experiment.start.click(running, {frame.language, *reads}, written, **EXPERIMENT)
    for ended in (started.then, started.failure):
        ended(lambda: [gr.update(interactive=True), gr.update(interactive=False)], None, buttons, **LOOKING)
    experiment.stop.click(None, None, None, cancels=started, api_visibility="private")


def document_of(values: Values, playground: Playground) -> Generation | None:
    """The visitor's document, once the model has read some of it; None before."""
    document = values[playground.session].document
    return document if document is not None and document.n_read else None
