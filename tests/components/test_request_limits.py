"""Requests refused before Gradio reads them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from components.limits import MAX_BODY_BYTES, MAX_UPLOAD_BYTES
from components.request_limits import RequestLimits, delete_oldest

HTTP = httpx.Client(timeout=60)  # making one takes longer than a request


def shout(text: str, times: int = 2) -> str:
    return str(text).upper() * times if times in range(10**6) else ""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gr.Blocks() as page:
        gr.api(shout, api_name="shout")
        gr.Button().click(print, [gr.Slider(0, 2), gr.UploadButton()], api_visibility="private")
        gr.Button().click(js="() => 1", api_visibility="private")
    _, url, _ = page.launch(
        prevent_thread_lock=True, quiet=True, ssr_mode=False, app_kwargs={"middleware": [Middleware(RequestLimits)]}
    )
    yield f"{url}gradio_api"
    page.close()


TAKES = "/shout takes text, times=2"
NEEDS = "as only call/v2 fills in defaults: " + TAKES
UNNUMBERED = "an endpoint is called by its name, without fn_index: " + TAKES
NO_ENDPOINT = "there is no endpoint /whisper: there are /shout"


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("call/shout", {"data": ["a"]}, 400, f"2 values are needed, not 1, {NEEDS}"),
        ("run/shout", {"data": []}, 400, f"2 values are needed, not 0, {NEEDS}"),
        ("api/shout", {"data": "a"}, 400, 'the values come as {"data": [...]}: ' + TAKES),
        ("call/v2/shout", {}, 400, f"missing a required argument: 'text': {TAKES}"),
        ("call/v2/shout", ["a"], 400, f"the arguments come as one JSON object: {TAKES}"),
        ("call/v2/shout", {"text": "a", "time": 2}, 400, f"got an unexpected keyword argument 'time': {TAKES}"),
        ("call/whisper", {"data": ["a", 2]}, 404, NO_ENDPOINT),
        ("call/v2/whisper", {"text": "a"}, 404, NO_ENDPOINT),
        ("run/predict", {"data": [], "fn_index": 1}, 404, "there is no endpoint /predict: there are /shout"),
        (
            "run/shout",
            {"data": [], "fn_index": 1},
            400,
            UNNUMBERED,
        ),
        ("queue/join", {"data": [], "fn_index": 0, "session_hash": "a"}, 400, f"2 values are needed, not 0, {NEEDS}"),
        ("queue/join", {"data": [], "fn_index": 99, "session_hash": "a"}, 404, "there is no event with fn_index 99"),
    ],
)
def test_a_call_that_cannot_be_made_is_told_why(
    url: str, capfd: pytest.CaptureFixture[str], path: str, body: object, status: int, sentence: str
) -> None:
    answer = HTTP.post(f"{url}/{path}", json=body)
    assert (answer.status_code, answer.json()) == (status, {"error": sentence})
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["call/shout", "call/v2/shout"])
def test_the_result_of_an_unknown_call_is_not_found(url: str, capfd: pytest.CaptureFixture[str], path: str) -> None:
    body = {"text": "a"} if "v2" in path else {"data": ["a", 2]}
    event_id = HTTP.post(f"{url}/{path}", json=body).json()["event_id"]
    assert HTTP.get(f"{url}/{path}/{event_id}").text == 'event: complete\ndata: ["AA"]\n\n'
    unknown = HTTP.get(f"{url}/{path}/{event_id[::-1]}")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "there is no call with this event_id"})
    assert "Traceback" not in capfd.readouterr().err


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("content", "headers", "status", "sentence"),
    [
        (b" " * (MAX_BODY_BYTES + 1), {}, 413, "16,000,000 bytes"),
        (b"[" * 200_000, JSON, 400, "the body is nested too deeply"),
        (b'{"text": ' + b"[" * 700 + b"]" * 700 + b"}", JSON, 400, "the body is nested too deeply"),
        (b"no JSON", JSON, 400, "the body is not JSON"),
        (b"\xff", JSON, 400, "the body is not JSON"),
        (
            b'{"text": "a"}=',
            {"Content-Type": "application/x-www-form-urlencoded"},
            415,
            "Content-Type: application/json",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    url: str, content: bytes, headers: dict[str, str], status: int, sentence: str
) -> None:
    answer = HTTP.post(f"{url}/call/v2/shout", content=content, headers=headers)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_every_other_request_passes_whole(url: str) -> None:
    call = HTTP.post(f"{url}/call/shout", json={"data": ["a", 300_000]})
    answer = HTTP.get(f"{url}/call/shout/{call.json()['event_id']}").text
    assert answer.count("A") >= 300_000
    assert Client(url.partition("gradio_api")[0], verbose=False).predict("b", 3, api_name="/shout") == "BBB"


def join(url: str, data: object, fn_index: object = 1, **more: object) -> httpx.Response:
    return HTTP.post(f"{url}/queue/join", content=json.dumps({"data": data, "fn_index": fn_index, **more}))


FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    ("data", "more", "sentence"),
    [
        ([1, FILE], {}, "a file must have been uploaded"),
        ([1, [{"a": FILE | {"path": "http://127.0.0.1/"}}]], {}, "a file must have been uploaded"),
        ([1, FILE | {"meta": 5}], {}, "a file must have been uploaded"),
        ([1, None], {"session_hash": 5}, "session_hash: Input should be a valid string"),
        ([1, None], {"session_hash": "a" * 51}, "session_hash may have at most 50 characters"),
        ("\ud800", {}, "data: Input should be a valid list"),
    ],
)
def test_an_event_of_the_page_with_other_values_is_refused(
    url: str, capfd: pytest.CaptureFixture[str], data: object, more: dict, sentence: str
) -> None:
    answer = join(url, data, **{"session_hash": "a", **more})
    assert (answer.status_code, answer.json()) == (400, {"error": sentence})
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["file=http://127.0.0.1:1/", "file/http://a", "proxy=http://a", "runs", "token"])
def test_a_route_that_the_page_does_not_use_is_closed(url: str, path: str) -> None:
    for method in ("GET", "POST"):
        assert HTTP.request(method, f"{url}/{path}").json() == {"error": "this address is closed"}


def test_raw_bytes_are_never_a_traceback(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(0)
    values = [None, True, -1, 1e308, 10**30, "\ud800", "\0", "a" * 99, [], {}, FILE, {"path": {}, "meta": 1}, "f" * 32]
    names = ["fn_index", "data", "session_hash", "event_id", "trigger_id", "event_data", "batched", "simple_format"]
    paths = ["queue/join", "call/shout", "call/v2/shout", "run/shout", "cancel", "reset", "upload"]
    for _ in range(200):
        body = {"fn_index": 1, "data": [chance.choice(values) for _ in range(2)], "session_hash": "a"}
        body |= {name: chance.choice(values) for name in chance.sample(names, chance.randrange(3))}
        content = chance.choice([json.dumps(body).encode(), chance.randbytes(chance.randrange(60))])
        kind = chance.choice(["application/json", "multipart/form-data; boundary=x", "text/plain"])
        answer = HTTP.post(f"{url}/{chance.choice(paths)}", content=content, headers={"Content-Type": kind})
        assert answer.status_code < 500, (content, answer.text)
    assert "Traceback" not in capfd.readouterr().err


def test_an_upload_has_a_limit(url: str) -> None:
    [path] = HTTP.post(f"{url}/upload", files={"files": b"text"}).json()
    assert Path(path).read_bytes() == b"text"
    answer = HTTP.post(f"{url}/upload", files={"files": b" " * MAX_UPLOAD_BYTES})
    assert (answer.status_code, answer.text) == (413, "an upload may have at most 16,000,000 bytes")


def test_the_oldest_uploads_make_room(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abc"]
    for age, file in enumerate(files):
        file.write_bytes(b"1234")
        os.utime(file, (age, age))
    known = {*map(str, files), str(tmp_path / "gone")}
    delete_oldest(known, 9)
    assert [file.exists() for file in files] == [False, True, True]
    assert str(files[0]) not in known


def test_only_a_trusted_proxy_sets_the_visitor_address() -> None:
    route = Route("/who", lambda request: PlainTextResponse(request.client.host))
    with gr.Blocks() as page:
        _, url, _ = page.launch(
            prevent_thread_lock=True, quiet=True, ssr_mode=False, server_name="0.0.0.0", app_kwargs={"routes": [route]}
        )
    try:
        for address, claimed, host in (
            ("127.0.0.2", "1.2.3.4", "127.0.0.2"),  # a visitor's claim
            ("127.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"),  # what a proxy on this machine adds
        ):
            with httpx.Client(transport=httpx.HTTPTransport(local_address=address)) as client:
                here = f"http://127.0.0.1:{httpx.URL(url).port}/who"
                assert client.get(here, headers={"X-Forwarded-For": claimed}).text == host
    finally:
        page.close()


def test_calls_need_the_key_of_the_host_and_events_of_the_page_none() -> None:
    with gr.Blocks() as page:
        gr.api(shout, api_name="shout")
        gr.Button().click(print, api_visibility="private")
    limits = Middleware(RequestLimits, api_key="secret")
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False, app_kwargs={"middleware": [limits]})
    event = {"data": ["a", 2], "fn_index": 0, "session_hash": "a"}
    bodies = {"call/v2/shout": {"text": "a"}, "run/shout": {"data": ["a", 2]}, "queue/join": event, "mcp": {}}
    try:
        for path, body in bodies.items():
            for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "secret"}):
                answer = HTTP.post(f"{url}gradio_api/{path}", json=body, headers=headers)
                assert (answer.status_code, "Authorization: Bearer KEY" in answer.text) == (401, True)
        given = {"Authorization": "Bearer secret"}
        assert Client(url, headers=given, verbose=False).predict("a", 2, api_name="/shout") == "AA"
        press = {"data": [], "fn_index": 1, "session_hash": "a"}
        assert HTTP.post(f"{url}gradio_api/queue/join", json=press).status_code == 200
    finally:
        page.close()
