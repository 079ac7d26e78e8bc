"""Event handlers for a class, and the data that the page shows about the class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from components.classroom.room import Room, room_of
from components.errors import PageError, localize_error
from components.events import Events
from components.parts import Handler
from components.render import Signal
from components.share.address import Places, page_values
from components.share.handlers import ShareState
from components.share.link import MAX_LINK, encode
from components.share.opening import open_stop
from components.share.sequence import SEQUENCES, SequenceState, open_sequence, parse
from components.share.short_links import qr_code, shorten
from components.state.adoption import adopt
from components.state.hidden import hidden_values, hide_again
from components.state.session import Session
from components.state.snapshot import Message, Snapshot

MAX_TEXT_CHARS = 12_000  # maximum length of a sequence
MAX_CODE_CHARS = 20
MAX_BASE_CHARS = 300  # maximum length of the page's address
_numbers = count(1)


@dataclass(frozen=True)
class ClassState:
    """A session's classroom state.

    answer: the response to the dialog's last request. room: the room for pages that follow this one. code: the code of
    the class that this page last followed.
    """

    answer: dict[str, Any] | None = None
    room: Room | None = None
    code: str = ""

    __hash__ = None  # type: ignore[assignment]


PRIVATE = (ClassState, ShareState)  # states hidden from followers


@dataclass(frozen=True)
class Classroom:
    """Handlers for the events of a class.

    is_open: whether pages may be followed.
    """

    events: Events
    places: Places
    is_open: bool

    def handle(self, session: Session, sent: dict[str, Any]) -> Iterator[None]:
        """Handle a request. sent: the action "do" and its values, unchecked."""
        does: dict[object, Handler] = {
            "stop": self.go_to_stop,
            "start": self.start,
            "end": self.end,
            "links": self.make_links,
            "room": self.set_room,
            "alone": self.go_on_alone,
        }
        if handler := does.get(sent.get("do")):
            yield from handler(session, sent) or ()

    def go_to_stop(self, session: Session, sent: dict[str, Any]) -> Iterator[None]:
        """Show the stop with index "at" in the open sequence."""
        if type(sent.get("at")) is int:
            yield from open_stop(session, sent["at"], self.places)

    def start(self, session: Session, sent: dict[str, Any]) -> Iterator[None]:
        """Open the sequence in "text", possibly a built-in one, at its first stop."""
        text = sent.get("text")
        if isinstance(text, str):
            open_sequence(session, self._named(text[:MAX_TEXT_CHARS]))
            yield from open_stop(session, 0, self.places)

    def end(self, session: Session, sent: dict[str, Any]) -> None:
        session.change(SequenceState, link="", stops=(), at=0)

    def make_links(self, session: Session, sent: dict[str, Any]) -> None:
        """Send short links with QR codes: to the page, to the sequence in "text", and for following this page.

        sent: "base" is the page's address without a query.
        """
        base, text = sent.get("base"), sent.get("text")
        if not (isinstance(base, str) and base.startswith("http") and len(base) <= MAX_BASE_CHARS):
            return
        room = session.state(ClassState).room
        answer: dict[str, Any] = {"n": next(_numbers), "open": self.is_open, "problem": ""}
        try:
            query = self._page_query(session)
            answer["page"] = _link(base, query) | {"query": query}
            if isinstance(text, str):
                parse(text[:MAX_TEXT_CHARS])
                answer["stops"] = _link(base, encode({"class": self._named(text[:MAX_TEXT_CHARS])}))
        except ValueError as problem:
            answer["problem"] = localize_error(problem)
        if room is not None:
            answer["room"] = _drawn(f"{base}?follow={room.code}") | {"code": room.code}
        answer["sequences"] = list(SEQUENCES.values())
        session.change(ClassState, answer=answer)

    def set_room(self, session: Session, sent: dict[str, Any]) -> None:
        """Start or stop letting others follow this page, then send links via `make_links`."""
        room = session.state(ClassState).room
        if sent.get("on") is True and room is None:
            if not self.is_open:
                raise PageError("class.closed")
            touch = partial(self.events.store.get, session.id)
            session.change(ClassState, room=Room(session, self.events.renderer, touch, PRIVATE))
        elif sent.get("on") is False and room is not None:
            room.close()
            session.change(ClassState, room=None)
        self.make_links(session, sent)

    def go_on_alone(self, session: Session, sent: dict[str, Any]) -> None:
        """Continue from the followed page's position and text. The next frame contains every view."""
        room = room_of(sent.get("code"))
        session.change(ClassState, code=str(sent.get("code"))[:MAX_CODE_CHARS])
        if room is not None and room.session is not session:
            self._take(session, room)
        with session.render_lock:
            session.sent, session.seen_frame = {}, 0

    def _take(self, session: Session, room: Room) -> None:
        teacher = room.session
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

    def _named(self, text: str) -> str:
        """Return the name of the built-in sequence with this text. If there is none, return the text itself."""
        return next((name for name, each in SEQUENCES.items() if each.strip() == text.strip()), text)

    def _page_query(self, session: Session) -> str:
        """Return the page's query. Raises ValueError if it is too long or if `page_values` fails."""
        if session.document is None:
            raise PageError("error.no_text")
        with session.lock.reading():
            query = encode(page_values(session.snapshot()))
        if len(query) > MAX_LINK:
            raise PageError("share.too_long", n=f"{len(query):,}", limit=f"{MAX_LINK:,}")
        return query


def _link(base: str, query: str) -> dict[str, Any]:
    return _drawn(base + shorten(query))


def _drawn(url: str) -> dict[str, Any]:
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
    events.renderer.signals.append(Signal("class", shown, is_shared=True))
    events.on(events.frame.classroom, classroom.handle, payload=True, queue="model")
