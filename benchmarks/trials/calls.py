"""Call the endpoints over plain HTTP, each time as a new client, and measure the app's memory."""

from __future__ import annotations

import secrets
import time

import httpx

from benchmarks.trials.app_process import SECONDS, Result, running_app
from benchmarks.trials.streams import RETURNED_SECONDS
from components.limits import MAX_UNREAD_ANSWERS

GROWTH = 30_000_000  # bytes
PROMPT = "Once upon a time there was a big dog. " * 22  # fills most of the default model's context
ARGUMENTS = {
    "attention": {"prompt": PROMPT, "layer": 0, "head": 0},
    "next_token": {"prompt": PROMPT},
    "loss": {"text": PROMPT},
    "generate": {"prompt": PROMPT[:30], "max_new_tokens": 8},
}
NAMES = tuple(ARGUMENTS)
TOOL_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


class Caller:
    """Calls endpoints by each route that the app offers."""

    def __init__(self, url: str) -> None:
        accept = {"Accept": "application/json, text/event-stream"}
        self.http = httpx.Client(base_url=f"{url}gradio_api/", timeout=SECONDS, headers=accept)
        self.described = self.http.get("info").json()["named_endpoints"]
        events = httpx.get(f"{url}config", timeout=SECONDS).json()["dependencies"]
        self.indices = {event["api_name"]: event["id"] for event in events}

    def by_name(self, name: str) -> str:
        """Call an endpoint by its name, as curl does."""
        event = self.http.post(f"call/v2/{name}", json=ARGUMENTS[name]).json()["event_id"]
        return self.http.get(f"call/v2/{name}/{event}").text

    def unread(self, name: str) -> str:
        """Call an endpoint by its name, and never ask for the answer."""
        return self.http.post(f"call/v2/{name}", json=ARGUMENTS[name]).text

    def by_session(self, name: str) -> str:
        """Call an endpoint by its name, with the id of a new session."""
        event = self.http.post(f"call/{name}", json=self.values(name)).json()["event_id"]
        return self.http.get(f"call/{name}/{event}").text

    def by_queue(self, name: str) -> str:
        """Send an event in a new session, as gradio_client does."""
        body = self.values(name) | {"fn_index": self.indices[name]}
        self.http.post("queue/join", json=body)
        with self.http.stream("GET", "queue/data", params={"session_hash": body["session_hash"]}) as answer:
            return next(line for line in answer.iter_lines() if "process_completed" in line)

    def at_once(self, name: str) -> str:
        """Call an endpoint with a single request."""
        return self.http.post(f"run/{name}", json=self.values(name)).text

    def by_agent(self, name: str) -> str:
        """Call a tool of the MCP server."""
        params = {"name": name, "arguments": ARGUMENTS[name]}
        return self.http.post("mcp/", json=TOOL_CALL | {"params": params}).text

    def values(self, name: str) -> dict[str, object]:
        """Return all arguments by position, and a new session's id."""
        given, parameters = ARGUMENTS[name], self.described[f"/{name}"]["parameters"]
        values = [given.get(each["parameter_name"], each["parameter_default"]) for each in parameters]
        return {"data": values, "session_hash": secrets.token_hex(5)}


def calls(scale: float = 1.0) -> Result:
    """Make 300 calls by each route, each as a new client, and check that memory grows by at most 30 MB."""
    n, failures = round(300 * scale), list[str]()
    memory: list[int] = []  # after each tenth
    with running_app() as app:
        caller = Caller(app.url)
        routes = (caller.by_name, caller.by_session, caller.by_queue, caller.at_once, caller.by_agent, caller.unread)
        for number in range(round(MAX_UNREAD_ANSWERS * scale)):
            caller.unread(NAMES[number % len(NAMES)])
        for tenth in range(10):
            for number in range(tenth * n // 10, (tenth + 1) * n // 10):
                for route in routes:
                    if "error" in (answer := route(NAMES[number % len(NAMES)])):
                        failures.append(f"{route.__name__}, call {number}: {answer[:200]}")
            if scale >= 1 and tenth in (0, 9):
                time.sleep(RETURNED_SECONDS)
            memory.append(app.resident)
    growth = memory[-1] - memory[0]
    if scale >= 1 and growth > GROWTH:
        failures.append(f"memory grew by {growth / 1e6:.0f} MB")
    tenths = ", ".join(f"{each / 1e6:.0f}" for each in memory)
    return Result(
        "calls of endpoints as new clients", n * len(routes), tuple(failures), f"MB after each tenth: {tenths}"
    )
