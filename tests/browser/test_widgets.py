"""A chart in a real browser: it shows what was sent, and a click on it reaches the server."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute
from playwright.sync_api import Page, Route, expect

from components.assets import HEAD, PLOTLY_URL, ROUTES
from components.figures.bars import next_token_bars
from components.frame import frame_widget
from components.theme import THEME
from components.widgets.chart import chart_data, picture
from components.widgets.tokens import token_line, tokens
from components.widgets.widget import placed, to_json

pytestmark = pytest.mark.thorough

OPTIONS: dict[str, Any] = {"theme": THEME, "head": HEAD, "app_kwargs": {"routes": ROUTES}}
NUMBERS = itertools.count(1)
FRAMES: dict[str, dict[str, Any]] = {"reset": {}, "nothing": {"drawn": False}, "again": {"says": "Again."}}


def frame(*, says: str = "Says <b>seven</b>.", drawn: bool = True) -> str:
    """Return a complete frame: a token, and a chart."""
    before, after = np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.3, 0.0])
    figure = next_token_bars([" girl", "<b>boy</b>", "7"], before, after, chosen=0) if drawn else None
    strip = {"doc": "a", "lines": [token_line(100, "Once", 0.5, 1, "p").strip()], "shade": "", "selected": -1}
    views = {"strip": strip, "chart": chart_data(figure, says if drawn else "")}
    return to_json({"n": next(NUMBERS), "base": None, "session": "of a test", "views": views})


def demo() -> gr.Blocks:
    """Build a page with a strip, a chart, and a button for each frame."""
    with gr.Blocks() as blocks:
        hidden = frame_widget()
        hidden.value = frame()
        event = gr.Textbox(label="event", elem_id="event")
        placed(tokens("strip"))
        shown = placed(picture("chart", clickable=True))
        shown.select(lambda sent: json.dumps(sent["select"]), shown, event, show_progress="hidden")
        for name, values in FRAMES.items():
            gr.Button(name, elem_id=name).click(partial(frame, **values), None, hidden, show_progress="hidden")
    return blocks


@pytest.fixture(scope="module")
def url(serve: Callable[..., str]) -> str:
    return serve(demo(), **OPTIONS)


def test_a_chart_keeps_its_place_until_plotly_is_there(page: Page, url: str) -> None:
    held: list[Route] = []
    page.route(f"**/{PLOTLY_URL}", lambda route: held.append(route))
    page.goto(url, wait_until="commit")
    expect(page.locator("#chart .gb-says")).to_be_visible()
    expect(page.locator("#strip .gb-chip").first).to_be_visible()  # the strip above the chart
    reserved = page.locator("#chart").bounding_box()
    assert page.locator("#chart .main-svg").count() == 0
    page.wait_for_function("window.Plotly === undefined && document.querySelector('script[data-glassbox=plotly]')")
    held[0].continue_()
    expect(page.locator("#chart .main-svg").first).to_be_attached()
    assert page.locator("#chart").bounding_box() == reserved


def test_everything_is_found_under_a_path_of_its_own(page: Page) -> None:
    outer = FastAPI(routes=[APIRoute("/favicon.ico", lambda: None)])  # Chromium requests it
    gr.mount_gradio_app(outer, demo(), path="/inner/app", ssr_mode=False, **OPTIONS)
    server = uvicorn.Server(uvicorn.Config(outer, log_level="error"))
    # Connections made before the server runs wait in the queue.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}/inner/app/")
            expect(page.locator("#chart .main-svg").first).to_be_attached()
        finally:
            server.should_exit = True
            thread.join()
