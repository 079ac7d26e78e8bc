"""How events are wired: the handler changes the session, and what changed on the page follows from that.

A handler is called with the session and the values of its inputs. It returns nothing, or yields whenever something is
worth showing; it holds no lock of the session then. Its ValueError becomes a message on the page.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from html import escape
from typing import Any, Literal

import gradio as gr
from gradio.blocks import Block

from components.errors import localize_error
from components.i18n import LANGUAGES, Language, t
from components.render import Control, Renderer
from components.state.session import Session
from components.state.store import SessionStore, is_session_id

MAX_CONCURRENT_EVENTS = (
    96  # events of all visitors that run at once in each queue; who may write is up to the engine's admission
)
Queue = Literal["look", "model", "experiment"]
# Looking must not wait behind writing. What takes seconds of computing runs one at a time, for all visitors together.
QUEUES: dict[Queue, dict[str, Any]] = {
    "look": {"concurrency_id": "look", "concurrency_limit": MAX_CONCURRENT_EVENTS},
    "model": {"concurrency_id": "model", "concurrency_limit": MAX_CONCURRENT_EVENTS},
    "experiment": {"concurrency_id": "experiment", "concurrency_limit": 1},
}
# Progress is shown by views: gradio would copy the state of every output at every message.
NO_PROGRESS = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
RESTORE = '{"n":0,"base":null,"restore":true}'  # the page loads anew, with the text that it kept

Handler = Callable[..., Iterator[None] | None]


class Events:
    """Wires the events of one page. client: holds the browser tab's id; frame: takes the frames; tabs: of which a
    handler opens the one that it puts into `session.tab`."""

    def __init__(
        self, store: SessionStore, renderer: Renderer, client: gr.Textbox, frame: gr.HTML, tabs: gr.Tabs
    ) -> None:
        self.store, self.renderer, self.client, self.frame = store, renderer, client, frame
        renderer.add("", controls=[Control(tabs, lambda s: s.tab, lambda s: {"selected": s.tab})])

    def on(
        self,
        trigger: Any,
        handler: Handler,
        inputs: Sequence[Block] = (),
        *,
        sets: Sequence[Block] = (),
        edited: Sequence[Block] = (),
        payload: bool = False,
        queue: Queue = "look",
        trigger_mode: Literal["once", "multiple", "always_last"] = "multiple",
        js: str | None = None,
        cancels: Sequence[Any] = (),
    ) -> Any:
        """Call `handler(session, *values of inputs)` at an event, and show what it changed.

        trigger: an event of a component, such as `button.click`, what follows another (`event.then`), or a list of
        events. sets: those of its own inputs that it may change, as a person is editing the others; edited: what else
        the browser has changed by itself. payload: the handler also gets what a widget sent, a dict of anything. js:
        run in the browser before, on the inputs, of which it returns a list.
        """
        unset = [*(component for component in inputs if component not in sets), *edited]
        streams = inspect.isgeneratorfunction(getattr(handler, "func", handler))

        def respond(event: gr.EventData, session_id: object, values: tuple[Any, ...]) -> Iterator[Any]:
            session = self.find(session_id)
            if session is None:
                yield RESTORE
                return
            arguments = (*values, payload_of(event)) if payload else values
            given: Sequence[Block] = unset  # until the first frame: the browser has what the person gave
            try:
                with closing(
                    handler(session, *arguments) if streams else _as_generator(handler, session, arguments)
                ) as steps:
                    for _ in steps:
                        yield shown(session, given)
                        given = ()
            except ValueError as problem:
                raise error(problem, session.language) from None
            yield shown(session, given)

        def shown(session: Session, given: Sequence[Block]) -> Any:
            return self.renderer.frame(session, given) or gr.skip()

        def stream(event: gr.EventData, session_id: str, *values: Any) -> Iterator[Any]:
            yield from respond(event, session_id, values)

        def answer(event: gr.EventData, session_id: str, *values: Any) -> Any:
            return [*respond(event, session_id, values)][-1]

        prepare = js or "(...values) => values"
        options = {
            "fn": stream if streams else answer,
            "inputs": [self.client, *inputs],
            "outputs": [self.frame],
            "trigger_mode": trigger_mode,
            "js": f"""async (id, ...values) => {{
              const given = ({prepare})(...values);
              return [await glassbox.session(), ...given];
            }}""",
            "cancels": list(cancels) or None,
            **NO_PROGRESS,
            **QUEUES[queue],
        }
        return gr.on(list(trigger), **options) if isinstance(trigger, list | tuple) else trigger(**options)

    def wire_controls(self) -> None:
        """Let the page apply what frames say of the controls that were added until now."""
        for tab in self.renderer.controls:
            if components := self.renderer.components(tab):
                apply = f"() => glassbox.controls({json.dumps(tab)}, {len(components)})"
                self.frame.controls(None, None, components, js=apply, api_visibility="private")

    def find(self, session_id: object) -> Session | None:
        """The session of a browser tab; None where the server has let go of it. Raises gr.Error before there is an
        id."""
        if not is_session_id(session_id):
            raise error(" ".join(t("error.not_ready", language) for language in LANGUAGES))
        return self.store.get(str(session_id))


def _as_generator(handler: Handler, session: Session, arguments: tuple[Any, ...]) -> Iterator[None]:
    """A handler that yields nothing, as one that does."""
    handler(session, *arguments)
    yield from ()


def payload_of(event: gr.EventData) -> dict[str, Any]:
    """What a widget sent with its event: anything that a browser may send."""
    sent = getattr(event, "payload", None)
    return sent if isinstance(sent, dict) else {}


def error(problem: object, language: Language = "en") -> gr.Error:
    """A message for the person: no traceback in the log, nothing in it that runs as HTML."""
    title = t("error.title", language)
    return gr.Error(escape(localize_error(problem, language), quote=False), title=title, print_exception=False)


def clamped(low: float, high: float) -> str:
    """The `js` of a slider's event: what was typed beside it, as the slider shows it.

    gradio refuses a number outside the range.
    """
    least, most = json.dumps(low), json.dumps(high)
    return f"(value) => [Math.min(Math.max(value ?? {least}, {least}), {most})]"


def clamped_to(elem_id: str) -> str:
    """`clamped`, for a slider whose ends the server moves: they are read on the page."""
    ends = f"document.querySelector('#{elem_id} input[type=range]')"
    return f"(value) => {{ const {{ min, max }} = {ends}; return [Math.min(Math.max(value ?? min, min), max)]; }}"
