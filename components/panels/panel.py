"""What panels share: they rest while closed, compute in a thread, and run experiments that can be stopped."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import gradio as gr
from gradio.blocks import Block
from torch import Tensor

from components.errors import PageError, localize_error
from components.events import Events
from components.i18n import t
from components.localized import Localizer
from components.render import Analysis, Control, View
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Text
from gpt.background import run_with_progress
from gpt.inference.threads import SMALL_WORK, threads_for

T = TypeVar("T")
MAX_POSITION = 1023  # of a slider of positions, until it is set to the length of the text
IsOpen = Callable[[Snapshot], bool]
UPDATE_SECONDS = 0.25  # between two frames of an experiment that runs


def add_panel(
    events: Events,
    tab: str,
    is_open: IsOpen,
    views: Sequence[View],
    controls: Sequence[Control] = (),
    analysis: Analysis | None = None,
) -> None:
    """Let a tab show a panel. While it is closed nothing is drawn, sent or computed."""

    def while_open(draw: Callable[[Snapshot], Any], closed: Any) -> Callable[[Snapshot], Any]:
        return lambda s: draw(s) if is_open(s) else closed

    shown = [View(view.name, while_open(view.inputs, None), while_open(view.draw, {})) for view in views]
    wanted = None if analysis is None else Analysis(while_open(analysis.wanted, None), analysis.run)
    added = [Control(each.component, while_open(each.inputs, None), while_open(each.draw, {})) for each in controls]
    events.renderer.add(tab, shown, wanted, controls=added)


@dataclass(frozen=True, eq=False)
class Result(Generic[T]):
    """What was computed for a question; problem: why it could not be."""

    question: Hashable
    value: T | None = None
    problem: ValueError | None = None


def computed(
    state: type, question: Callable[[Snapshot], Hashable], compute: Callable[[Any], Any], *, small: bool = True
) -> Analysis:
    """Keeps the field `result` of a state: `compute` of the question, in a thread of its own, whenever that changes.

    question: everything that the result depends on; None while nothing can be computed. small: on one core.
    """

    def wanted(s: Snapshot) -> Hashable:
        asked, result = question(s), s.state(state).result
        return None if result is not None and result.question == asked else asked

    def work(asked: Hashable, progress: object) -> Any:
        with threads_for(0 if small else SMALL_WORK):
            return compute(asked)

    def run(session: Session) -> Iterator[None]:
        with session.lock.reading():
            asked = wanted(session.snapshot())
        if asked is None:
            return
        try:
            value = yield from run_with_progress(partial(work, asked), lambda done, total: None)
        except ValueError as problem:
            session.change(state, result=Result(asked, problem=problem))
        else:
            session.change(state, result=Result(asked, value))

    return Analysis(wanted, run)


def value_of(s: Snapshot, result: Result[T] | None) -> T | None:
    """The value of a result; None where there is none yet, and where it belongs to another text than the one shown."""
    text = None if result is None else getattr(result.question, "text", None)
    if result is None or (text is not None and (s.text is None or text.version != s.text.version)):
        return None
    return result.value


def text_of(s: Snapshot) -> Text | None:
    """The text that a panel computes with; None before the model has read some of it, and while it is written."""
    return None if s.text is None or s.text.n_read == 0 or s.generating else s.text


def no_text(s: Snapshot) -> PageError | None:
    """The problem of a panel that needs a text, where there is none."""
    return PageError("error.no_text") if s.text is None or s.text.n_read == 0 else None


def problem_sentence(s: Snapshot, *problems: Exception | None) -> dict[str, Any]:
    """The data of a notice: the first of the problems that is one."""
    problem = next((each for each in problems if each is not None), None)
    return {"text": "" if problem is None else localize_error(problem, s.language)}


def waiting_sentence(s: Snapshot) -> str:
    """What stands in place of an answer that is being computed."""
    return t("panel.waits" if s.generating else "panel.busy", s.language)


def best_of_both(before: Tensor, after: Tensor, n: int) -> list[int]:
    """The most likely tokens of two predictions, (vocab_size,) each: n - 3 of one and 3 of the other, each once."""
    counted = zip((before, after), (n - 3, 3), strict=True)
    return list(dict.fromkeys(i for one, k in counted for i in one.topk(min(k, len(one))).indices.tolist()))


Check = Callable[[object], Any]  # the value as it is stored; None for what a control cannot have sent


def one_of(*choices: Any) -> Check:
    """A check for one of these values."""
    return lambda value: value if value in choices else None


def within(low: float, high: float) -> Check:
    """A check for a number between the ends, whole where both are."""
    number = int if isinstance(low, int) and isinstance(high, int) else float

    def check(value: object) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return number(value) if is_number and low <= value <= high else None

    return check


def store_value(state: type, name: str, check: Check, session: Session, value: object) -> None:
    """A control was moved: keep its value."""
    checked = check(value)
    if checked is not None:
        session.change(state, **{name: checked})


def wire_values(
    events: Events,
    state: type,
    checks: Mapping[str, Check],
    components: Mapping[str, Block],
) -> None:
    """Let each component change the field of its name. Of a text box it is the change: pasting raises no input."""
    for name, check in checks.items():
        component: Any = components[name]
        event = component.change if isinstance(component, gr.Textbox) else component.input
        handler = partial(store_value, state, name, check)
        events.on(event, handler, [component], trigger_mode="always_last")


def select_position(session: Session, position: object) -> None:
    """Select the token of a slider in every tab."""
    session.select(position=within(0, len(session.document.ids))(position) if session.document else None)


def select_layer(session: Session, layer: object) -> None:
    """Select the layer of a picker in every tab; what was typed into it may be anything."""
    session.select(layer=int(layer[:9]) if isinstance(layer, str) and layer.isdecimal() else layer)


def position_control(slider: gr.Slider) -> Control:
    """A slider that stands at the selected token of the text."""

    def last(s: Snapshot) -> int:
        return 1 if s.text is None else max(1, s.text.n_read - 1)

    return Control(
        slider, lambda s: (last(s), s.position), lambda s: {"maximum": last(s), "value": max(0, s.position or 0)}
    )


def layer_control(picker: gr.Dropdown) -> Control:
    """A picker that stands at the selected layer of the model."""

    def layers(s: Snapshot) -> list[int]:
        return list(range(1 if s.text is None else s.text.config.n_layer))

    return Control(
        picker,
        lambda s: (layers(s), s.selection.layer),
        lambda s: {"choices": layers(s), "value": s.selection.layer},
    )


def wire_selection(events: Events, components: Mapping[str, Block]) -> None:
    """Let the components `position` and `layer`, as far as there are any, select in every tab."""
    for name, handler in (("position", select_position), ("layer", select_layer)):
        if name in components:
            component: Any = components[name]
            events.on(component.input, handler, [component], trigger_mode="always_last")


@dataclass(frozen=True, eq=False)
class Run(Generic[T]):
    """An experiment that a person starts. found: its newest result; id: of the run that goes on, None for none."""

    found: T | None = None
    id: object | None = None
    problem: ValueError | None = None

    @property
    def running(self) -> bool:
        return self.id is not None


@dataclass(frozen=True)
class RunButtons:
    """Start and Stop of an experiment."""

    start: gr.Button
    stop: gr.Button

    def controls(self, state: type) -> list[Control]:
        """Which of them can be pressed. state: has the `Run` as its field `run`."""

        def running(s: Snapshot) -> bool:
            return s.state(state).run.running

        return [
            Control(self.start, running, lambda s: {"interactive": not running(s)}),
            Control(self.stop, running, lambda s: {"interactive": running(s)}),
        ]


def run_buttons(localizer: Localizer, key: str, name: str) -> RunButtons:
    """Lay both out; the text of the first is that of `key`, and the ids begin with `name`."""
    with gr.Row(elem_classes="gb-buttons gb-short"):
        start = localizer.build(gr.Button, {"value": key}, size="md", elem_id=f"{name}-start", min_width=0)
        stop = localizer.build(
            gr.Button, {"value": "stop"}, size="md", elem_id=f"{name}-stop", interactive=False, min_width=0
        )
    return RunButtons(start, stop)


def wire_run(
    events: Events,
    buttons: RunButtons,
    state: type,
    steps: Callable[[Snapshot], Iterator[Any]],
    *,
    small: bool = True,
) -> None:
    """Let the buttons start and stop `run_steps`; one experiment of all visitors runs at a time."""
    handler = partial(run_steps, state, steps, small)
    started = events.on(buttons.start.click, handler, queue="experiment", trigger_mode="once")
    events.on(started.failure, partial(stop_run, state))
    events.on(buttons.stop.click, partial(stop_run, state), cancels=[started])


def run_steps(state: type, steps: Callable[[Snapshot], Iterator[Any]], small: bool, session: Session) -> Iterator[None]:
    """Run an experiment in a thread of its own, and keep each of its results in `run.found`. small: on one core."""
    mine = object()
    session.change(state, run=Run(id=mine))
    yield
    with session.lock.reading():
        results = steps(session.snapshot())

    def is_mine() -> bool:
        return session.state(state).run.id is mine

    def work(progress: Callable[[int, int], None]) -> None:
        with threads_for(0 if small else SMALL_WORK):
            for found in results:
                if is_mine():
                    session.change(state, run=Run(found, mine))
                progress(0, 0)

    problem: ValueError | None = None
    try:
        with closing(run_with_progress(work, lambda done, total: None, interval=UPDATE_SECONDS)) as waiting:
            for _ in waiting:
                if not is_mine():
                    return
                yield
    except ValueError as error:
        problem = error
    finally:
        if is_mine():
            session.change(state, run=Run(session.state(state).run.found, problem=problem))


def stop_run(state: type, session: Session) -> None:
    """Stop the experiment; what it has found stays."""
    run = session.state(state).run
    session.change(state, run=Run(run.found, problem=run.problem))
