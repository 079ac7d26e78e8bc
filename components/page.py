"""The page that gradio serves, with sessions that begin at once and widgets that keep what they were given.

For each visitor gradio describes every part of a page anew, to restore it from a deep link: on a page of this size half
a tenth of a second in which nobody else is served, and a megabyte. Our links carry text and settings instead.

Where a widget is not on the screen yet, an update of some of its properties takes the others away, and so does one that
says nothing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio.state_holder import SessionState, StateHolder


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
        self._state_holder = holder

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: SessionState | None) -> list[Any]:
        """What is sent to the browser: with every property of a widget, or none."""
        sent = await super().postprocess_data(block_fn, predictions, state)
        for block, update in zip(block_fn.outputs, sent, strict=False):
            if isinstance(block, gr.HTML) and isinstance(update, dict) and "props" in update:
                changed = {name: value for name, value in update.pop("props").items() if name != "__type__"}
                if changed:
                    widget = block if state is None or block._id not in state else state[block._id]
                    update["props"] = widget.props | changed
        return sent
