"""Checks of requests before gradio reads them: ASGI middleware for `launch(app_kwargs={"middleware": [...]})`.

Without it gradio answers a call that it cannot make with status 500 and a traceback in the log.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass

from gradio.blocks import BlockFunction
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 16_000_000  # of a call; files are limited by `launch(max_file_size=...)`
MAX_NAME_CHARS = 50  # of an unknown name in an error message
_PREFIX = "/gradio_api/"
_NAMED, _JOIN, _EVENTS = "call/v2", "queue/join", "queue/data"
_IN_ORDER = ("call", "run", "api")  # routes that take all values as a list
_UNKNOWN_EVENT = b'event: error\ndata: "404'  # gradio's answer with status 200


@dataclass(frozen=True)
class Refusal:
    """The answer to a request: {"error": sentence}, with a status from 400 to 499."""

    status: int
    sentence: str

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"error": self.sentence}, self.status)(scope, receive, send)


class RequestLimits:
    """Rejects calls with too large a body, and API calls to what does not exist or with other arguments."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "").rstrip("/")
        route, _, name = path.removeprefix(_PREFIX).rpartition("/")
        is_http = scope["type"] == "http" and path.startswith(_PREFIX)
        if is_http and scope["method"] == "GET" and (path == _PREFIX + _EVENTS or route.startswith("call/")):
            await self._send_events(scope, receive, send)
        elif is_http and scope["method"] == "POST" and (path == _PREFIX + _JOIN or route in (_NAMED, *_IN_ORDER)):
            await self._call(scope, receive, send, route, name)
        else:
            await self.app(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive, send: Send, route: str, name: str) -> None:
        body = bytearray()
        more = True
        while more and len(body) <= MAX_BODY_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if more or len(body) > MAX_BODY_BYTES:
            refusal: Refusal | None = Refusal(413, f"a call may have at most {MAX_BODY_BYTES:,} bytes")
        elif any(name == b"content-type" and b"json" not in value for name, value in scope["headers"]):
            refusal = Refusal(415, "a call needs the header Content-Type: application/json")
        else:
            refusal = _refusal(scope["app"].get_blocks().fns, route, name, body)
        if refusal:
            await refusal.send(scope, receive, send)
            return
        unread = [bytes(body)]

        async def replay() -> Message:
            return {"type": "http.request", "body": unread.pop()} if unread else await receive()

        await self.app(scope, replay, send)

    async def _send_events(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the events of a call or a session; status 404 if the call is unknown."""
        start: Message | None = None
        unknown = False

        async def checked(message: Message) -> None:
            nonlocal start, unknown
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                unknown = message.get("body", b"").startswith(_UNKNOWN_EVENT)
                if not unknown:
                    await send(start)
                start = None
            if not unknown:
                await send(message)

        try:
            await self.app(scope, receive, checked)
        except RuntimeError as problem:  # by starlette, as gradio raises after its answer has begun
            if not isinstance(problem.__cause__, HTTPException):
                raise
            if not unknown:
                await send({"type": "http.response.body"})
        if unknown:
            await Refusal(404, "there is no call with this event_id").send(scope, receive, send)


def _refusal(functions: Mapping[int, BlockFunction], route: str, name: str, body: bytes | bytearray) -> Refusal | None:
    """Why a call cannot be made; None if it can."""
    try:
        given = json.loads(body)
    except ValueError:
        return Refusal(400, "the body is not JSON")
    except RecursionError:
        return Refusal(400, "the body is nested too deeply")
    endpoints = {str(each.api_name): each for each in functions.values() if each.api_visibility == "public"}
    index = given.get("fn_index") if isinstance(given, dict) and route != _NAMED else None
    if route not in (_NAMED, *_IN_ORDER):  # an event of the page, or gradio_client
        if not isinstance(index, int) or index not in functions:
            return Refusal(404, f"there is no event with fn_index {str(index)[:20]}")
        if functions[index] not in endpoints.values():
            return None
        name = str(functions[index].api_name)
    elif name not in endpoints:
        known = ", ".join(f"/{each}" for each in endpoints)
        return Refusal(404, f"there is no endpoint /{name[:MAX_NAME_CHARS]}: there are {known}")
    elif index is not None:
        return Refusal(400, f"/{name} is called by its name, without fn_index")
    parameters = inspect.signature(endpoints[name].fn).parameters
    problem = _named_problem(given, parameters) if route == _NAMED else _ordered_problem(given, len(parameters))
    if not problem:
        return None
    taken = (each if p.default is p.empty else f"{each}={json.dumps(p.default)}" for each, p in parameters.items())
    return Refusal(400, f"{problem}: /{name} takes {', '.join(taken)}")


def _named_problem(given: object, parameters: Mapping[str, inspect.Parameter]) -> str:
    """What is wrong with the arguments of a call by name; "" if nothing is."""
    if not isinstance(given, dict):
        return "the arguments come as one JSON object"
    for name in given:
        if name not in parameters:
            return f"there is no argument {json.dumps(name[:MAX_NAME_CHARS])}"
    for name, parameter in parameters.items():
        if name not in given and parameter.default is parameter.empty:
            return f'the argument "{name}" is missing'
    return ""


def _ordered_problem(given: object, expected: int) -> str:
    """What is wrong with the values of a call in order; "" if nothing is."""
    if not isinstance(given, dict) or not isinstance(given.get("data"), list):
        return 'the values come as {"data": [...]}'
    if len(given["data"]) != expected:
        return f"{expected} values are needed, not {len(given['data'])}, as only {_NAMED} fills in defaults"
    return ""
