"""Edits of a text lose nothing that was written."""

from __future__ import annotations

import pytest

from components.state.example import example
from components.state.session import Session
from components.tabs.playground import box as boxes
from components.tabs.playground import editing, generation
from gpt import Generation, get_model
from gpt.models.registry import add_model, remove_model
from gpt.models.sources import BUNDLED
from gpt.tokenizer import start_ids
from tests.components.tabs.playground_session import drawn, ids, new_session, run, type_in, write


@pytest.fixture(scope="module")
def written() -> Generation:
    return example(get_model())


@pytest.fixture
def session(written: Generation) -> Session:
    return new_session(written)


def test_undo_goes_back_to_the_text_before_and_redo_forward_again(session: Session) -> None:
    first = ids(session)
    dog, cat = write(session, "The dog"), write(session, "The cat")
    editing.undo(session)  # the generated tokens
    assert ids(session) == cat[:-3]
    editing.undo(session)
    assert (ids(session), session.prompt, session.next_prompt) == (dog, "The dog", "The dog")
    assert session.document.n_read == len(dog)
    editing.undo(session)
    assert ids(session) == dog[:-3]
    editing.undo(session)
    editing.undo(session)  # there is nothing left to undo
    assert ids(session) == first
    assert not session.can_undo
    for expected in (dog[:-3], dog, cat[:-3], cat):
        assert session.can_redo
        editing.redo(session)
        assert ids(session) == expected
    assert not session.can_redo


def test_a_bar_under_the_example_can_be_chosen_with_the_first_click(session: Session, written: Generation) -> None:
    place = drawn(session, "bars")["common"]
    editing.choose(session, place | {"token": 5})
    assert ids(session) == [*written.ids, 5]


@pytest.mark.parametrize("typed", ["The dog ran home", "The dog ran. " * 100])
def test_a_bar_of_an_older_text_changes_nothing(session: Session, typed: str) -> None:
    type_in(session, "The dog")
    place = drawn(session, "bars")["common"]
    type_in(session, typed)
    editing.choose(session, place | {"token": 5})
    editing.choose(session, drawn(session, "bars")["common"] | {"token": 5, "behind": place["behind"], "last": None})
    boxes.hide_words(session, {"hidden": [1], "edited": session.edited - 1})
    assert session.next_prompt == typed
    assert not session.hidden.positions


def test_a_bar_can_be_chosen_while_the_text_grows(session: Session) -> None:
    type_in(session, "The dog")
    place = drawn(session, "bars")["common"]
    run(generation.step(session))
    editing.choose(session, place | {"token": 5})
    assert ids(session) == [*ids(session)[:2], 5]


def test_undo_restores_a_cleared_text(session: Session) -> None:
    first = ids(session)
    generation.clear(session)
    assert ids(session) == start_ids(session.document.tokenizer)
    assert drawn(session, "prompt")["unwritten"] is None
    editing.undo(session)
    assert ids(session) == first


def test_another_way_on_leaves_nothing_to_redo(session: Session) -> None:
    write(session, "The dog")
    editing.undo(session)
    editing.undo(session)
    assert session.can_redo
    editing.type_text(session, " red")
    assert not session.can_redo


def test_the_newest_texts_are_kept_and_an_empty_one_is_not(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    write(session, "The dog")
    write(session, "The cat")
    monkeypatch.setattr("components.state.session.MAX_ARCHIVED_BYTES", 3 * len(session.undo_stack[-1].file) + 99)
    write(session, "The bird")
    generation.clear(session)
    generation.clear(session)
    assert [each.prompt for each in session.undo_stack] == ["The dog", "The cat", "The bird"]


def test_a_text_whose_model_is_gone_is_said_and_the_one_on_the_screen_stays(session: Session) -> None:
    session.model = add_model(BUNDLED, name="mine")
    run(generation.written(generation.prepare_prompt)(session, "The dog"))
    session.model = "stories"
    run(generation.written(generation.prepare_prompt)(session, "The cat"))
    here = ids(session)
    editing.undo(session)
    remove_model("mine")
    with pytest.raises(ValueError, match="mine"):
        editing.undo(session)
    assert ids(session) == here[:-3]


def test_going_on_from_an_earlier_token_begins_a_branch_and_keeps_the_rest(session: Session) -> None:
    first = ids(session)
    session.select(position=10)
    run(generation.prepare_here(session))
    run(generation.generate(session))
    assert ids(session)[:11] == first[:11]
    assert len(ids(session)) == 14
    assert len(drawn(session, "tree")["lanes"]) == 2
    editing.undo(session)
    editing.undo(session)
    assert ids(session) == first
