"""The effect of a link on the session that opens it."""

from __future__ import annotations

import json

import pytest

from components.share.address import LinkedPage, page_values
from components.share.files import json_file
from components.share.handlers import answer_files
from components.share.link import encode
from components.share.opening import open_link
from components.state.hidden import HiddenState, hidden_values, hide
from components.state.saved import restore_session, saved_session
from components.state.selection import NEWEST
from components.state.session import Session
from components.tabs.playground import editing
from gpt import Edits, Generation, get_model
from gpt.documents.document import History

TABS = ("playground", "inside", "lessons")


@pytest.fixture
def session():
    document = Generation(get_model(), "The dog ran")
    document.read()
    document.history = History(document.path[-1])
    return Session(document)


def follow(session, query):
    pages = {"lesson": LinkedPage("lessons", lambda session, key: key == "loss", lambda s: None)}
    for _ in open_link(session, query, TABS, pages):
        pass


def test_a_text_that_a_person_has_worked_on_comes_back_when_the_one_of_a_link_is_undone(session):
    follow(session, "prompt=The+cat&length=2&seed=1")
    assert session.document.text.startswith("The cat")
    assert not session.undo_stack, "nobody had done anything to the example"
    session.document.append(session.document.loaded.tokenizer.encode(" sat")[0])
    session.document.read()
    text = session.document.text
    follow(session, "prompt=A+bird&length=2&seed=1")
    assert session.document.text.startswith("A bird")
    while session.document.can_undo:
        editing.undo(session)
    editing.undo(session)
    assert session.document.text == text


def test_a_link_that_only_looks_leaves_the_text_and_says_what_it_cannot_follow(session):
    text = session.document
    follow(session, "tab=inside&layer=99")
    assert (session.tab, session.document) == ("inside", text)
    assert "layer" in session.notice.values["note"]
    follow(session, "lesson=loss&tab=inside")
    assert (session.tab, session.document) == ("lessons", text)
    follow(session, "lesson=none")
    assert "lesson" in session.notice.values["note"]


def test_a_page_without_a_link_and_one_that_only_shows_another_place_leave_the_rest(session):
    follow(session, "position=1&edits=h0.5%3D0")
    edits = session.edits
    assert edits != Edits()
    follow(session, "")
    follow(session, "tab=inside&lang=zh")
    assert (session.selection.position, session.edits) == (1, edits)
    assert (session.tab, session.language) == ("inside", "zh")
    follow(session, "prompt=A+bird&length=2&seed=1")
    assert (session.selection.position, session.edits) == (NEWEST, Edits())


def test_a_link_carries_the_hidden_words_and_that_attention_is_off_and_one_to_another_text_shows_all(session):
    hide(session, [1, 99, "x"])
    session.change(HiddenState, attention_off=True)
    query = encode(page_values(session.snapshot()))
    opened = Session(session.document.copy())
    follow(opened, query)
    assert hidden_values(opened.snapshot()) == {"hidden": (1,), "attention": "off"}
    follow(opened, "tab=inside")
    assert hidden_values(opened.snapshot()) == {"hidden": (1,), "attention": "off"}
    follow(opened, "prompt=The+dog+ran&text=")
    assert hidden_values(opened.snapshot()) == {}
    follow(opened, "hidden=0-1-2-3-70&attention=on")
    assert (hidden_values(opened.snapshot()), opened.document.text) == ({}, "The dog ran")
    assert "attention" in opened.notice.values["note"]


def test_a_reload_and_a_file_carry_what_is_hidden(session):
    hide(session, [1])
    session.change(HiddenState, attention_off=True)
    again, kept = Session(None), json.dumps(saved_session(session.snapshot()))
    assert restore_session(again, kept, ["why"])
    assert hidden_values(again.snapshot()) == {"hidden": (1,), "attention": "off"}
    text = json_file(session.document, **hidden_values(session.snapshot())).content
    opened = Session(None)
    for _ in answer_files(opened, {"what": "open", "name": "a.json", "text": text, "size": len(text)}):
        pass
    assert hidden_values(opened.snapshot()) == {"hidden": (1,), "attention": "off"}


def test_invalid_parts_of_a_link_are_named_and_the_rest_is_followed(session):
    for query, names in (
        ("model=../../etc/passwd&text=c1&temperature=hot&tab=%3Cscript%3E&layer=99", "tab, temperature, model, text"),
        ("text=2_c99999999", "text"),
    ):
        follow(session, f"prompt=The+dog&seed=1&length=2&{query}")
        assert names in session.notice.values["note"]
        assert (session.prompt, session.settings.seed) == ("The dog", "1")
