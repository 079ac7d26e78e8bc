"""Classes: a page that others follow, what its teacher does, and short links with QR codes.

The scripts in this folder load only when one of these is used. The server keeps the newest queries of short links until
it stops, each under a short code derived from the query.

Frames are drawn once per language and sent to all following pages. Nothing done on a following page reaches the
session, and following pages never run the model.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import segno
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from components.errors import PageError, message_of
from components.events import Events
from components.i18n import LANGUAGES, Language
from components.limits import MAX_CLASSES, MAX_FOLLOWERS, MAX_SHORT_LINKS
from components.render import Renderer, View
from components.share.address import Places, page_query
from components.share.handlers import ShareState
from components.share.link import encode
from components.share.opening import open_stop
from components.share.sequence import SEQUENCES, SequenceState, open_sequence, parse
from components.state.adoption import adopt
from components.state.hidden import hidden_values, hide_again
from components.state.session import Session
from components.state.snapshot import Message, Snapshot

N_CHARS = 6
_queries: OrderedDict[str, str] = OrderedDict()  # oldest first
_queries_lock = threading.Lock()


def shorten(query: str) -> str:
    """Return a short link to the page with this query, such as "s/k3x9ab", relative to the page's address."""
    digest = hashlib.sha256(query.encode()).digest()
    code = base64.b32encode(digest).decode().lower()[:N_CHARS]
    with _queries_lock:
        _queries[code] = query
        _queries.move_to_end(code)
        while len(_queries) > MAX_SHORT_LINKS:
            _queries.popitem(last=False)
    return f"s/{code}"


def _answer(request: Request) -> Response:
    """Redirect to the linked page, or to the example if the link is no longer stored."""
    query = _queries.get(request.path_params["code"].lower())
    return RedirectResponse("../" if query is None else f"../?{query}", 302)


_SHORT = Route("/s/{code}", _answer, methods=["GET", "HEAD"])


BORDER = 4  # modules around the code, required by readers


def qr_code(text: str) -> dict[str, Any]:
    """Return the QR code for a text. size: width of the picture with its border, in modules; path: the dark modules.

    Raises ValueError if the text exceeds the 2,953 bytes that a QR code can hold.
    """
    matrix = segno.make(text, error="l", boost_error=True, micro=False).matrix
    dark = [(x + BORDER, y + BORDER) for y, row in enumerate(matrix) for x, module in enumerate(row) if module]
    return {"size": len(matrix) + 2 * BORDER, "path": "".join(f"M{x} {y}h1v1h-1z" for x, y in dark)}


FOLDER = "glassbox/class"
DRAW_SECONDS = 0.25  # minimum time between two frames
WAIT_SECONDS = 20.0  # how long a request waits for a frame; shorter than the usual proxy timeout
LOOK_SECONDS = 0.05  # interval between checks for a change
GONE_SECONDS = 2 * WAIT_SECONDS  # a page without a request for this long is no longer counted
MAX_FRAMES = 32  # number of frames kept for pages that lag behind
AHEAD = 1e15  # ms: later than any click on a tab of a following page
_rooms: dict[str, Room] = {}  # open rooms by code
_lock = threading.Lock()


class Mirror:
    """A session as its followers see it, in one language. Its first frame contains every view."""

    def __init__(self, session: Session, language: Language, numbers: bool, private: tuple[type, ...]) -> None:
        self.session, self.language, self.numbers, self.private = session, language, numbers, private
        self.sent: dict[Any, Any] = {}
        self.lock, self.render_lock = session.lock, session.render_lock  # views share values computed by the states
        self.frame_number = 0
        self.seen_frame: int | None = None
        self.epoch = secrets.token_hex(4)
        self.kept: tuple[int, tuple[str, ...]] = 1, ()  # number of the first kept frame, and the frames
        self.drawing, self.drawn, self.drawn_at = asyncio.Lock(), -1, 0.0
        self._packed: tuple[tuple[int, int], bytes] | None = None

    def snapshot(self) -> Snapshot:
        """Return a snapshot without the session's id, its address, and the responses to its requests."""
        s = self.session.snapshot()
        states = {cls: state for cls, state in s.states.items() if cls not in self.private}
        return replace(
            s,
            id="",
            language=self.language,
            numbers=self.numbers,
            link_opened=False,
            navigated=AHEAD,
            handled={},
            states=states,
            _cache={},
        )

    async def draw(self, renderer: Renderer) -> None:
        """Add a frame if the session has changed, at most once every DRAW_SECONDS."""
        if self.drawn == self.session.frame_number or time.monotonic() < self.drawn_at + DRAW_SECONDS:
            return
        async with self.drawing:
            if self.drawn != self.session.frame_number:
                self.drawn, self.drawn_at = self.session.frame_number, time.monotonic()
                await asyncio.to_thread(self._draw, renderer)

    def _draw(self, renderer: Renderer) -> None:
        first, frames = self.kept
        if is_whole := not 0 < len(frames) < MAX_FRAMES:
            self.sent, self.seen_frame = {}, 0
        if frame := renderer.frame(self):
            self.kept = (self.frame_number, (frame,)) if is_whole else (first, (*frames, frame))

    def newer(self, seen: str) -> bytes | None:
        """Return frames after `seen`, "epoch.number", as gzipped JSON, or None if the page is up to date."""
        epoch, _, number = seen.partition(".")
        first, frames = self.kept
        last = first + len(frames) - 1
        has = int(number) if epoch == self.epoch and number.isdecimal() and first <= int(number) else first - 1
        if has >= last:
            return None
        if self._packed is None or self._packed[0] != (has, last):
            head = f'{{"epoch":"{self.epoch}","n":{last},"frames":['
            body = (head + ",".join(frames[has + 1 - first :]) + "]}").encode()
            self._packed = (has, last), gzip.compress(body, 5)
        return self._packed[1]


