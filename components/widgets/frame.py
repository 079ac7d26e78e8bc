"""The hidden gr.HTML whose value is the newest frame from `components.render`."""

from __future__ import annotations

import gradio as gr


def frame_widget() -> gr.HTML:
    """Return the hidden gr.HTML. It raises these events:

    - `.retry` when the browser has missed a frame
    - `.tick` when the open tab needs an analysis
    - `.controls` when a frame changes gradio's components
    - `.navigate` on Back and Forward
    - `.classroom` for requests about a class
    """
    return gr.HTML(
        "",
        html_template="<div></div>",
        js_on_load='glassbox.receive(trigger, watch, props, "controls", "navigate", "classroom")',
        apply_default_css=False,
        visible="hidden",
        elem_id="frame",
    )
