"""Server-side workarounds for Gradio, each with the version in which it was last needed."""

from __future__ import annotations

import ast
import asyncio
import json
import time
from collections import Counter
from importlib import import_module
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

# A script for the page's head. In Gradio 6.31, what shows that the page is loading counts seconds even when it is gone:
# it asks for 60 animation frames a second, which takes 4 % of a core. The page shows none of gradio's timers.
STOP_TIMERS = r"""{
  const request = window.requestAnimationFrame;
  const countsSeconds = (draw) => /performance\.now\(\) ?-.*\/ ?1e3/.test(String(draw));
  window.requestAnimationFrame = (draw) => (countsSeconds(draw) ? 0 : request(draw));
}"""


def look_less_often(queue: Queue) -> None:
    """Make a queue look for new events every 20 ms and for gradio's own progress, which nothing reports, every second.

    Gradio 6.31 looks every 1 and 10 ms, which takes 8 % of a processor core while nobody visits the page.
    """
    queue.sleep_when_free, queue.progress_update_sleep_when_free = 0.02, 1.0


class Answers:
    """ASGI middleware for what gradio 6.31 keeps of its clients.

    It keeps a session's response stream open between events, for LINGER_SECONDS or, for agents, until the server stops.
    Gradio closes the stream once every event is answered. If the browser sends an event at that moment, the response
    waits for the next stream, which only another event opens.

    It also makes gradio keep nothing about a client beyond the answers that it is waiting for. Gradio copies every
    component on the page for each client, and keeps every answer that nobody fetches.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._joined: dict[str, asyncio.Event] = {}  # by session with an idle stream; set by a new event
        self._listening = Counter[str]()  # open streams by session
        self._unread: dict[str, float] = {}  # since when the answers of a session have been waiting, oldest first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            page = scope["app"].get_blocks()
            scope["app"].state_holder = _OneState(page)
            if page.mcp_server_obj is not None:
                improve_tools(page.mcp_server_obj)
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        queue = scope["app"].get_blocks()._queue
        session = listens_to(scope, queue)
        self._listening[session] += 1
        try:
            if scope["path"].endswith("/queue/data"):
                await self._stream(scope, receive, send, session)
            else:
                await self.app(scope, receive, send)
        finally:
            self._listening[session] -= 1
            self._listening = +self._listening
            self._forget(queue)
        for session, joined in self._joined.items():
            if queue.pending_event_ids_session.get(session):
                joined.set()

    async def _stream(self, scope: Scope, receive: Receive, send: Send, session: str) -> None:
        """Forward gradio's consecutive streams for a session as a single stream."""
        end: list[Message] = []  # the last messages of gradio's stream
        has_started = False

        async def pass_on(message: Message) -> None:
            nonlocal has_started
            if end or message.get("body", b"").startswith(b'data: {"msg":"close_stream"'):
                end.append(message)
            elif message["type"] != "http.response.start" or not has_started:
                has_started = True
                await send(message)

        await self.app(dict(scope), receive, pass_on)
        while end and await self._joins(scope, receive, session):
            end.clear()
            await self.app(dict(scope), receive, pass_on)
        for message in end:
            await send(message)

    async def _joins(self, scope: Scope, receive: Receive, session: str) -> bool:
        """Return whether there is an event before the stream has to end, the client leaves or the server stops."""
        events = scope["app"].get_blocks()._queue.pending_event_ids_session
        if not events.get(session):
            joined = self._joined[session] = asyncio.Event()
            ends = joined.wait(), _left(receive), scope["app"].stop_event.wait()
            tasks = [asyncio.ensure_future(end) for end in ends]
            seconds = None if _AGENTS in scope["headers"] else LINGER_SECONDS
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            if self._joined.get(session) is joined:
                del self._joined[session]
        return bool(events.get(session))

    def _forget(self, queue: Queue) -> None:
        """Forget the sessions that wait for nothing, and answers that nobody has fetched."""
        now, unread = time.monotonic(), dict[str, float]()
        for session, events in list(queue.pending_event_ids_session.items()):
            if session in self._listening or any(event in queue.event_ids_to_events for event in events):
                continue
            if events:
                unread[session] = self._unread.get(session, now)
            else:
                _drop(queue, session)
        self._unread = dict(sorted(unread.items(), key=lambda each: each[1]))
        for number, (session, since) in enumerate(self._unread.items()):
            if now - since > UNREAD_SECONDS or number < len(unread) - MAX_UNREAD_ANSWERS:
                _drop(queue, session)


def listens_to(scope: Scope, queue: Queue) -> str:
    """Return the session whose answers a request reads, or "" if it reads none."""
    path = scope["path"].rstrip("/")
    if scope["method"] != "GET":
        return ""
    if path.endswith("/queue/data"):
        return parse_qs(scope["query_string"].decode()).get("session_hash", [""])[0]
    event = path.rpartition("/")[2] if "/call/" in path else ""
    return next((session for session, ids in queue.pending_event_ids_session.items() if event in ids), "")


def _drop(queue: Queue, session: str) -> None:
    queue.pending_event_ids_session.pop(session, None)
    queue.pending_messages_per_session.pop(session, None)


async def _left(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


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

    def __setitem__(self, key: int, value: object) -> None:
        pass

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: object) -> None:
        pass


def improve_tools(server: Any) -> None:
    """Make the tools of an MCP server say that they only read, and return JSON, also as structured content.

    Gradio 6.31 returns results as Python writes them, and the version of the package mcp.
    """
    types = import_module("mcp.types")  # a package that --no-mcp does not import
    handlers: dict[Any, Any] = server.mcp_server.request_handlers
    list_tools, call_tool = handlers[types.ListToolsRequest], handlers[types.CallToolRequest]
    hints = types.ToolAnnotations(readOnlyHint=True, destructiveHint=False, idempotentHint=True, openWorldHint=False)

    async def listed(request: Any) -> Any:
        answer = await list_tools(request)
        for tool in answer.root.tools:
            tool.annotations = hints
        return answer

    async def called(request: Any) -> Any:
        answer = await call_tool(request)
        if not answer.root.isError:
            [content] = answer.root.content
            content.text, answer.root.structuredContent = structured(content.text)
        return answer

    server.mcp_server.version = __version__
    handlers[types.ListToolsRequest], handlers[types.CallToolRequest] = listed, called


def structured(text: str) -> tuple[str, dict[str, Any]]:
    """Return a result as JSON, and as an object; a generated text is left unchanged."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two come from deep nesting
        value = None
    if not isinstance(value, dict | list):  # a generated text, even if it looks like a number
        return text, {"result": text}
    return json.dumps(value, ensure_ascii=False), value if isinstance(value, dict) else {"result": value}
