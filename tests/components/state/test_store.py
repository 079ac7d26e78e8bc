"""The session store keeps active sessions within its limits and frees the others."""

from __future__ import annotations

import json

import pytest

from components.session_events import restore_session, saved_session
from components.state.example import example, opening
from components.state.session import Session
from components.state.store import SessionStore, is_session_id
from gpt import SamplingParams, get_model
from tests.components.drawing import as_read

IDS = [f"{n:032x}" for n in range(5)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def filled(store: SessionStore, n: int = 3) -> list[Session]:
    sessions = [Session(None) for _ in range(n)]
    for session_id, session in zip(IDS, sessions, strict=False):
        store.put(session_id, session)
    return sessions


@pytest.mark.parametrize("value", ["", "x" * 32, "0" * 31, "0" * 33, None, 5, ["0" * 32], "0" * 31 + "\n"])
def test_only_128_random_bits_are_an_id(value: object) -> None:
    assert not is_session_id(value)
    assert is_session_id("0123456789abcdef" * 2)


def test_what_nobody_used_for_a_while_is_closed(clock: Clock) -> None:
    store = SessionStore(idle_seconds=10, clock=clock)
    first, *_ = filled(store)
    freed: list[str] = []
    first.resources.callback(freed.append, "file")
    clock.now = 8
    store.get(IDS[1])
    clock.now = 11
    store.sweep()
    assert [store.get(session_id) is None for session_id in IDS[:3]] == [True, False, True]
    assert freed == ["file"]


def test_beyond_the_number_the_oldest_idle_one_goes_first(clock: Clock) -> None:
    store = SessionStore(max_sessions=3, clock=clock)
    sessions = filled(store)
    store.get(IDS[0])
    sessions[1].lock.begin()  # generation is running
    store.put(IDS[3], Session(None))
    assert [store.get(session_id) is not None for session_id in IDS[:4]] == [True, True, False, True]


def test_beyond_the_bytes_the_oldest_idle_ones_go(clock: Clock) -> None:
    store = SessionStore(max_bytes=1, clock=clock)
    for session_id in IDS[:2]:
        document = as_read(get_model(), "The dog")
        store.put(session_id, Session(document))
    assert store.get(IDS[0]) is None
    assert store.get(IDS[1]) is not None  # a new session is kept


def test_a_closed_session_holds_nothing_and_its_stream_ends() -> None:
    session = opening(example(get_model()))
    turn = session.lock.begin()
    session.close()
    assert (session.document, session.loaded, session.sent) == (None, None, {})
    with session.lock.writing(turn) as mine:
        assert not mine
    session.close()


# What the page keeps


def test_a_session_is_made_again_of_what_the_page_kept() -> None:
    session = opening(example(get_model()))
    list(session.document.steps(SamplingParams(seed=2), 3))
    session.document.go_back(10)
    session.settings = session.settings.with_value("temperature", 0.3)
    session.select(position=4, layer=1, head=2)
    session.tab = "why"
    kept = json.dumps(saved_session(session.snapshot()))
    again = opening(example(get_model()))
    assert restore_session(again, kept, ["why"])
    assert again.document.ids == session.document.ids
    assert again.document.n_read == len(again.document.ids)
    assert again.document.tree.tokens == session.document.tree.tokens
    assert (again.settings, again.selection, again.tab) == (session.settings, session.selection, "why")


def test_a_cleared_page_keeps_its_model_and_a_tab_that_is_gone_does_not_open() -> None:
    session = opening(example(get_model()))
    session.document, session.model, session.tab = None, "untrained", "gone"
    kept = json.dumps(saved_session(session.snapshot()))
    again = opening(example(get_model()))
    assert restore_session(again, kept, ["why"])
    assert (again.document, again.model, again.loaded, again.tab) == (
        *(None, "untrained", get_model("untrained"), "playground"),
    )


@pytest.mark.parametrize(
    "kept",
    [
        *(
            json.dumps({"document": None, "prompt": "", "model": "", "tab": "", "settings": {}, "selection": selection})
            for selection in ({"layer": -1}, {"layer": "0"}, {"position": 1.5}, {"head": True})
        ),
        "",
        "null",
        "[]",
        "{",
        '{"document": 5}',
        json.dumps(
            {"document": "{}", "prompt": "", "typed": "", "model": "", "tab": "", "settings": {}, "selection": {}}
        ),
        json.dumps({"document": None, "prompt": "", "typed": "", "tab": "", "settings": {"x": 1}, "selection": {}}),
        json.dumps(
            {"document": None, "prompt": "", "typed": "", "tab": "", "settings": [], "selection": {"head": "a"}}
        ),
    ],
)
def test_what_cannot_be_used_leaves_the_session_as_it_was(kept: str) -> None:
    session = opening(example(get_model()))
    before = session.document
    assert not restore_session(session, kept, ["why"])
    assert session.document is before
