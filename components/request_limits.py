"""Limits of requests before gradio reads them: ASGI middleware for `launch(app_kwargs={"middleware": [...]})`."""

from __future__ import annotations

import json

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 16_000_000  # of a call; files are limited by `launch(max_file_size=...)`
_CALL = "/gradio_api/call/"
_CALLS = (_CALL, "/gradio_api/run/", "/gradio_api/queue/join")


class RequestLimits:
    """Rejects calls with too large a body, and API calls with missing values, with an error message."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or not path.startswith(_CALLS):
            await self.app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more and len(body) <= MAX_BODY_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if more or len(body) > MAX_BODY_BYTES:
            problem, status = f"a call may have at most {MAX_BODY_BYTES:,} bytes", 413
        else:
            problem, status = _missing_values(scope, path, body), 400
        if problem:
            await JSONResponse({"error": problem}, status)(scope, receive, send)
            return
        unread = [bytes(body)]

        async def replay() -> Message:
            return {"type": "http.request", "body": unread.pop()} if unread else await receive()

        await self.app(scope, replay, send)


def _missing_values(scope: Scope, path: str, body: bytes | bytearray) -> str:
    """Why an API call cannot be made, which gradio would not report; "" if it can."""
    if not path.startswith(_CALL):
        return ""
    name = path.removeprefix(_CALL).strip("/")
    try:
        data = json.loads(body)["data"]
    except (ValueError, KeyError, TypeError):
        return ""
    for function in scope["app"].get_blocks().fns.values():
        if function.api_name == name and isinstance(data, list) and len(data) < (needed := len(function.inputs)):
            return f"/{name}: {len(data)} of {needed} values came, and over HTTP none is filled in"
    return ""
