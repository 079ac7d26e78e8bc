"""What is refused before gradio reads it."""

from __future__ import annotations

from collections.abc import Iterator

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from starlette.middleware import Middleware

from components.request_limits import MAX_BODY_BYTES, RequestLimits


def shout(text: str, times: int) -> str:
    return text.upper() * times


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gr.Blocks() as page:
        gr.api(shout, api_name="shout")
    _, url, _ = page.launch(
        prevent_thread_lock=True, quiet=True, ssr_mode=False, app_kwargs={"middleware": [Middleware(RequestLimits)]}
    )
    yield f"{url}gradio_api/call/shout"
    page.close()


def test_a_call_that_lacks_values_is_told_how_many(url: str) -> None:
    answer = httpx.post(url, json={"data": ["a"]})
    assert answer.status_code == 400
    assert answer.json() == {"error": "/shout: 1 of 2 values came, and over HTTP none is filled in"}


def test_a_body_that_is_too_large_is_refused(url: str) -> None:
    answer = httpx.post(url, content=b" " * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert "16,000,000 bytes" in answer.json()["error"]


def test_every_other_request_passes_whole(url: str) -> None:
    call = httpx.post(url, json={"data": ["a", 300_000]})
    answer = httpx.get(f"{url}/{call.json()['event_id']}").text
    assert answer.count("A") >= 300_000
    assert httpx.post(url, content=b"no JSON").status_code == 422
    assert Client(url.partition("gradio_api")[0], verbose=False).predict("b", 2, api_name="/shout") == "BB"
