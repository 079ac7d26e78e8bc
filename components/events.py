"""Event wiring: a handler changes the session, and the page is updated from the session.

A handler is called with the session and its input values. It returns None, or yields whenever the page should be
updated, and must not hold any of the session's locks while it yields. A ValueError or a full disk becomes a message on
the page.
"""

from __future__ import annotations

import errno
import json
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, Literal

import gradio as gr
from gradio.blocks import Block
from gradio.helpers import log_message

from components.errors import PageError, Question, localize_error
from components.i18n import in_all_languages, speaking, t
from components.limits import (
    MAX_CONCURRENT_EVENTS,
    MAX_CONCURRENT_EXPERIMENTS,
    MAX_MODEL_EVENTS,
)
from components.monitoring import ERRORS, count_error
from components.parts import Handler, Queue, streams
from components.render import Renderer
from components.state.session import Session
from components.state.store import SessionStore, is_session_id

# Selections do not wait for generation. The events of `model` and `analysis` wait in admission queues instead (see
# components.state.admission). Experiments take seconds and run one at a time for all visitors.
QUEUES: dict[Queue, dict[str, Any]] = {
    "interactive": {"concurrency_id": "interactive", "concurrency_limit": MAX_CONCURRENT_EVENTS},
    "model": {"concurrency_id": "model", "concurrency_limit": MAX_MODEL_EVENTS},
    "analysis": {"concurrency_id": "analysis", "concurrency_limit": MAX_CONCURRENT_EVENTS},
    "experiment": {"concurrency_id": "experiment", "concurrency_limit": MAX_CONCURRENT_EXPERIMENTS},
    "stop": {"concurrency_id": "interactive", "concurrency_limit": MAX_CONCURRENT_EVENTS},
}
# Views show progress instead of gradio, whose progress messages copy every output's state.
OVER = object()
NO_PROGRESS: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
RESTORE = '{"n":0,"base":null,"restore":true}'  # makes the page reload with its saved session


class Events:
    """Wires one page's events.

    client: the component that holds the browser tab's id; frame: receives the frames. A handler opens a tab by setting
    `session.tab`.
    """

    def __init__(self, store: SessionStore, renderer: Renderer, client: gr.Textbox, frame: gr.HTML) -> None:
        self.store, self.renderer, self.client, self.frame = store, renderer, client, frame

    def on(
        self,
        trigger: Any,
        handler: Handler,
        inputs: Sequence[Block] = (),
        *,
        sets: Sequence[Block] = (),
        edited: Sequence[Block] = (),
        payload: bool = False,
        queue: Queue = "interactive",
        trigger_mode: Literal["once", "multiple", "always_last"] = "multiple",
        js: str | None = None,
        cancels: Sequence[Any] = (),
    ) -> Any:
        """Call `handler(session, *input_values)` on an event, and send the views that changed.

        Args:
            trigger: A component's event, such as `button.click`, a dependency (`event.then`), or a list of events.
            inputs: Components whose values to pass; for a widget, the unchecked dict that it last sent with this event.
            sets: Inputs that the handler may change; the others keep the visitor's value.
            edited: Other components that the browser itself has changed.
            payload: Also pass the dict that the event itself carries, unchecked.
            js: JavaScript function that runs in the browser first; it takes the inputs and returns them as a list.

        Raises:
            TypeError: If `payload` is combined with "always_last", because gradio repeats the first event's payload.
        """
        if payload and trigger_mode == "always_last":
            raise TypeError('a payload with trigger_mode="always_last" would be that of the first event: use an input')
        unset = [*(component for component in inputs if component not in sets), *edited]
        first = trigger[0] if isinstance(trigger, list | tuple) else trigger
        name = getattr(first, "event_name", "")

        def respond(event: gr.EventData, session_id: object, values: tuple[Any, ...]) -> Iterator[Any]:
            session = self.find(session_id)
            if session is None:
                yield RESTORE
                return
            sent = (_sent(v, name) if isinstance(c, gr.HTML) else v for c, v in zip(inputs, values, strict=True))
            arguments = (*sent, _dict(vars(event).get("_data"))) if payload else (*sent,)
            not_set: Sequence[Block] = unset  # the first frame skips these, as the browser has the visitor's values
            with closing(_steps_of(handler, session, arguments)) as steps:
                try:
                    for _ in steps:
                        yield shown(session, not_set)
                        not_set = ()
                except gr.Error:
                    yield shown(session, not_set)
                    raise
            yield shown(session, not_set)

        def shown(session: Session, not_set: Sequence[Block]) -> Any:
            return self.renderer.frame(session, not_set) or gr.skip()

        def stream(event: gr.EventData, session_id: str, *values: Any) -> Iterator[Any]:
            yield from respond(event, session_id, values)

        def answer(event: gr.EventData, session_id: str, *values: Any) -> Any:
            frames: list[Any] = []
            try:
                frames.extend(respond(event, session_id, values))
            except gr.Error as problem:
                if not frames:
                    raise
                _pop_up(problem)
            return frames[-1]

        prepare = js or "(...values) => values"
        options = {
            "fn": stream if streams(handler) else answer,
            "inputs": [self.client, *inputs],
            "outputs": [self.frame],
            "trigger_mode": trigger_mode,
            "js": f"""async (id, ...values) => {{
              const inputs = ({prepare})(...values);
              return [await glassbox.session(), ...inputs];
            }}""",
            "cancels": list(cancels) or None,
            **NO_PROGRESS,
            **QUEUES[queue],
        }
        return gr.on(list(trigger), **options) if isinstance(trigger, list | tuple) else trigger(**options)

    def wire_controls(self) -> None:
        """Let frames update the controls that have been added so far."""
        for tab in self.renderer.controls:
            if components := self.renderer.components(tab):
                apply = f"() => glassbox.controls({json.dumps(tab)}, {len(components)})"
                self.frame.controls(None, None, components, js=apply, api_visibility="private")

    def find(self, session_id: object) -> Session | None:
        """Return a browser tab's session, or None if it has expired. Raises gr.Error if the tab has no id yet."""
        if not is_session_id(session_id):
            raise error(" ".join(in_all_languages("error.not_ready").values()))
        return self.store.get(str(session_id))


