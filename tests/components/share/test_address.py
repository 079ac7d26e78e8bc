"""The address names what is shown and restores it."""

from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from components.i18n import LANGUAGES
from components.share.address import LinkedPage, Opening, Places, address, navigate
from components.share.opening import open_link
from components.state.adoption import adopt
from components.state.selection import NEWEST, Selection
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.playground import generation
from gpt import Generation, get_model

TABS = ("playground", "why", "lessons")
OPENING = Selection(layer=3, head=2)


@pytest.fixture
def session():
    document = Generation(get_model(), "The dog ran")
    document.read()
    return Session(document, "The dog ran", OPENING)


@pytest.fixture
def places(session):
    opened = []

    def open_lesson(session, key):
        opened.append(key)
        return key == "loss"

    openings = dict.fromkeys(LANGUAGES, Opening.of(session))
    pages = {"lesson": LinkedPage("lessons", open_lesson, lambda s: opened[-1] if opened else None)}
    return Places(TABS, pages, openings, "stories")


def named(session, places):
    return {name: value for name, (value,) in parse_qs(address(session.snapshot(), places)).items()}


def go(session, places, query, at):
    navigate(places, session, {"query": query, "at": at})
    return session.tab, session.selection


def test_a_page_as_it_opens_has_a_bare_address_and_tab_selection_and_film_stand_in_it(session, places):
    assert named(session, places) == {}
    session.tab, session.film = "why", "mix"
    session.select(position=1, layer=5)
    assert named(session, places) == {"tab": "why", "film": "mix", "position": "1", "layer": "5", "head": "2"}


def test_the_visitor_s_own_text_stands_in_the_address_once_it_is_finished_unless_it_is_too_long(
    session, places, monkeypatch
):
    session.document.append_text(session.document.tokenizer.encode(" home"))
    session.document.read()
    whole = address(session.snapshot(), places)
    opened = Session(session.document.copy())
    for _ in open_link(opened, whole, TABS, places.pages):
        pass
    assert opened.document.ids == session.document.ids
    turn = session.lock.begin()
    assert named(session, places) == {"layer": "3", "head": "2"}
    session.lock.end(turn)
    monkeypatch.setattr("components.share.address.MAX_LINK", len(whole) - 1)
    assert named(session, places) == {"layer": "3", "head": "2"}


def test_back_shows_tab_selection_and_film_again_and_leaves_the_text(session, places):
    ids = list(session.document.ids)
    shown = Selection(position=1, layer=5, head=None)
    assert go(session, places, "tab=why&position=1&layer=5&film=mix&prompt=no", 10) == ("why", shown)
    assert session.film == "mix"
    assert go(session, places, "lesson=loss", 20) == ("lessons", OPENING)
    assert named(session, places)["lesson"] == "loss"
    assert go(session, places, "", 30) == ("playground", OPENING)
    assert (session.film, list(session.document.ids)) == (None, ids)


def test_back_undoes_a_change_of_the_model_and_forward_brings_it_again(session, places):
    first = list(session.document.ids)
    for _ in generation.pick_model(session, "untrained"):
        pass
    session.lock.end(session.pending.turn)
    session.drop_pending()
    session.document.read()
    assert named(session, places)["model"] == "untrained"
    go(session, places, "", 10)
    assert (session.model, list(session.document.ids)) == ("stories", first)
    assert "model" not in named(session, places)
    go(session, places, "model=untrained", 20)
    assert session.document.loaded.name == "untrained"


def test_an_address_with_unknown_names_shows_the_rest(session, places):
    config = session.document.loaded.model.config
    query = "tab=none&lesson=99&position=1000&layer=999&head=999&shading=none&film=X"
    last = Selection(NEWEST, config.n_layer - 1, config.n_head - 1)
    assert go(session, places, query, 10) == ("playground", last)
    before = session.snapshot()
    for wrong in (
        {},
        {"query": 1, "at": 20},
        {"query": "tab=why", "at": "20"},
        {"query": "tab=why", "at": float("nan")},
    ):
        navigate(places, session, wrong)
    navigate(places, session, {"query": 1, "at": 20})
    assert session.snapshot() == before


def test_an_address_without_a_text_is_of_the_opening_of_the_language(session, places):
    document = Generation(get_model("poems"), "春风吹细雨，")
    document.read()
    poems = Session(document, "春风吹细雨，", Selection(layer=1, head=5))
    places = replace(places, openings=places.openings | {"zh": Opening.of(poems)})
    poems.language, poems.link_opened = "zh", True
    assert address(poems.snapshot(), places) == ""
    session.link_opened = True
    session.document = Generation(session.loaded, "Tom had")
    session.document.read()
    assert named(session, places)["model"] == "stories"  # in another language, the other model would read the text
    adopt(poems, session.document, "The dog ran", Message("status.ready"))
    navigate(places, poems, {"query": "", "at": poems.navigated + 1})
    assert poems.document.loaded.name == "poems"
    assert poems.selection == replace(Selection(layer=1, head=5), position=poems.selection.position)
