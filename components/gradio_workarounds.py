"""Server-side workarounds for Gradio, each with the version in which it was last needed.

tests/components/test_gradio_workarounds.py and tests/browser/test_gradio_workarounds.py warn when one is no longer
needed.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINGER_SECONDS = 20.0  # how long an idle stream stays open; shorter than a typical proxy timeout
_AGENTS = (b"x-gradio-user", b"mcp")  # header of the client through which gradio's MCP server calls this server
_CLOSE, _COMPLETED = b'data: {"msg":"close_stream"', b'data: {"msg":"process_completed"'


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
        [session, *_] = parse_qs(scope["query_string"].decode()).get("session_hash", [""])
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


class SmallSessions:
    """ASGI middleware that saves memory on each visitor's first event.

    Without it, gradio 6.31 describes every component on the page for each visitor, which takes 1.4 MB and 0.1 s on one
    core. The descriptions are for links that contain a page's state, which this page does not use.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # gradio describes the components in `blocks`
            page = scope["app"].get_blocks()
            scope["app"].state_holder.blocks = SimpleNamespace(default_config=page.default_config, blocks=())
        await self.app(scope, receive, send)


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
