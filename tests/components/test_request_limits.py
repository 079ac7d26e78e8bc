"""What is refused before gradio reads it."""

from __future__ import annotations

from collections.abc import Iterator

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from starlette.middleware import Middleware

from components.request_limits import MAX_BODY_BYTES, RequestLimits


def shout(text: str, times: int = 2) -> str:
    return text.upper() * times


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gr.Blocks() as page:
        gr.api(shout, api_name="shout")
        gr.Button().click(print, api_visibility="private")
    _, url, _ = page.launch(
        prevent_thread_lock=True, quiet=True, ssr_mode=False, app_kwargs={"middleware": [Middleware(RequestLimits)]}
    )
    yield f"{url}gradio_api"
    page.close()


TAKES = "/shout takes text, times=2"
NEEDS = "as only call/v2 fills in defaults: " + TAKES
NO_ENDPOINT = "there is no endpoint /whisper: there are /shout"


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("call/shout", {"data": ["a"]}, 400, f"2 values are needed, not 1, {NEEDS}"),
        ("call/shout/", {"data": ["a", 1, 2]}, 400, f"2 values are needed, not 3, {NEEDS}"),
        ("run/shout", {"data": []}, 400, f"2 values are needed, not 0, {NEEDS}"),
        ("api/shout", {"data": "a"}, 400, 'the values come as {"data": [...]}: ' + TAKES),
        ("call/shout", ["a", 2], 400, 'the values come as {"data": [...]}: ' + TAKES),
        ("call/v2/shout", {}, 400, f'the argument "text" is missing: {TAKES}'),
        ("call/v2/shout", {"text": "a", "time": 2}, 400, f'there is no argument "time": {TAKES}'),
        ("call/v2/shout", ["a"], 400, f"the arguments come as one JSON object: {TAKES}"),
        ("call/whisper", {"data": ["a", 2]}, 404, NO_ENDPOINT),
        ("call/v2/whisper", {"text": "a"}, 404, NO_ENDPOINT),
        ("run/whisper", {"data": ["a", 2]}, 404, NO_ENDPOINT),
        ("call/shout_1", {"data": ["a", 2]}, 404, "there is no endpoint /shout_1: there are /shout"),
        ("run/predict", {"data": [], "fn_index": 1}, 404, "there is no endpoint /predict: there are /shout"),
        ("run/shout", {"data": [], "fn_index": 1}, 400, "/shout is called by its name, without fn_index"),
        ("queue/join", {"data": [], "fn_index": 0, "session_hash": "a"}, 400, f"2 values are needed, not 0, {NEEDS}"),
        ("queue/join", {"data": [], "fn_index": 99, "session_hash": "a"}, 404, "there is no event with fn_index 99"),
        ("queue/join", {"data": [], "session_hash": "a"}, 404, "there is no event with fn_index None"),
    ],
)
def test_a_call_that_cannot_be_made_is_told_why(
    url: str, capfd: pytest.CaptureFixture[str], path: str, body: object, status: int, sentence: str
) -> None:
    answer = httpx.post(f"{url}/{path}", json=body)
    assert (answer.status_code, answer.json()) == (status, {"error": sentence})
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["call/shout", "call/v2/shout"])
def test_the_result_of_an_unknown_call_is_not_found(url: str, capfd: pytest.CaptureFixture[str], path: str) -> None:
    body = {"text": "a"} if "v2" in path else {"data": ["a", 2]}
    event_id = httpx.post(f"{url}/{path}", json=body).json()["event_id"]
    assert httpx.get(f"{url}/{path}/{event_id}").text == 'event: complete\ndata: ["AA"]\n\n'
    unknown = httpx.get(f"{url}/{path}/{event_id[::-1]}")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "there is no call with this event_id"})
    assert "Traceback" not in capfd.readouterr().err


def test_the_events_of_a_session_that_is_gone_say_so(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "session_not_found" in httpx.get(f"{url}/queue/data?session_hash=gone").text
    assert capfd.readouterr().err == ""


def test_a_body_that_is_too_large_is_refused(url: str) -> None:
    answer = httpx.post(f"{url}/call/shout", content=b" " * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert "16,000,000 bytes" in answer.json()["error"]


def test_a_body_that_is_nested_too_deeply_is_refused(url: str) -> None:
    answer = httpx.post(f"{url}/call/shout", content=b"[" * 200_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "the body is nested too deeply"}


@pytest.mark.parametrize("content", [b"no JSON", b"", b"\xff"])
def test_a_body_that_is_not_json_is_refused(url: str, content: bytes) -> None:
    answer = httpx.post(f"{url}/call/v2/shout", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (400, {"error": "the body is not JSON"})


def test_a_body_sent_as_a_form_is_told_the_header_that_it_needs(url: str) -> None:
    answer = httpx.post(f"{url}/call/v2/shout", data={'{"text": "a"}': ""})
    assert answer.status_code == 415
    assert answer.json() == {"error": "a call needs the header Content-Type: application/json"}


def test_every_other_request_passes_whole(url: str) -> None:
    call = httpx.post(f"{url}/call/shout", json={"data": ["a", 300_000]})
    answer = httpx.get(f"{url}/call/shout/{call.json()['event_id']}").text
    assert answer.count("A") >= 300_000
    assert Client(url.partition("gradio_api")[0], verbose=False).predict("b", 3, api_name="/shout") == "BBB"