class Room:
    """A session that others follow, until the room or the session is closed.

    code: code in the link. pages: maps the name of each following page to the time of its last request. touch: keeps
    the session from becoming idle. private: states hidden from followers.
    Raises PageError if MAX_CLASSES rooms are open.
    """

    def __init__(
        self, session: Session, renderer: Renderer, touch: Callable[[], object], private: tuple[type, ...]
    ) -> None:
        self.session, self.renderer, self.touch, self.private = session, renderer, touch, private
        self.code = hashlib.sha256(session.id.encode()).hexdigest()[:10]  # stays the same after a restart
        self.is_closed = False
        self.pages: dict[str, float] = {}
        self.mirrors: dict[tuple[Language, bool], Mirror] = {}
        with _lock:
            if len(_rooms) >= MAX_CLASSES and self.code not in _rooms:
                raise PageError("class.full", n=MAX_CLASSES)
            _rooms[self.code] = self
        session.resources.callback(self.close)

    def close(self) -> None:
        self.is_closed = True
        with _lock:
            _rooms.pop(self.code, None)

    def admit(self, page: str) -> bool:
        """Return whether a page may follow. At most MAX_FOLLOWERS pages can follow at the same time."""
        self.pages = self.present()
        if page not in self.pages and len(self.pages) >= MAX_FOLLOWERS:
            return False
        self.pages[page] = time.monotonic()
        return True

    def present(self) -> dict[str, float]:
        since = time.monotonic() - GONE_SECONDS
        return {name: at for name, at in self.pages.copy().items() if at > since}

    async def newer(self, language: Language, numbers: bool, seen: str) -> bytes | None:
        """Wait for frames that a page lacks and return them. Returns None after WAIT_SECONDS."""
        mirror = self.mirrors.setdefault((language, numbers), Mirror(self.session, language, numbers, self.private))
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end and not self.is_closed:
            await mirror.draw(self.renderer)
            if found := mirror.newer(seen):
                return found
            await asyncio.sleep(LOOK_SECONDS)
        return None


async def _follow(request: Request) -> Response:
    """The status is 204 if the page is up to date, 404 if the class does not exist, and 409 if the class is full."""
    room, asked = _rooms.get(request.path_params["code"]), request.query_params
    if room is None:
        return Response(status_code=404)
    if not room.admit(re.sub("[^0-9a-f]", "", asked.get("page", ""))[:32]):
        return Response(status_code=409)
    room.touch()
    language = asked.get("language", "")
    known = language if language in LANGUAGES else next(iter(LANGUAGES))
    body = await room.newer(known, asked.get("numbers") == "1", asked.get("seen", ""))
    if body is None:
        return Response(status_code=204)
    headers = {"Content-Encoding": "gzip", "Cache-Control": "no-store"}
    return Response(body, media_type="application/json", headers=headers)


def _count(request: Request) -> Response:
    room = _rooms.get(request.path_params["code"])
    return JSONResponse(0 if room is None else len(room.present()))


ROUTES = [_SHORT, Route(f"/{FOLDER}/{{code}}", _follow), Route(f"/{FOLDER}/{{code}}/pages", _count)]


MAX_TEXT_CHARS = 12_000  # maximum length of a sequence
MAX_CODE_CHARS = 20
MAX_BASE_CHARS = 300  # maximum length of the page's address
_numbers = count(1)


@dataclass(frozen=True)
class ClassState:
    """room: the room for pages that follow this one. code: the code of the class that this page last followed."""

    answer: dict[str, Any] | None = None
    room: Room | None = None
    code: str = ""

    __hash__ = None  # type: ignore[assignment]