@dataclass(frozen=True)
class Carried:
    """Gradio controls whose values other events also send, because the controls' own events may not have arrived.

    take: called with the session and the values before the other event's handler. js: JavaScript
    function that runs in the browser first; it takes the values and returns them as a list.
    """

    components: Sequence[Any]
    take: Callable[..., None]
    js: str

    def added(self, handler: Handler, inputs: Sequence[Block], js: str = "(...sent) => sent") -> dict[str, Any]:
        """Return these arguments for `Events.on`, extended so that the event also sends the controls' values."""
        n = len(inputs)
        return {
            "handler": partial(_take_and, self.take, n, handler),
            "inputs": [*inputs, *self.components],
            "js": f"(...sent) => [...({js})(...sent.slice(0, {n})), ...({self.js})(...sent.slice({n}))]",
        }


def _take_and(take: Callable[..., None], n: int, handler: Handler, session: Session, *sent: Any) -> Iterator[None]:
    """Pass the values after the first n to `take`, then call the handler with the first n."""
    take(session, *sent[n:])
    yield from handler(session, *sent[:n]) or ()


def in_turn(runs: Iterable[Callable[[], Iterator[None] | None]]) -> Iterator[None]:
    """Call functions that change a session, yielding before each call and whenever one yields.

    After an error, the remaining functions are still called. The first error is raised at the end.
    """
    problems: list[Exception] = []
    for run in runs:
        yield
        try:
            made = run()
            if isinstance(made, Iterator):
                yield from made
        except Exception as problem:
            problems.append(problem)
    for other in problems[1:]:
        with suppress(gr.Error), error_messages():  # counts it; only the first one becomes a message
            raise other
    if problems:
        raise problems[0]


def _pop_up(problem: gr.Error) -> None:
    """Show an error's message without raising it, which would drop the event's frame."""
    if problem.print_exception:
        traceback.print_exception(problem)
    level: Any = "error"  # gradio's pages show it, although its functions only announce the other levels
    log_message(problem.message, problem.title, level, problem.duration, problem.visible)


def _steps_of(handler: Handler, session: Session, arguments: tuple[Any, ...]) -> Generator[None]:
    """Yield a handler's updates, if any, and convert its errors to messages. Texts are in the session's language."""
    steps: Iterator[None] | None = None

    def is_over() -> bool:
        nonlocal steps
        with speaking(session.language, exact=session.numbers), error_messages():
            if steps is None:
                made = handler(session, *arguments)
                steps = made if isinstance(made, Iterator) else iter(())
            return next(steps, OVER) is OVER

    try:
        while not is_over():  # the context lasts for one step, because gradio may run each in another thread
            yield
    finally:
        if isinstance(steps, Generator):
            steps.close()


@contextmanager
def error_messages() -> Iterator[None]:
    """Convert errors to messages in the context's language, and count them.

    ValueErrors and a full disk have their own sentences. Other errors are also logged.
    """
    try:
        yield
    except Exception as problem:
        is_full = isinstance(problem, OSError) and problem.errno == errno.ENOSPC
        if is_full or isinstance(problem, ValueError):
            ERRORS.labels("sentence").inc()
            raise error(PageError("error.disk_full") if is_full else problem) from None
        count_error("unexpected", problem)
        unexpected = error(PageError("error.unexpected"))
        unexpected.print_exception = True
        raise unexpected from problem


def _sent(values: object, name: str) -> dict[str, Any]:
    """Return the dict stored under a name in a value from the browser, or {} for anything else."""
    return _dict(_dict(values).get(name))


def _dict(sent: object) -> dict[str, Any]:
    return sent if isinstance(sent, dict) else {}


def error(problem: object) -> gr.Error:
    """Return a gr.Error whose message is escaped and not logged."""
    title = t("error.title")
    text, pops_up = escape(localize_error(problem), quote=False), not isinstance(problem, Question)
    return gr.Error(text, visible=pops_up, title=title, print_exception=False)


def clamped_js(components: Iterable[Block]) -> str:
    """Return `js` for an event with these inputs that clamps numbers typed beside a slider to the slider's range.

    Gradio rejects numbers outside the range.
    """
    ends = [[each.minimum, each.maximum] if isinstance(each, gr.Slider) else None for each in components]
    return f"""(...values) => {json.dumps(ends)}.map((ends, i) =>
      ends ? Math.min(Math.max(values[i] ?? ends[0], ends[0]), ends[1]) : values[i])"""
