"""Event wiring: a handler changes the session, and the page is updated from the session.

A handler is called with the session and its input values. It returns None, or yields whenever the page should be
updated, and must not hold any of the session's locks while it yields. A ValueError or a full disk becomes a message on
the page.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from html import escape
from typing import Any, Literal

import gradio as gr
from gradio.blocks import Block
from gradio.helpers import log_message

from components.errors import PageError, Question, message_of
from components.i18n import in_all_languages, speaking, t
from components.limits import (
    MAX_CONCURRENT_EVENTS,
    MAX_CONCURRENT_EXPERIMENTS,
    MAX_MODEL_EVENTS,
)
from components.monitoring import ERRORS, count_error
from components.parts import Draw, Handler, Queue, streams
from components.render import Renderer
from components.state.session import Session
from components.state.store import SessionStore, is_session_id

# Selections do not wait for generation. The events of `model` and `analysis` wait in admission queues instead (see
# components.state.admission). Experiments take seconds and run one at a time for all visitors.
QUEUES: dict[Queue, dict[str, Any]] = {
    "interactive": {"concurrency_id": "interactive", "concurrency_limit": MAX_CONCURRENT_EVENTS},
    "typing": {"concurrency_id": "model", "concurrency_limit": MAX_MODEL_EVENTS},
    "model": {"concurrency_id": "model", "concurrency_limit": MAX_MODEL_EVENTS},
    "analysis": {"concurrency_id": "analysis", "concurrency_limit": MAX_CONCURRENT_EVENTS},
    "experiment": {"concurrency_id": "experiment", "concurrency_limit": MAX_CONCURRENT_EXPERIMENTS},
    "stop": {"concurrency_id": "interactive", "concurrency_limit": MAX_CONCURRENT_EVENTS},
}
# Views show progress instead of gradio, whose progress messages copy every output's state.
OVER = object()
NO_PROGRESS: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
RESTORE = '{"n":0,"base":null,"views":{"restore":{}}}'  # makes the page reload with its saved session


class Events:
    """Wires one page's events.

    client: its value is the browser tab's id; frame: receives the frames. A handler opens a tab by setting
    `session.tab`.
    """

    def __init__(self, store: SessionStore, renderer: Renderer, client: gr.HTML, frame: gr.HTML) -> None:
        self.store, self.renderer, self.client, self.frame = store, renderer, client, frame
        self._components: list[Block] = []

    def on(
        self,
        trigger: Any,
        handler: Handler,
        inputs: Sequence[Block] = (),
        *,
        payload: bool = False,
        queue: Queue = "interactive",
        trigger_mode: Literal["once", "multiple", "always_last"] = "multiple",
        js: str | None = None,
        cancels: Sequence[Any] = (),
    ) -> Any:
        """Call `handler(session, *input_values)` on an event, and send the views that changed.

        Args:
            trigger: A component's event, such as `button.click`, a dependency (`event.then`), or a list of events.
            inputs: Components whose values to pass; for a widget, the unchecked dict that it last sent with this event;
                for `client`, the unchecked value that `js` returns in its place.
            payload: Also pass the dict that the event itself carries, unchecked. Not for "always_last", because gradio
                repeats the first event's payload there.
            js: JavaScript function that runs in the browser first; it takes the inputs and returns them as a list.
        """
        first = trigger[0] if isinstance(trigger, list | tuple) else trigger
        name = getattr(first, "event_name", "")

        def steps_of(session: Session, event: gr.EventData, values: tuple[Any, ...]) -> Generator[None]:
            given = [
                _dict(_dict(value).get(name)) if isinstance(each, gr.HTML) and each is not self.client else value
                for each, value in zip(inputs, values, strict=True)
            ]
            return _steps_of(handler, session, [*given, _dict(vars(event).get("_data"))] if payload else given)

        def shown(session: Session) -> Any:
            return self.renderer.frame(session) or gr.skip()

        def stream(event: gr.EventData, session_id: str, *values: Any) -> Iterator[Any]:
            session = self.find(session_id)
            if session is None:
                yield RESTORE
                return
            with closing(steps_of(session, event, values)) as steps:
                try:
                    for _ in steps:
                        yield shown(session)
                except gr.Error:
                    yield shown(session)
                    raise
            yield shown(session)

        def answer(event: gr.EventData, session_id: str, *values: Any) -> Any:
            session = self.find(session_id)
            if session is None:
                return RESTORE
            try:
                for _ in steps_of(session, event, values):
                    pass
            except gr.Error as problem:
                _pop_up(problem)
            return shown(session)

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

    def show(self, component: Block, draw: Draw) -> None:
        """Let frames set properties of a gradio component, such as a tab's label.

        draw: returns the properties for a snapshot; the component has been built with those of the initial one. If they
        contain "at", they apply only if no tab has been clicked since that time.
        """
        self.renderer.properties.append(draw)
        self._components.append(component)

    def wire_properties(self) -> None:
        """Wire the event, in the browser only, by which frames set properties of the components passed to `show`."""
        js = f"() => glassbox.properties({len(self._components)})"
        self.frame.controls(None, None, self._components, js=js, api_visibility="private")

    def find(self, session_id: object) -> Session | None:
        """Return a browser tab's session, or None if it has expired. Raises gr.Error if the tab has no id yet."""
        if not is_session_id(session_id):
            raise error(" ".join(in_all_languages("error.not_ready").values()))
        return self.store.get(str(session_id))


def _pop_up(problem: gr.Error) -> None:
    """Show an error's message without raising it, which would drop the event's frame."""
    if problem.print_exception:
        traceback.print_exception(problem)
    level: Any = "error"  # gradio's pages show it, although its functions only announce the other levels
    log_message(problem.message, problem.title, level, problem.duration, problem.visible)


def _steps_of(handler: Handler, session: Session, arguments: Sequence[Any]) -> Generator[None]:
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


def _dict(sent: object) -> dict[str, Any]:
    """Return a value from the browser if it is a dict, or {} for anything else."""
    return sent if isinstance(sent, dict) else {}


def error(problem: object) -> gr.Error:
    """Return a gr.Error whose message is escaped and not logged."""
    title = t("error.title")
    text, pops_up = escape(message_of(problem), quote=False), not isinstance(problem, Question)
    return gr.Error(text, visible=pops_up, title=title, print_exception=False)
