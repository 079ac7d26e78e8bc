"""A class: followers of a page, short links with codes, and the answers to its dialog."""

from __future__ import annotations

import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import classroom as rooms
from components.classroom import PRIVATE, Classroom, ClassState, Room, qr_code, shown
from components.i18n import LANGUAGES
from components.limits import MAX_CLASSES, MAX_FOLLOWERS
from components.render import Renderer, View
from components.session_events import VIEWS
from components.share.address import Opening, Places
from components.share.handlers import link_menu
from components.state.session import Session
from components.state.store import SessionStore
from components.state.text import Selection
from gpt import Generation, get_model
from tests.components.drawing import as_read

OPENINGS = dict.fromkeys(LANGUAGES, Opening((0, 0), "stories", Selection()))
PLACES = Places(("playground", "why"), {}, OPENINGS, "stories")
BASE = "https://a.org/gpt/"


class Page:
    """A teacher's page, and an app with the routes of a class."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.drawn: list[str] = []
        self.renderer, self.store = Renderer(), SessionStore()
        text = View("text", self._draw)
        menu = View("share-link", link_menu({}).draw)
        self.renderer.add("", [text, menu, *VIEWS, View("class", lambda s: {"shown": shown(s)})])
        self.session = Session(as_read(get_model(), "The dog ran"), "The dog ran")
        self.store.put("a" * 32, self.session)
        events = type("Events", (), {"store": self.store, "renderer": self.renderer})()
        self.classroom = Classroom(events, PLACES, is_open)
        self.client = TestClient(Starlette(routes=rooms.ROUTES), raise_server_exceptions=True)
        self.renderer.start(self.session)
        self.show()

    def _draw(self, s):
        self.drawn.append(s.language)
        return {"text": s.text.document.text, "language": s.language}

    def show(self) -> None:
        """Send a frame to the teacher's page."""
        self.renderer.frame(self.session)

    def ask(self, **sent):
        list(self.classroom.handle(self.session, sent))
        self.show()
        return self.session.state(ClassState).answer

    def follow(self, page="1", seen="", language="en"):
        code = self.session.state(ClassState).room.code
        query = {"page": page, "seen": seen, "language": language}
        answer = self.client.get(f"/{rooms.FOLDER}/{code}", params=query)
        return answer.json() if answer.status_code == 200 else answer.status_code


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr(rooms, "_rooms", {})  # other tests' pages are still followed
    monkeypatch.setattr(rooms, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(rooms, "DRAW_SECONDS", 0)
    page = Page()
    yield page
    page.session.close()


def test_followers_in_one_language_share_a_frame_drawn_once_and_then_changes(page):
    page.ask(do="room", on=True, base=BASE)
    page.drawn.clear()
    first = page.follow()
    assert [page.follow(name) for name in "23"] == [first, first]
    assert page.drawn == ["en"]
    assert page.follow("4", language="zh")["frames"][0]["views"]["text"]["language"] == "zh"
    assert first["frames"][0]["views"]["text"]["text"] == "The dog ran"
    seen = f"{first['epoch']}.{first['n']}"
    assert page.follow(seen=seen) == 204  # nothing new
    page.session.document.append_text(" home")
    page.session.document.read()
    page.show()
    [frame] = page.follow(seen=seen)["frames"]
    assert (frame["base"], frame["views"]["text"]["text"]) == (first["n"], "The dog ran home")
    assert [each["n"] for each in page.follow("5")["frames"]] == [first["n"], frame["n"]]  # a follower who joins later
    assert page.drawn == ["en", "zh", "en", "en"]  # the second "en" is the teacher's own frame


def test_private_states_of_the_teacher_are_not_sent_but_a_sequence_is(page):
    page.ask(do="start", text="tab=why|Why?|为什么？")
    page.ask(do="links", base=BASE)
    page.ask(do="room", on=True, base=BASE)
    frame = page.follow()["frames"][0]
    assert frame["views"].keys() == {"class", "share-link", "text"}
    assert frame["views"]["class"]["shown"]["stop"] == {"at": 0, "n": 1, "title": "Why?"}
    assert frame["views"]["class"]["shown"]["answer"] is None
    assert page.session.id not in json.dumps(frame)


def test_a_class_has_sixty_pages_and_the_server_few_classes(page, monkeypatch):
    page.ask(do="room", on=True, base=BASE)
    assert all(type(page.follow(f"{n:x}")) is dict for n in range(1, MAX_FOLLOWERS + 1))
    assert page.follow("ffff") == 409
    assert type(page.follow("3c")) is dict  # one of the followers
    code = page.session.state(ClassState).room.code
    assert page.client.get(f"/{rooms.FOLDER}/{code}/pages").json() == MAX_FOLLOWERS
    others = [Session(None, id=f"{n:032x}") for n in range(MAX_CLASSES - 1)]
    for other in others:
        Room(other, page.renderer, lambda: None, PRIVATE)
    with pytest.raises(ValueError, match=f"{MAX_CLASSES} pages"):
        Room(Session(None, id="f" * 32), page.renderer, lambda: None, PRIVATE)
    page.ask(do="room", on=False, base=BASE)
    assert page.client.get(f"/{rooms.FOLDER}/{code}").status_code == 404
    for other in others:
        other.close()
    assert not rooms._rooms


def test_a_page_that_goes_on_alone_has_a_text_of_its_own_and_a_whole_frame(page):
    room = page.ask(do="room", on=True, base=BASE)["room"]
    page.session.tab = "why"
    page.session.select(position=1)
    own = Session(Generation(get_model(), "Tom"), "Tom", id="b" * 32)
    page.renderer.start(own)
    page.renderer.frame(own)
    list(page.classroom.handle(own, {"do": "alone", "code": room["code"]}))
    frame = json.loads(page.renderer.frame(own))
    assert (frame["base"], frame["views"]["text"]["text"]) == (None, "The dog ran")
    assert (own.tab, own.selection.position) == ("why", 1)
    own.document.append_text(" away")
    assert page.session.document.text == "The dog ran"


def test_following_is_off_unless_the_app_says_so():
    page = Page(is_open=False)
    assert page.ask(do="links", base=BASE)["open"] is False
    with pytest.raises(ValueError, match="--class"):
        page.ask(do="room", on=True, base=BASE)


def test_links_are_short_lead_to_the_page_and_are_drawn_as_codes(page, monkeypatch):
    answer = page.ask(do="links", base=BASE, text="tab=why|Why?")
    client = TestClient(Starlette(routes=rooms.ROUTES), follow_redirects=False)
    for name, wanted in (("page", answer["page"]["query"]), ("stops", "class=tab%3Dwhy%7CWhy%3F")):
        url = answer[name]["url"]
        assert len(url) < len(BASE) + 10
        assert client.get(url.removeprefix("https://a.org/gpt")).headers["location"] == f"../?{wanted}"
        assert answer[name]["qr"] == qr_code(url)
    assert page.ask(do="links", base=BASE, text="#")["problem"]
    assert page.ask(do="links", base="javascript:x") == page.session.state(ClassState).answer  # unchanged
    monkeypatch.setattr(rooms, "MAX_SHORT_LINKS", 1)
    newest = rooms.shorten("tab=loss")
    assert client.get(f"/{newest}").headers["location"] == "../?tab=loss"
    assert client.get(answer["page"]["url"].removeprefix("https://a.org/gpt")).headers["location"] == "../"
