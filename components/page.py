"""The page that gradio serves, with sessions that begin at once.

For each visitor gradio describes every part of a page anew, to restore it from a deep link: on a page of this size half
a tenth of a second in which nobody else is served, and a megabyte. Our links carry text and settings instead.
"""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr
from gradio.state_holder import StateHolder


class Page(gr.Blocks):
    """gradio's Blocks; the parts of a session are described one by one, as their values change."""

    is_template = True  # still "blocks" to the browser

    @property
    def state_holder(self) -> StateHolder:
        """The sessions of everybody who has the page open."""
        return self._state_holder

    @state_holder.setter
    def state_holder(self, holder: StateHolder) -> None:
        holder.blocks = SimpleNamespace(default_config=self.default_config, blocks={})
        self._state_holder = holder