PRIVATE = (ClassState, ShareState)  # states hidden from followers


@dataclass(frozen=True)
class Classroom:
    events: Events
    places: Places
    is_open: bool

    def handle(self, session: Session, sent: dict[str, Any]) -> Iterator[None]:
        """Handle a request. sent: the action "do" and its values, unchecked."""
        match sent:
            case {"do": "stop", "at": int(at)}:
                yield from open_stop(session, at, self.places)
            case {"do": "start", "text": str(text)}:
                open_sequence(session, named(text))
                yield from open_stop(session, 0, self.places)
            case {"do": "end"}:
                session.change(SequenceState, link="", stops=(), at=0)
            case {"do": "links"}:
                self.make_links(session, sent)
            case {"do": "room", "on": bool(on)}:
                self.set_room(session, on)
                self.make_links(session, sent)
            case {"do": "alone", "code": str(code)}:
                self.go_on_alone(session, code)

    def make_links(self, session: Session, sent: dict[str, Any]) -> None:
        """Send short links with QR codes: to the page, to the sequence in "text", and for following this page.

        sent: "base" is the page's address without a query.
        """
        base, text, room = sent.get("base"), sent.get("text"), session.state(ClassState).room
        if not (isinstance(base, str) and base.startswith("http") and len(base) <= MAX_BASE_CHARS):
            return
        answer: dict[str, Any] = {"n": next(_numbers), "open": self.is_open, "problem": ""}
        try:
            query = page_query(self.places.pages, session)
            answer["page"] = _link(base + shorten(query)) | {"query": query}
            if isinstance(text, str):
                parse(text[:MAX_TEXT_CHARS])
                answer["stops"] = _link(base + shorten(encode({"class": named(text)})))
        except ValueError as problem:
            answer["problem"] = message_of(problem)
        if room is not None:
            answer["room"] = _link(f"{base}?follow={room.code}") | {"code": room.code}
        session.change(ClassState, answer=answer | {"sequences": list(SEQUENCES.values())})

    def set_room(self, session: Session, on: bool) -> None:
        room = session.state(ClassState).room
        if on and room is None:
            if not self.is_open:
                raise PageError("class.closed")
            touch = partial(self.events.store.get, session.id)
            session.change(ClassState, room=Room(session, self.events.renderer, touch, PRIVATE))
        elif not on and room is not None:
            room.close()
            session.change(ClassState, room=None)

    def go_on_alone(self, session: Session, code: str) -> None:
        """Continue from the followed page's position and text. The next frame contains every view."""
        room = _rooms.get(code)
        session.change(ClassState, code=code[:MAX_CODE_CHARS])
        if room is not None and room.session is not session:
            self._take(session, room.session)
        with session.render_lock:
            session.sent, session.seen_frame = {}, 0

    def _take(self, session: Session, teacher: Session) -> None:
        with teacher.lock.settling():
            s = teacher.snapshot()
            document = None if teacher.document is None else teacher.document.copy()
        if document is not None:
            adopt(session, document, s.prompt, Message("status.ready"))
        session.settings, session.selection, session.tab, session.film = s.settings, s.selection, s.tab, s.film
        session.edits, session.edits_on = s.edits, s.edits_on
        hide_again(session, hidden_values(s))
        for page in self.places.pages.values():
            if s.tab == page.tab and (current := page.current(s)) is not None:
                page.open(session, current)
        session.change(SequenceState, **vars(s.state(SequenceState)))


def named(text: str) -> str:
    """Return the name of the built-in sequence with this text. If there is none, return the text itself, limited."""
    text = text[:MAX_TEXT_CHARS]
    return next((name for name, each in SEQUENCES.items() if each.strip() == text.strip()), text)


def _link(url: str) -> dict[str, Any]:
    return {"url": url, "qr": qr_code(url)}


def shown(s: Snapshot) -> dict[str, Any] | None:
    """Return the data that the page shows about the class, or None if there is nothing to show."""
    sequence, state, is_followed = s.state(SequenceState), s.state(ClassState), not s.id
    if not (sequence.link or state.answer or state.code or is_followed):
        return None
    at, n = sequence.at, len(sequence.stops)
    stop = {"at": at, "n": n, "title": sequence.stops[at].title} if n else None
    return {"stop": stop, "answer": state.answer, "code": state.code}


def wire_class(events: Events, places: Places, *, is_open: bool) -> None:
    """Wire the event for requests from a class. is_open: whether pages may be followed."""
    classroom = Classroom(events, places, is_open)
    events.renderer.add("", [View("class", lambda s: {"shown": shown(s)})])
    events.on(events.frame.classroom, classroom.handle, payload=True, queue="model")
