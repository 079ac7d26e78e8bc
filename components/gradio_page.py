"""The page that gradio serves, with sessions that begin at once and widgets that keep what they were given.

For each visitor gradio describes every part of a page anew, to restore it from a deep link: on a page of this size half
a tenth of a second in which nobody else is served, and a megabyte. Our links carry text and settings instead.

What a visitor has open is kept by the server: a text with its states, pictures, a model. gradio forgets only what an
event has given out, which ours change in place. Here a whole session goes some time after the page was closed, or left
without a touch; who touches it again is told.

Where a widget is not on the screen yet, an update of some of its properties takes the others away, and so does one that
says nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio.state_holder import SessionState, StateHolder

from components.events import error
from components.i18n import LANGUAGES, t

CLOSED = timedelta(minutes=30)  # after the last event of a page that was closed: a telephone may only have slept
UNTOUCHED = timedelta(hours=8)  # of a page that is open
EMPTY = timedelta(minutes=10)  # of a program that only called the API
MOST_FORGOTTEN = 10_000  # names of sessions


class Sessions(StateHolder):
    """gradio's, which forget a visitor as a whole."""

    forgotten: dict[str, None]

    def __getitem__(self, session_id: str) -> SessionState:
        begins = session_id not in self.session_data
        session = super().__getitem__(session_id)
        if begins:
            session.forgotten = session_id in self.forgotten
        return session

    def delete_all_expired_state(self) -> None:
        """gradio calls this every second."""
        now = datetime.now()
        for session_id, session in list(self.session_data.items()):
            patience = EMPTY if not session.state_data else CLOSED if session.is_closed else UNTOUCHED
            if now - self.time_last_used.get(session_id, now) > patience:
                self._forget(session_id, known=bool(session.state_data) or session.forgotten)

    def _forget(self, session_id: str, *, known: bool) -> None:
        """known: there was something to be forgotten."""
        with self.lock:
            self.session_data.pop(session_id, None)
            self.time_last_used.pop(session_id, None)
        if known:
            self.forgotten[session_id] = None
            while len(self.forgotten) > MOST_FORGOTTEN:
                del self.forgotten[next(iter(self.forgotten))]


class Page(gr.Blocks):
    """gradio's Blocks; the parts of a session are described one by one, as their values change, and a widget whole."""

    is_template = True  # still "blocks" to the browser

    @property
    def state_holder(self) -> StateHolder:
        """The sessions of everybody who has the page open."""
        return self._state_holder

    @state_holder.setter
    def state_holder(self, holder: StateHolder) -> None:
        holder.blocks = SimpleNamespace(default_config=self.default_config, blocks={})
        holder.__class__, holder.forgotten = Sessions, {}  # gradio makes it, and asks nobody of which kind
        self._state_holder = holder

    async def preprocess_data(
        self, block_fn: Any, inputs: list[Any], state: SessionState | None, explicit_call: bool = False
    ) -> list[Any]:
        """What a handler is given; a page of which nothing is known any more says so, and a call that lacks values."""
        if getattr(state, "forgotten", False):
            told = error(" ".join(t("error.forgotten", language) for language in LANGUAGES))
            told.visible = all(event != "tick" for _, event in block_fn.targets)  # a clock would say it for ever
            raise told
        if (given := len(inputs)) < (needed := len(block_fn.inputs)):
            raise error(f"/{block_fn.api_name}: {given} of {needed} values came, and over HTTP none is filled in")
        inputs = [_standing(_of(state, block), value) for block, value in zip(block_fn.inputs, inputs, strict=False)]
        return await super().preprocess_data(block_fn, inputs, state, explicit_call)

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: SessionState | None) -> list[Any]:
        """What is sent to the browser: with every property of a widget, or none."""
        sent = await super().postprocess_data(block_fn, predictions, state)
        for block, update in zip(block_fn.outputs, sent, strict=False):
            if isinstance(block, gr.HTML) and isinstance(update, dict) and "props" in update:
                changed = {name: value for name, value in update.pop("props").items() if name != "__type__"}
                if changed:
                    update["props"] = _of(state, block).props | changed
        return sent


def _of(state: SessionState | None, block: Any) -> Any:
    """A part of the page as it is for one visitor."""
    return block if state is None or block._id not in state else state[block._id]


def _standing(block: Any, value: Any) -> Any:
    """Where a slider stands for a number that was typed beside it: the nearest one of its range, and its lowest for
    an empty box. The browser shows it there, and gradio would refuse what was typed. Other parts get what came.
    """
    if not isinstance(block, gr.Slider):
        return value
    if value is None:
        return block.minimum
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise error(f"{block.label} must be a number between {block.minimum} and {block.maximum}")
    return min(max(value, block.minimum), block.maximum)
