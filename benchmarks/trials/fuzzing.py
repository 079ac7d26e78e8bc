"""Send random calls: page events and endpoints with random values, and malformed request bodies."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from benchmarks.trials.app_process import SECONDS, AppProcess, Result, running_app

SESSIONS, PARALLEL = 6, 12  # page sessions, and the parallel callers that share them
JUNK = [None, True, -1, 0, 3, 0.5, 1e308, 10**30, "", "\ud800", "\0", "<b>", "a" * 5000, [], {}, [[0, 1]], {"a": [1]}]
TEXTS = ["Once upon a time", "The dog ran to the", "你好", "", '{"text": "a", "edited": 1e15}', "1 2 3", "0.5"]
KEYS = (
    *("x", "y", "index", "text", "layer", "head", "customdata", "what", "token", "rows", "edited", "document", "seen"),
    *(
        "row",
        "query",
        "place",
        "part",
        "on",
        "node",
        "n",
        "moment",
        "lesson",
        "leave",
        "key",
        "edits",
        "column",
        "beat",
    ),
    *("candidate", "behind", "at", "answer", "all", "again", "challenge"),
)
ARGUMENTS = (
    "prompt",
    "text",
    "layer",
    "head",
    "position",
    "token_id",
    "against",
    "heads",
    "k",
    "model",
    "seed",
    "top_k",
)
ROUTES = ("queue/join", "call/generate", "call/v2/loss", "run/tokenize", "cancel", "reset", "upload", "mcp/", "nothing")


class Fuzzer:
    """Sends random calls to an app and collects the problems in `failures`."""

    def __init__(self, app: AppProcess) -> None:
        self.app, self.failures, self.kinds = app, list[str](), Counter[str]()
        config = httpx.get(f"{app.url}config", timeout=SECONDS).json()
        self._components = {component["id"]: component for component in config["components"]}
        self._events = [event for event in config["dependencies"] if event["backend_fn"]]
        self._endpoints = [event["api_name"] for event in self._events if event["api_visibility"] == "public"]
        [self._arrive] = [event["id"] for event in self._events if event["api_name"] == "arrive"]
        self._sessions = [secrets.token_hex(16) for _ in range(SESSIONS)]
        with httpx.Client(timeout=SECONDS) as client:
            for session in self._sessions:
                self._join(client, {"fn_index": self._arrive, "data": [session, "", "en"]}, "arrive")

    def run(self, numbers: range) -> None:
        """Send one random call per number, using the number as its seed."""
        with httpx.Client(timeout=SECONDS) as client:
            for number in numbers:
                chance = random.Random(number)
                call = chance.choices((self._page, self._endpoint, self._body), (7, 2, 1))[0]
                self.kinds[call.__name__[1:]] += 1
                try:
                    call(client, chance)
                except httpx.HTTPError as problem:
                    self.failures.append(f"call {number}: {problem!r}")

    def _page(self, client: httpx.Client, chance: random.Random) -> None:
        event = chance.choice(self._events)
        values = [self._value(self._components[index], chance) for index in event["inputs"]]
        if event["api_visibility"] != "public":
            values[:1] = [chance.choice(self._sessions)]
        keys = chance.sample(KEYS, chance.randrange(6))
        sent = {key: chance.choice([chance.randrange(12), chance.choice(JUNK), chance.choice(TEXTS)]) for key in keys}
        body = {"fn_index": event["id"], "data": values, "event_data": {"payload": sent}}
        self._join(client, body, f"{event['api_name']} of {event['targets']}")

    def _endpoint(self, client: httpx.Client, chance: random.Random) -> None:
        name = chance.choice(self._endpoints)
        given: dict[str, Any] = {each: chance.choice([*JUNK, *TEXTS]) for each in chance.sample(ARGUMENTS, 3)}
        given |= (
            {"text" if name in ("tokenize", "loss") else "prompt": chance.choice(TEXTS)}
            if chance.random() < 0.7
            else {}
        )
        answer = self._post(client, f"call/v2/{name}", json.dumps(given).encode(), "application/json")
        if answer.status_code == 200:
            url = f"{self.app.url}gradio_api/call/v2/{name}/{answer.json()['event_id']}"
            with client.stream("GET", url) as stream:
                events = [line for line in stream.iter_lines() if line.startswith("event: ")]
            if not events or events[-1] not in ("event: complete", "event: error"):
                self.failures.append(f"/{name} {given} has a dead stream: {events[-1:]}")

    def _body(self, client: httpx.Client, chance: random.Random) -> None:
        body = {"fn_index": chance.choice(JUNK), "data": chance.choice(JUNK), "session_hash": chance.choice(JUNK)}
        body |= {key: chance.choice(JUNK) for key in ("event_id", "trigger_id", "event_data") if chance.random() < 0.3}
        content = chance.choice([json.dumps(body).encode(), chance.randbytes(chance.randrange(99))])
        kind = chance.choice(["application/json", "text/plain", "multipart/form-data; boundary=x"])
        self._post(client, chance.choice(ROUTES), content, kind)

    def _post(self, client: httpx.Client, route: str, content: bytes, kind: str) -> httpx.Response:
        answer = client.post(
            f"{self.app.url}gradio_api/{route}",
            content=content,
            headers={"Content-Type": kind, "Accept": "application/json, text/event-stream"},
        )
        if answer.status_code >= 500:
            self.failures.append(f"/{route} answered {answer.status_code} to {content[:200]!r}")
        return answer

    def _join(self, client: httpx.Client, body: dict[str, Any], name: str) -> None:
        """Send a page event and read its stream to the end."""
        session = secrets.token_hex(5)
        answer = self._post(
            client, "queue/join", json.dumps(body | {"session_hash": session}).encode(), "application/json"
        )
        if answer.status_code != 200:
            return
        deadline = time.monotonic() + SECONDS
        with client.stream("GET", f"{self.app.url}gradio_api/queue/data?session_hash={session}") as stream:
            for line in stream.iter_lines():
                if '"msg":"process_completed"' in line:
                    return
                if time.monotonic() > deadline:
                    break
        self.failures.append(f"{name} has a dead stream: {json.dumps(body)[:300]}")

    def _value(self, component: dict[str, Any], chance: random.Random) -> Any:
        """Return a value that the browser might send for a component, or junk."""
        if component["type"] == "file":
            return None  # gradio logs a traceback for anything but a file
        if chance.random() < 0.1:
            return chance.choice(JUNK)
        props = component["props"]
        if component["type"] == "slider":
            return chance.choice(
                [props["minimum"], props["maximum"], round(chance.uniform(0, 1), 2), chance.randrange(9)]
            )
        if component["type"] in ("dropdown", "radio") and props["choices"]:
            return chance.choice(props["choices"])[1]
        if component["type"] in ("checkbox", "number"):
            return chance.choice([True, False] if component["type"] == "checkbox" else [0, 1, 5, 0.5])
        return chance.choice(TEXTS)


def fuzz(scale: float = 1.0) -> Result:
    """Send 5,000 random calls, and check for tracebacks, status 500 and streams that never end."""
    n = round(5000 * scale)
    with running_app() as app:
        fuzzer = Fuzzer(app)
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(fuzzer.run, (range(first, n, PARALLEL) for first in range(PARALLEL))))
        tracebacks = app.n_tracebacks
        if tracebacks:
            fuzzer.failures.append(f"{tracebacks} tracebacks; the first: {app.first_traceback()}")
        if app.process.poll() is not None:
            fuzzer.failures.append(f"the app exited with code {app.process.returncode}")
    dead = sum("dead stream" in failure for failure in fuzzer.failures)
    kinds = ", ".join(f"{count} of {kind}" for kind, count in sorted(fuzzer.kinds.items()))
    return Result("fuzzed calls", n, tuple(fuzzer.failures), f"{tracebacks} tracebacks, {dead} dead streams ({kinds})")
