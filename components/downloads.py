"""Files for download, each served at a secret URL until it is fetched.

A session keeps one file per name. The oldest files are deleted when the total over all sessions exceeds MAX_FILE_BYTES.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakValueDictionary

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from components.limits import MAX_FILE_BYTES
from components.render import View, is_own
from components.state.session import Session

_FOLDER = "glassbox/files"
_served: WeakValueDictionary[str, Download] = WeakValueDictionary()  # oldest first
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Download:
    """A file in its own temporary folder, served at a secret URL."""

    folder: TemporaryDirectory[str]
    path: Path
    n_bytes: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @property
    def url(self) -> str:
        return f"{_FOLDER}/{self.token}"

    def delete(self) -> None:
        with _lock:
            _served.pop(self.token, None)
        self.folder.cleanup()


@dataclass(frozen=True)
class DownloadState:
    """The downloads of a session.

    kept: the session's files by name; offered: the file that the page should fetch now.
    """

    kept: Mapping[str, Download] = field(default_factory=dict)
    offered: Download | None = None


def offer(session: Session, write: Callable[[Path], Path]) -> Iterator[None]:
    """Offer a file for download. write: writes the file to the given folder and returns its path."""
    folder = TemporaryDirectory(prefix="glassbox-", ignore_cleanup_errors=True)
    try:
        path = write(Path(folder.name))
        download = Download(folder, path, path.stat().st_size)
    except BaseException:
        folder.cleanup()
        raise
    kept = session.state(DownloadState).kept
    if path.name in kept:
        kept[path.name].delete()
    else:
        session.resources.callback(lambda: session.state(DownloadState).kept[path.name].delete())
    _serve(download)
    session.change(DownloadState, kept={**kept, path.name: download}, offered=download)
    yield
    session.change(DownloadState, offered=None)


def _serve(download: Download) -> None:
    """Serve a file, and delete the oldest files beyond MAX_FILE_BYTES."""
    with _lock:
        older = list(_served.values())
        _served[download.token] = download
    total = download.n_bytes + sum(each.n_bytes for each in older)
    for each in older:
        if total <= MAX_FILE_BYTES:
            break
        each.delete()
        total -= each.n_bytes


def _offered(s: Any) -> dict[str, Any]:
    download = s[DownloadState].offered
    return {"file": None if download is None else {"url": download.url, "name": download.path.name}}


VIEW = View("download", _offered, is_own)


def _answer(request: Request) -> Response:
    download = _served.get(request.path_params["token"])
    if download is None or not download.path.is_file():
        return PlainTextResponse("This file no longer exists.", status_code=404)
    fetched = BackgroundTask(download.delete) if request.method == "GET" else None
    headers = {"Cache-Control": "no-store"}
    return FileResponse(download.path, filename=download.path.name, headers=headers, background=fetched)


ROUTE = Route(f"/{_FOLDER}/{{token}}", _answer, methods=["GET", "HEAD"])
