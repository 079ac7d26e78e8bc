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
from contextlib import nullcontext, suppress
from pathlib import Path

from gradio.blocks import Blocks
from gradio.data_classes import PredictBody
from pydantic import ValidationError
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.errors import localize_error
from components.gradio_workarounds import listens_to
from components.limits import MAX_AGENT_CALLS, MAX_BODY_BYTES, MAX_UPLOAD_BYTES, MAX_UPLOADED_BYTES
from components.monitoring import count_refusal

MAX_NAME_CHARS = 50  # maximum number of characters that an error message quotes from an unknown name
MAX_DEPTH = 100  # of lists and objects in a body; gradio fails on deeper ones
_PREFIX = "/gradio_api/"
_NAMED, _JOIN, _UPLOAD = "call/v2", "queue/join", "upload"
_CALLS = (_NAMED, "call", "run", "api")  # the last three take all values as a list
# First segments of the routes used by the page, gradio_client and MCP; all other routes are closed.
_OPEN = {
    *("queue", "call", "run", "api", "cancel", "reset", "heartbeat", "startup-events", "theme.css"),
    *("info", "openapi.json", "app_id", "user", "login_check", "upload", "upload_progress", "mcp"),
}


class Refusal(Exception):
    """Ends a request with a status of 400 or higher and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


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
        is_agent = scope["method"] == "POST" and path in ("mcp", "mcp/http")
        try:
            async with self._agents if is_agent else nullcontext():
                await self.app(scope, await self._checked(scope, receive, path), send)
        except OSError as problem:
            if problem.errno != errno.ENOSPC or path != _UPLOAD:
                raise
            await _refuse(Refusal(507, "the disk of the server is full"), path)(scope, receive, send)
        except Refusal as refusal:
            await _refuse(refusal, path)(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive, path: str) -> Receive:
        """Return what provides the request's body. Raises Refusal."""
        blocks: Blocks = scope["app"].get_blocks()
        if not _is_open(path):
            raise Refusal(404, "this address is closed")
        is_answer = scope["method"] == "GET" and path.startswith(("queue/data", "call/"))
        if is_answer and listens_to(scope, blocks._queue) not in blocks._queue.pending_messages_per_session:
            raise Refusal(404, "there is no call with this event_id")  # gradio's response has the status 200
        if scope["method"] != "POST" or (path == _UPLOAD and self.uploads):
            return receive
        limit, name = (MAX_UPLOAD_BYTES, "an upload") if path == _UPLOAD else (MAX_BODY_BYTES, "a call")
        body = await _read(receive, limit)
        if body is None:
            raise Refusal(413, f"{name} may have at most {limit:,} bytes")
        if path == _UPLOAD:
            delete_oldest(blocks.upload_file_set, MAX_UPLOADED_BYTES - len(body))
            return _replay(body, receive)
        if any(name == b"content-type" and b"json" not in value for name, value in scope["headers"]):
            raise Refusal(415, "a call needs the header Content-Type: application/json")
        try:
            given = json.loads(body)
        except ValueError:
            raise Refusal(400, "the body is not JSON") from None
        except RecursionError:
            raise Refusal(400, "the body is nested too deeply") from None
        event = given.get("fn_index") if path == _JOIN and isinstance(given, dict) else None
        function = blocks.fns.get(event) if type(event) is int else None
        if function is None or function.api_visibility == "public":  # otherwise an event of the page
            key = dict(scope["headers"]).get(b"authorization", b"")
            if self._key is not None and not hmac.compare_digest(key, self._key):
                raise Refusal(401, "this address needs a key: send the header Authorization: Bearer KEY")
        if path == _JOIN:
            if function is None or function.fn is None:
                raise Refusal(404, f"there is no event with fn_index {str(event)[:20]}")
            check_call(blocks, "", str(function.api_name), given)
        elif (route := path.rpartition("/")[0]) in _CALLS:
            check_call(blocks, route, path.rpartition("/")[2], given)
        return _replay(without_surrogates(body), receive)


def _refuse(refusal: Refusal, path: str) -> ASGIApp:
    """Return the response: {"error": sentence} or, for an upload, only the sentence, which the page shows."""
    route, sentence = path.partition("/")[0], str(refusal)
    count_refusal(refusal.status, route if route in _OPEN else "closed")
    if path == _UPLOAD:
        return PlainTextResponse(sentence, refusal.status)
    return JSONResponse({"error": sentence}, refusal.status)


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


def check_call(blocks: Blocks, route: str, name: str, given: object) -> None:
    """Raise Refusal for a call of an unknown endpoint, or with values that it does not take.

    route: one of _CALLS, or "" for an event, which is an endpoint's or the page's.
    """
    endpoints = {str(each.api_name): each.fn for each in blocks.fns.values() if each.api_visibility == "public"}
    function = endpoints.get(name)
    if route and function is None:
        known = ", ".join(f"/{each}" for each in endpoints)
        raise Refusal(404, f"there is no endpoint /{name[:MAX_NAME_CHARS]}: there are {known}")
    if function is not None:
        parameters = inspect.signature(function).parameters.values()
        taken = (p.name if p.default is p.empty else f"{p.name}={json.dumps(p.default)}" for p in parameters)
        if problem := _problem(route, given, inspect.signature(function)):
            raise Refusal(400, f"{problem}: /{name} takes {', '.join(taken)}")
    if route != _NAMED:
        try:
            body = PredictBody.model_validate(given)
        except ValidationError as error:
            raise Refusal(400, localize_error(error)) from None
        if len(body.session_hash or "") > MAX_NAME_CHARS:
            raise Refusal(400, f"session_hash may have at most {MAX_NAME_CHARS} characters")
    if _names_unknown_file(given, blocks.upload_file_set):
        raise Refusal(400, "a file must have been uploaded")


def _problem(route: str, given: object, signature: inspect.Signature) -> str:
    """Return the problem with an endpoint's arguments, or "" if there is none."""
    if route == _NAMED:
        if not isinstance(given, dict):
            return "the arguments come as one JSON object"
        try:
            signature.bind(**given)
        except TypeError as problem:
            return str(problem)[:100]
        return ""
    if not isinstance(given, dict) or not isinstance(given.get("data"), list):
        return 'the values come as {"data": [...]}'
    if route and given.get("fn_index") is not None:
        return "an endpoint is called by its name, without fn_index"
    n, expected = len(given["data"]), len(signature.parameters)
    return "" if n == expected else f"{expected} values are needed, not {n}, as only {_NAMED} fills in defaults"


def _names_unknown_file(value: object, uploaded: set[str], depth: int = 0) -> bool:
    """Return whether a value names a file that was not uploaded: gradio copies or fetches each file that is named."""
    if depth > MAX_DEPTH:
        raise Refusal(400, "the body is nested too deeply")
    if isinstance(value, dict):
        is_known = isinstance(path := value.get("path"), str) and path in uploaded
        if "path" in value and not (is_known and isinstance(value.get("meta", {}), dict)):
            return True
        value = list(value.values())
    return isinstance(value, list) and any(_names_unknown_file(each, uploaded, depth + 1) for each in value)
