"""Sequences of stops: parsed from a file, opened by a link, and visited one by one."""

from urllib.parse import parse_qs

import pytest

from components.i18n import LANGUAGES
from components.share.address import LinkedPage, Opening, Places, address
from components.share.link import decode
from components.share.opening import open_link, open_stop
from components.share.sequence import MAX_STOPS, SEQUENCES, SequenceState, parse
from components.state.selection import Selection
from components.state.session import Session
from components.tabs.challenges.tab import challenge_key, open_challenge
from gpt import Generation, get_model
from gpt.documents.edit_text import parse_edits
from tests.components.drawing import spoken_in

PAGES = {"challenge": LinkedPage("challenges", open_challenge, challenge_key)}
OPENINGS = dict.fromkeys(LANGUAGES, Opening((0, 0), "stories", Selection(layer=3)))
PLACES = Places(("playground", "why", "change", "inside", "challenges"), PAGES, OPENINGS, "stories")


def opened(query, session=None):
    session = session or Session(Generation(get_model(), "The dog ran"), "The dog ran")
    for _ in open_link(session, query, PLACES.tabs, PAGES):
        pass
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
        session = opened(stop.query)
        assert session.notice is None, stop
        assert session.tab == values.get("tab", session.tab)


def test_a_link_opens_a_stop_the_address_names_it_and_the_next_one_begins_anew():
    session = opened("class=first-lesson&stop=3")
    assert session.tab == "change"
    assert session.edits.attn_scale
    assert parse_qs(address(session.snapshot(), PLACES))["stop"] == ["3"]
    for _ in open_stop(session, 1, PLACES):
        pass
    assert (session.tab, session.edits.attn_scale, session.state(SequenceState).at) == ("playground", {}, 1)
    for _ in open_stop(session, 8, PLACES):  # no such stop
        pass
    assert session.state(SequenceState).at == 1
    session.tab = "why"
    assert opened("class=first-lesson", session).tab == "playground"  # in a session that showed something else
    again = opened(address(session.snapshot(), PLACES))
    assert again.state(SequenceState) == session.state(SequenceState)
    assert again.document.ids == session.document.ids


def test_a_sequence_stands_in_the_link_itself_and_one_without_stops_is_refused():
    session = opened("class=tab%3Dwhy%7CWhy%3F%0Atab%3Dinside%7CInside&stop=2")
    assert session.tab == "inside"
    assert len(session.state(SequenceState).stops) == 2
    refused = opened("class=%23&prompt=Tom+had&text=")
    assert "class" in str(refused.notice)
    assert refused.document.text == "Tom had"
