"""Middleware for responses from gradio's MCP server, which sends each result as a Python literal.

It converts results to JSON, adds them as structured content, marks every tool as read-only and reports our version.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpt import __version__

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
