"""Server-side workarounds for Gradio, each with the version in which it was last needed."""

from __future__ import annotations

import ast
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

from gradio.blocks import Blocks
from gradio.queueing import Queue
from gradio.state_holder import SessionState, StateHolder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.limits import MAX_UNREAD_ANSWERS, UNREAD_SECONDS
from gpt import __version__

LINGER_SECONDS = 20.0  # how long an idle stream stays open; shorter than a typical proxy timeout
_AGENTS = (b"x-gradio-user", b"mcp")  # header of the client through which gradio's MCP server calls this server
_CLOSE, _COMPLETED = b'data: {"msg":"close_stream"', b'data: {"msg":"process_completed"'


def look_less_often(queue: Queue) -> None:
    """Make a queue look for new events every 10 ms and for progress every 100 ms.

    Gradio 6.31 looks every 1 and 10 ms, which takes 8 % of a processor core while nobody visits the page.
    """
    queue.sleep_when_free, queue.progress_update_sleep_when_free = 0.01, 0.1


@dataclass(eq=False)
class Stream:
    """A response stream.

    pending: ids of unanswered events; joined: set by each new event. started: whether the headers have been sent.
    """

    pending: set[str] = field(default_factory=set)
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    started: bool = False


class LingeringStream:
    """ASGI middleware that keeps a session's response stream open between events.

    The stream stays open for LINGER_SECONDS or, for agents, until the server stops.

    Gradio 6.31 closes the stream once every event is answered. If the browser sends an event at that moment, the
    response waits for the next stream, which only another event opens.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._streams: dict[str, Stream] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path.endswith("/queue/join"):
            await self._join(scope, receive, send)
        elif path.endswith("/queue/data"):
            await self._stream(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _join(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Record a new event's id before the browser receives the response to its request."""
        request, answer = bytearray(), bytearray()

        async def read() -> Message:
            message = await receive()
            request.extend(message.get("body", b""))
            return message

        async def note(message: Message) -> None:
            answer.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                stream = self._streams.get(_field(request, "session_hash"))
                if stream and (event_id := _field(answer, "event_id")):
                    stream.pending.add(event_id)
                    stream.joined.set()
            await send(message)

        await self.app(scope, read, note)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward gradio's consecutive streams for a session as a single stream."""
        session = _session_hash(scope)
        stream = self._streams[session] = Stream()
        stopped, seconds = scope["app"].stop_event, None if _AGENTS in scope["headers"] else LINGER_SECONDS
        try:
            while end := await self._answers(stream, scope, receive, send):
                if not (stream.pending or await _joins(stream, receive, stopped, seconds)):
                    for message in end:
                        await send(message)
                    return
        finally:
            if self._streams.get(session) is stream:
                del self._streams[session]

    async def _answers(self, stream: Stream, scope: Scope, receive: Receive, send: Send) -> list[Message]:
        """Forward one of gradio's streams except for its final messages, and return these, or [] if the client left."""
        end: list[Message] = []

        async def pass_on(message: Message) -> None:
            body = message.get("body", b"")
            if end or body.startswith(_CLOSE):
                end.append(message)
                return
            if body.startswith(_COMPLETED):
                stream.pending.discard(_field(body.removeprefix(b"data: "), "event_id"))
            if message["type"] != "http.response.start" or not stream.started:
                stream.started = True
                await send(message)

        await self.app(dict(scope), receive, pass_on)
        return end


class NoSessions:
    """ASGI middleware that makes gradio keep nothing about a client beyond the answers that it is waiting for.

    Gradio 6.31 copies every component on the page for each client and keeps what each endpoint last returned, for the
    last 10,000 clients; the page keeps its visitors' state itself. Gradio also keeps every answer that nobody fetches.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._listening = Counter[str]()  # open streams by session
        self._unread: dict[str, float] = {}  # since when the answers of a session have been waiting, oldest first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            page = scope["app"].get_blocks()
            scope["app"].state_holder = page.state_holder = _OneState(page)
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        queue = scope["app"].get_blocks()._queue
        session = _listens_to(scope, queue)
        self._listening[session] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._listening[session] -= 1
            self._listening = +self._listening
            self._forget(queue)

    def _forget(self, queue: Queue) -> None:
        """Forget the sessions that wait for nothing, and answers that nobody has fetched."""
        now, unread = time.monotonic(), list[str]()
        for session, events in list(queue.pending_event_ids_session.items()):
            if session in self._listening or any(event in queue.event_ids_to_events for event in events):
                continue
            if events:
                unread.append(session)
            else:
                _drop(queue, session)
        self._unread = {each: since for each, since in self._unread.items() if each in unread}
        self._unread |= {each: now for each in unread if each not in self._unread}
        for number, (session, since) in enumerate(list(self._unread.items())):
            if now - since > UNREAD_SECONDS or number < len(self._unread) - MAX_UNREAD_ANSWERS:
                _drop(queue, session)


class _OneState(StateHolder):
    """The state that gradio takes for each client's own: always the page's initial state."""

    def __init__(self, page: Blocks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.set_blocks(page)
        self._state = _InitialState(page)

    def __getitem__(self, session_id: str) -> SessionState:
        return self._state


class _InitialState(SessionState):
    """A page's initial state, which ignores every change."""

    def __init__(self, page: Blocks) -> None:
        super().__init__(SimpleNamespace(default_config=page.default_config, blocks=()))  # type: ignore[arg-type]

    def __setitem__(self, key: int, value: object) -> None:
        pass

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: object) -> None:
        pass


