"""Checks on requests before gradio reads them: ASGI middleware for `launch(app_kwargs={"middleware": [...]})`.

Without these checks, gradio responds to an invalid call with status 500 and logs a traceback, fetches any URL that a
visitor names (`file=http://...`, `proxy=`), and stores everything that anyone sends.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import inspect
import json
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from gradio.blocks import Blocks
from gradio.data_classes import PredictBody
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.limits import MAX_AGENT_CALLS, MAX_BODY_BYTES, MAX_UPLOAD_BYTES, MAX_UPLOADED_BYTES
from components.monitoring import count_refusal

MAX_NAME_CHARS = 50  # maximum number of characters that an error message quotes from an unknown name
_PREFIX = "/gradio_api/"
_NAMED, _JOIN, _EVENTS, _UPLOAD = "call/v2", "queue/join", "queue/data", "upload"
_CALLS = (_NAMED, "call", "run", "api")  # the last three take all values as a list
# First segments of the routes used by the page, gradio_client and MCP; all other routes are closed.
_OPEN = {
    *("queue", "call", "run", "api", "cancel", "reset", "heartbeat", "startup-events", "theme.css"),
    *("info", "openapi.json", "app_id", "user", "login_check", "upload", "upload_progress", "mcp"),
}
_UNKNOWN_EVENT = b'event: error\ndata: "404'  # gradio's response, with status 200


@dataclass(frozen=True)
class Refusal:
    """The response to a rejected request, with a status of 400 or higher.

    The body is {"error": sentence}, or only the sentence, which the page shows.
    """

    status: int
    sentence: str
    is_plain: bool = False

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = scope["path"].removeprefix(_PREFIX).partition("/")[0]
        count_refusal(self.status, route if route in _OPEN else "closed")
        kind = PlainTextResponse if self.is_plain else JSONResponse
        await kind(self.sentence if self.is_plain else {"error": self.sentence}, self.status)(scope, receive, send)


class RequestLimits:
    """Closes unused routes, and rejects calls that are too large, name unknown functions or have invalid arguments.

    Agents' calls beyond MAX_AGENT_CALLS wait.

    uploads: whether any number of files of any size may be uploaded; otherwise only text files, within limits. api_key:
    key required from API clients and agents in the header "Authorization: Bearer KEY"; the page itself needs none.
    """

    def __init__(self, app: ASGIApp, *, uploads: bool = False, api_key: str | None = None) -> None:
        self.app, self.uploads, self._agents = app, uploads, asyncio.Semaphore(MAX_AGENT_CALLS)
        self._key = None if api_key is None else f"Bearer {api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "").rstrip("/")
        if scope["type"] != "http" or not path.startswith(_PREFIX):
            await self.app(scope, receive, send)
            return
        path = path.removeprefix(_PREFIX)
        route, _, name = path.rpartition("/")
        if not _is_open(path):
            await Refusal(404, "this address is closed").send(scope, receive, send)
        elif scope["method"] == "GET" and (path == _EVENTS or route.startswith("call/")):
            await self._send_events(scope, receive, send)
        elif scope["method"] != "POST":
            await self.app(scope, receive, send)
        elif path == _UPLOAD:
            await self._upload(scope, receive, send)
        else:
            async with self._agents if path in ("mcp", "mcp/http") else nullcontext():
                await self._call(scope, receive, send, path if path == _JOIN else route, name)

    async def _call(self, scope: Scope, receive: Receive, send: Send, route: str, name: str) -> None:
        body = await _read(receive, MAX_BODY_BYTES)
        if body is None:
            refusal: Refusal | None = Refusal(413, f"a call may have at most {MAX_BODY_BYTES:,} bytes")
        elif any(name == b"content-type" and b"json" not in value for name, value in scope["headers"]):
            refusal = Refusal(415, "a call needs the header Content-Type: application/json")
        elif self._key is not None and not self._has_key(scope) and _is_call(scope, route, body):
            refusal = Refusal(401, "this address needs a key: send the header Authorization: Bearer KEY")
        else:
            refusal = _refusal(scope["app"].get_blocks(), route, name, body)
        if refusal:
            await refusal.send(scope, receive, send)
        else:
            await self.app(scope, _replay(without_surrogates(body or b""), receive), send)

    def _has_key(self, scope: Scope) -> bool:
        given = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(given, self._key or b"")

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward an upload if it is within the limits and fits on the disk."""
        if not self.uploads:
            body = await _read(receive, MAX_UPLOAD_BYTES)
            if body is None:
                refusal = Refusal(413, f"an upload may have at most {MAX_UPLOAD_BYTES:,} bytes", is_plain=True)
                await refusal.send(scope, receive, send)
                return
            delete_oldest(scope["app"].get_blocks().upload_file_set, MAX_UPLOADED_BYTES - len(body))
            receive = _replay(body, receive)
        try:
            await self.app(scope, receive, send)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            await Refusal(507, "the disk of the server is full", is_plain=True).send(scope, receive, send)

    async def _send_events(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the events for a call or a session, or send status 404 if the call is unknown."""
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
        except RuntimeError as problem:  # raised by starlette when gradio fails after its response has started
            if not isinstance(problem.__cause__, HTTPException):
                raise
            if not unknown:
                await send({"type": "http.response.body"})
        if unknown:
            await Refusal(404, "there is no call with this event_id").send(scope, receive, send)


def _is_call(scope: Scope, route: str, body: bytes) -> bool:
    """Return whether a request calls an endpoint or a tool rather than sending a page event."""
    if route != _JOIN:
        return True
    try:
        function = scope["app"].get_blocks().fns.get(json.loads(body)["fn_index"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return True
    return function is None or function.api_visibility == "public"


def _is_open(path: str) -> bool:
    """Return whether a route is open.

    The routes in _OPEN are open, except MCP's older transport. Local files are also open; gradio itself checks them.
    """
    first, _, rest = path.partition("=")
    return (path.partition("/")[0] in _OPEN and path != "mcp/sse") or (first == "file" and "://" not in rest)


async def _read(receive: Receive, limit: int) -> bytes | None:
    """Read a request's body; if it exceeds `limit` bytes, return None without reading the rest."""
    body, more = bytearray(), True
    while more and len(body) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return None if len(body) > limit else bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that provides a body that has already been read."""
    unread = [body]

    async def replay() -> Message:
        return {"type": "http.request", "body": unread.pop()} if unread else await receive()

    return replay


def without_surrogates(body: bytes) -> bytes:
    """Replace each lone surrogate in JSON text with U+FFFD; gradio fails on them."""
    if b"\\ud" not in body.lower():
        return body
    text = json.dumps(json.loads(body), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def delete_oldest(files: set[str], limit: int) -> None:
    """Delete the oldest of these files until the rest total at most `limit` bytes."""
    found = []
    for file in list(files):
        with suppress(OSError):
            state = Path(file).stat()
            found.append((state.st_mtime, state.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= limit:
            break
        Path(file).unlink(missing_ok=True)
        files.discard(file)
        total -= size


def _refusal(blocks: Blocks, route: str, name: str, body: bytes) -> Refusal | None:
    """Return the refusal for an invalid call, or None if the call is valid."""
    try:
        given = json.loads(body)
    except ValueError:
        return Refusal(400, "the body is not JSON")
    except RecursionError:
        return Refusal(400, "the body is nested too deeply")
    if route not in (_JOIN, *_CALLS):
        return None
    functions = blocks.fns
    endpoints = {str(each.api_name): each for each in functions.values() if each.api_visibility == "public"}
    index = given.get("fn_index") if isinstance(given, dict) and route != _NAMED else None
    if route == _JOIN:  # from the page or gradio_client
        if type(index) is not int or index not in functions or functions[index].fn is None:
            return Refusal(404, f"there is no event with fn_index {str(index)[:20]}")
        name = str(functions[index].api_name)
        if functions[index] not in endpoints.values():
            problem = _body_problem(given) or _file_problem(list(given.values()), blocks.upload_file_set)
            return Refusal(400, problem) if problem else None
    elif name not in endpoints:
        known = ", ".join(f"/{each}" for each in endpoints)
        return Refusal(404, f"there is no endpoint /{name[:MAX_NAME_CHARS]}: there are {known}")
    elif index is not None:
        return Refusal(400, f"/{name} is called by its name, without fn_index")
    function = endpoints[name].fn
    assert function is not None
    parameters = inspect.signature(function).parameters
    problem = _named_problem(given, parameters) if route == _NAMED else _ordered_problem(given, len(parameters))
    if problem:
        taken = (each if p.default is p.empty else f"{each}={json.dumps(p.default)}" for each, p in parameters.items())
        return Refusal(400, f"{problem}: /{name} takes {', '.join(taken)}")
    problem = ("" if route == _NAMED else _body_problem(given)) or _file_problem(
        list(given.values()), blocks.upload_file_set
    )
    return Refusal(400, problem) if problem else None


def _body_problem(given: object) -> str:
    """Return the reason gradio cannot handle a call's body, or "" if it can."""
    try:
        body = PredictBody.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"
    if len(body.session_hash or "") > MAX_NAME_CHARS:
        return f"session_hash may have at most {MAX_NAME_CHARS} characters"
    return ""


def _file_problem(value: object, uploaded: set[str]) -> str:
    """Return the problem with a value that names a file that was not uploaded, or "" if there is none.

    Gradio copies or fetches each file that a value names, so only uploaded files are allowed.
    """
    if isinstance(value, list):
        return next(filter(None, (_file_problem(each, uploaded) for each in value)), "")
    if not isinstance(value, dict):
        return ""
    if "path" in value and not (str(value["path"]) in uploaded and isinstance(value.get("meta", {}), dict)):
        return "a file must have been uploaded"
    return _file_problem(list(value.values()), uploaded)


def _named_problem(given: object, parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the problem with a call's named arguments, or "" if there is none."""
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
    """Return the problem with a call's positional values, or "" if there is none."""
    if not isinstance(given, dict) or not isinstance(given.get("data"), list):
        return 'the values come as {"data": [...]}'
    if len(given["data"]) != expected:
        return f"{expected} values are needed, not {len(given['data'])}, as only {_NAMED} fills in defaults"
    return ""
