"""The address names what is shown; links and sequences of stops restore it."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from components.i18n import LANGUAGES
from components.session_events import restore_session, saved_session
from components.share.address import LinkedPage, Opening, Places, address, navigate, page_values
from components.share.handlers import answer_files, json_file
from components.share.link import decode, encode
from components.share.opening import open_link, open_stop
from components.share.sequence import MAX_STOPS, SEQUENCES, SequenceState, open_sequence, parse
from components.state.adoption import adopt
from components.state.hidden import hidden_values, hide
from components.state.session import Session
from components.state.snapshot import Message
from components.state.text import Selection
from components.tabs.challenges.tab import challenge_key, open_challenge
from components.tabs.playground import editing, generation
from gpt import Generation, get_model
from gpt.documents.document import History
from gpt.documents.edit_text import parse_edits
from tests.components.drawing import as_read, spoken_in

TABS = ("playground", "why", "lessons")
OPENING = Selection(layer=3, head=2)


@pytest.fixture
def session():
    return Session(as_read(get_model(), "The dog ran"), "The dog ran", OPENING)


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
    list(open_link(opened, whole, places))
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
    assert named(session, places)["lesson"] == page_values(session.snapshot(), places.pages)["lesson"] == "loss"
    assert go(session, places, "", 30) == ("playground", OPENING)
    assert (session.film, list(session.document.ids)) == (None, ids)


def test_back_undoes_a_change_of_the_model_and_forward_brings_it_again(session, places):
    first = list(session.document.ids)
    list(generation.pick_model(session, "untrained"))
    assert named(session, places)["model"] == "untrained"
    go(session, places, "", 10)
    assert (session.model, list(session.document.ids)) == ("stories", first)
    assert "model" not in named(session, places)
    go(session, places, "model=untrained", 20)
    assert session.document.loaded.name == "untrained"


def test_an_address_without_a_text_is_of_the_opening_of_the_language(session, places):
    poems = Session(as_read(get_model("poems"), "春风吹细雨，"), "春风吹细雨，", Selection(layer=1, head=5))
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


OPEN_TABS = ("playground", "inside", "lessons")


@pytest.fixture
def linked():
    document = as_read(get_model(), "The dog ran")
    document.history = History()
    return Session(document)


def follow(linked, query):
    pages = {"lesson": LinkedPage("lessons", lambda linked, key: key == "loss", lambda s: None)}
    list(open_link(linked, query, Places(OPEN_TABS, pages, {}, "stories")))


def test_a_text_that_a_person_has_worked_on_comes_back_when_the_one_of_a_link_is_undone(linked):
    follow(linked, "prompt=The+cat&length=2&seed=1")
    assert linked.document.text.startswith("The cat")
    assert not linked.undo_stack, "nobody had done anything to the example"
    linked.document.append(linked.document.loaded.tokenizer.encode(" sat")[0])
    linked.document.read()
    text = linked.document.text
    follow(linked, "prompt=A+bird&length=2&seed=1")
    assert linked.document.text.startswith("A bird")
    while linked.document.can_undo:
        editing.undo(linked)
    editing.undo(linked)
    assert linked.document.text == text


def test_a_link_carries_the_hidden_words_and_that_attention_is_off_and_one_to_another_text_shows_all(linked):
    hide(linked, [1, 99, "x"])
    linked.attention_off = True
    query = encode(page_values(linked.snapshot(), {}))
    opened = Session(linked.document.copy())
    follow(opened, query)
    assert hidden_values(opened.snapshot()) == {"hidden": (1,), "attention": "off"}
    follow(opened, "tab=inside")
    assert hidden_values(opened.snapshot()) == {"hidden": (1,), "attention": "off"}
    follow(opened, "prompt=The+dog+ran&text=")
    assert hidden_values(opened.snapshot()) == {}
    follow(opened, "hidden=0-1-2-3-70&attention=on")
    assert (hidden_values(opened.snapshot()), opened.document.text) == ({}, "The dog ran")
    assert "attention" in opened.notice.values["note"]


def test_a_reload_carries_what_is_hidden_and_the_stop_of_a_class_and_a_file_what_is_hidden(linked):
    hide(linked, [1])
    linked.attention_off = True
    open_sequence(linked, "first-lesson", 2)
    again, kept = Session(None), json.dumps(saved_session(linked.snapshot()))
    assert restore_session(again, kept, ["why"])
    assert again.state(SequenceState) == linked.state(SequenceState)
    assert hidden_values(again.snapshot()) == {"hidden": (1,), "attention": "off"}
    text = json_file(linked.document, **hidden_values(linked.snapshot())).content
    opened = Session(None)
    list(answer_files(opened, {"what": "open", "name": "a.json", "text": text, "size": len(text)}))
    assert hidden_values(opened.snapshot()) == {"hidden": (1,), "attention": "off"}


def test_invalid_parts_of_a_link_are_named_and_the_rest_is_followed(linked):
    for query, names in (
        ("model=../../etc/passwd&text=c1&temperature=hot&tab=%3Cscript%3E&layer=99", "tab, temperature, model, text"),
        ("text=2_c99999999", "text"),
    ):
        follow(linked, f"prompt=The+dog&seed=1&length=2&{query}")
        assert names in linked.notice.values["note"]
        assert (linked.prompt, linked.settings.seed) == ("The dog", "1")
    follow(linked, "prompt=The+dog&text=")
    assert linked.notice is None


PAGES = {"challenge": LinkedPage("challenges", open_challenge, challenge_key)}
OPENINGS = dict.fromkeys(LANGUAGES, Opening((0, 0), "stories", Selection(layer=3)))
PLACES = Places(("playground", "why", "change", "inside", "challenges"), PAGES, OPENINGS, "stories")


def opened_at(query, session=None):
    session = session or Session(Generation(get_model(), "The dog ran"), "The dog ran")
    list(open_link(session, query, PLACES))
    return session


def test_a_stop_is_an_address_and_a_title_in_each_language():
    stops = parse("# remark\n\n https://a.org/b/?tab=why&lang=zh&class=x&prompt=a%20b | Why? | 为什么？\ntab=loss|\n")
    assert [stop.query for stop in stops] == ["tab=why&prompt=a+b", "tab=loss"]
    assert [spoken_in(language, getattr, stops[0], "title") for language in LANGUAGES] == ["Why?", "为什么？"]
    assert spoken_in("zh", getattr, stops[1], "title") == "tab=loss"
    for text in ("", "# nothing", "tab=why|a\n" * (MAX_STOPS + 1)):
        with pytest.raises(ValueError, match=r"This sequence has (0|41)"):
            parse(text)


def test_the_sequence_that_is_there_has_eight_stops_whose_addresses_say_only_what_exists():
    stops = parse(SEQUENCES["first-lesson"])
    assert len(stops) == 8
    for stop in stops:
        values, refused = decode(stop.query)
        assert values
        assert refused == []
        assert len(stop.titles) == len(LANGUAGES)
        parse_edits(values.get("edits", ""), get_model().model).check(get_model().model.config)
        session = opened_at(stop.query)
        assert session.notice is None, stop
        assert session.tab == values.get("tab", session.tab)


def test_a_link_opens_a_stop_the_address_names_it_and_the_next_one_begins_anew():
    session = opened_at("class=first-lesson&stop=3")
    assert session.tab == "change"
    assert session.edits.attn_scale
    assert parse_qs(address(session.snapshot(), PLACES))["stop"] == ["3"]
    list(open_stop(session, 1, PLACES))
    assert (session.tab, session.edits.attn_scale, session.state(SequenceState).at) == ("playground", {}, 1)
    for _ in open_stop(session, 8, PLACES):  # no such stop
        pass
    assert session.state(SequenceState).at == 1
    session.tab = "why"
    assert opened_at("class=first-lesson", session).tab == "playground"  # in a session that showed something else
    again = opened_at(address(session.snapshot(), PLACES))
    assert again.state(SequenceState) == session.state(SequenceState)
    assert again.document.ids == session.document.ids


def test_a_sequence_stands_in_the_link_itself_and_one_without_stops_is_refused():
    session = opened_at("class=tab%3Dwhy%7CWhy%3F%0Atab%3Dinside%7CInside&stop=2")
    assert session.tab == "inside"
    assert len(session.state(SequenceState).stops) == 2
    refused = opened_at("class=%23&prompt=Tom+had&text=")
    assert "class" in str(refused.notice)
    assert refused.document.text == "Tom had"