def _listens_to(scope: Scope, queue: Queue) -> str:
    """Return the session whose answers a request reads, or "" if it reads none."""
    path = scope["path"].rstrip("/")
    if scope["method"] != "GET":
        return ""
    if path.endswith("/queue/data"):
        return _session_hash(scope)
    if "/call/" in path:
        event = path.rpartition("/")[2]
        return next((session for session, ids in queue.pending_event_ids_session.items() if event in ids), "")
    return ""


def _session_hash(scope: Scope) -> str:
    return parse_qs(scope["query_string"].decode()).get("session_hash", [""])[0]


def _drop(queue: Queue, session: str) -> None:
    queue.pending_event_ids_session.pop(session, None)
    queue.pending_messages_per_session.pop(session, None)


async def _joins(stream: Stream, receive: Receive, stopped: asyncio.Event, seconds: float | None) -> bool:
    """Return whether an event joins within `seconds` and before the browser disconnects or the server stops."""
    stream.joined.clear()
    tasks = [asyncio.ensure_future(end) for end in (stream.joined.wait(), _left(receive), stopped.wait())]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    return bool(stream.pending)


async def _left(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _field(text: bytes | bytearray, name: str) -> str:
    """Parse a JSON object and return one of its fields as a string, or "" if there is no such field."""
    try:
        found = json.loads(text)
    except ValueError:
        return ""
    return str(found.get(name, "")) if isinstance(found, dict) else ""


PATHS = ("/gradio_api/mcp", "/gradio_api/mcp/http")
ANNOTATIONS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_DATA = b"data: "


class AgentAnswers:
    """Middleware that rewrites the MCP server's messages, whether sent as an event stream or one at a time."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"].rstrip("/") not in PATHS:
            await self.app(scope, receive, send)
            return
        start: Message | None = None  # held back until the length of a rewritten message is known

        async def rewritten(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            body = message.get("body", b"")
            if body.lstrip().startswith(b"{"):
                body = rewrite(body)
            elif _DATA in body:
                body = b"\n".join(
                    _DATA + rewrite(line[len(_DATA) :]) if line.startswith(_DATA) else line
                    for line in body.split(b"\n")
                )
            if start is not None:
                length = str(len(body)).encode()
                headers = [(n, length if n == b"content-length" else value) for n, value in start["headers"]]
                await send({**start, "headers": headers})
                start = None
            await send({**message, "body": body})

        await self.app(scope, receive, rewritten)


def rewrite(text: bytes) -> bytes:
    """Rewrite the result in a JSON message, leaving other content unchanged."""
    try:
        message = json.loads(text)
        result = message["result"]
    except (ValueError, KeyError, TypeError):
        return text
    if "serverInfo" in result:
        result["serverInfo"]["version"] = __version__
    for tool in result.get("tools", ()):
        tool["annotations"] = ANNOTATIONS
    if "content" in result and not result.get("isError"):
        result |= structured(result["content"])
    return json.dumps(message, ensure_ascii=False).encode()


def structured(content: list[dict[str, Any]]) -> dict[str, Any]:
    """Convert a result's content to JSON and add it as structured content; a generated text is added unchanged."""
    try:
        value = ast.literal_eval(content[0]["text"])
    except (ValueError, SyntaxError, KeyError, IndexError):
        value = None
    if not isinstance(value, dict | list):  # a generated text, even if it looks like a number
        return {"content": content, "structuredContent": {"result": content[0].get("text", "") if content else ""}}
    text = [{**content[0], "text": json.dumps(value, ensure_ascii=False)}]
    return {"content": text, "structuredContent": value if isinstance(value, dict) else {"result": value}}
