"""A small server with the part of the hub's API that the client needs."""

from __future__ import annotations

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gpt.models import sources as hub

REPO, COMMIT = "someone/tiny", "a" * 40


class Hub(ThreadingHTTPServer):
    """A hub with one repository.

    Attributes:
        cut: Number of bytes of the weights after which the connection breaks and the server is down; None for never.
    """

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.cut, self.down = files, None, False
        self.gated = False  # whether it demands that the licence be accepted
        self.gets: list[str] = []  # file of each content request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *args: object) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        files = self.server.files
        entries = [{"type": "file", "path": name, "size": len(data), "oid": "0" * 40} for name, data in files.items()]
        if self.server.down:
            self.reply(503)
        elif self.server.gated:
            self.reply(403, X_Error_Code="GatedRepo")
        elif REPO not in path:
            self.reply(404, X_Error_Code="RepoNotFound")
        elif "/tree/" in path:
            self.reply(200, json.dumps(entries).encode())
        elif path.startswith("/api/"):
            siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
            self.reply(200, json.dumps({"id": REPO, "sha": COMMIT, "siblings": siblings}).encode())
        elif (name := path.rpartition("/")[2]) not in files:
            self.reply(404, X_Error_Code="EntryNotFound")
        else:
            self.send_content(name, files[name])

    def send_content(self, name: str, data: bytes) -> None:
        etag = f'"{hashlib.sha256(data).hexdigest()}"'
        headers = {"ETag": etag, "X_Repo_Commit": COMMIT, "X_Linked_Size": str(len(data)), "X_Linked_Etag": etag}
        if self.command == "GET":
            self.server.gets.append(name)
            if name == hub.WEIGHTS and self.server.cut is not None:
                self.server.down = True
                self.reply(200, data[: self.server.cut], **headers, Content_Length=str(len(data)))
                self.close_connection = True
                return
        self.reply(200, data, **headers)
