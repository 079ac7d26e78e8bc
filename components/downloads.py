"""Files for download, served under a secret address while a session holds them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from components.render import View
from components.state.session import Session

_FOLDER = "glassbox/files"
_served: WeakValueDictionary[str, Download] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Download:
    """A file on disk and its secret address. It is served while this object exists."""

    path: Path
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    def __post_init__(self) -> None:
        _served[self.token] = self

    @property
    def url(self) -> str:
        """Relative to the page's address."""
        return f"{_FOLDER}/{self.token}"


@dataclass(frozen=True)
class DownloadState:
    """kept: the last offer, which the browser may still be fetching; offered: the current one."""

    kept: Download | None = None
    offered: Download | None = None


def offer(session: Session, path: Path) -> Iterator[None]:
    """Offer a file for download. The caller deletes it."""
    download = Download(path)
    session.change(DownloadState, kept=download, offered=download)
    yield
    session.change(DownloadState, offered=None)


def _address(download: Download | None) -> dict[str, str] | None:
    return download and {"url": download.url, "name": download.path.name}


SIGNAL = View("download", lambda s: s.state(DownloadState).offered, lambda s: _address(s.state(DownloadState).offered))


def _answer(request: Request) -> Response:
    download = _served.get(request.path_params["token"])
    if download is None or not download.path.is_file():
        return PlainTextResponse("This file is no longer there.", status_code=404)
    return FileResponse(download.path, filename=download.path.name, headers={"Cache-Control": "no-store"})


ROUTE = Route(f"/{_FOLDER}/{{token}}", _answer, methods=["GET", "HEAD"])
