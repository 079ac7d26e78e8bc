"""Text retyped many times while the visitor types: it is a single action, and no trace of earlier versions remains."""

from __future__ import annotations

import random

import pytest

from gpt import Generation
from gpt.documents.document import TYPED
from tests.gpt.documents.fresh_document import WARM, all_logits, assert_equals_fresh, state
from tests.gpt.fake_models import tiny_model


@pytest.fixture
def written():
    """A prompt of 4 tokens, followed by 5 sampled ones, and one undone choice."""
    document = Generation(tiny_model(), "the cat")
    list(document.steps(WARM, 5))
    document.append(99)
    document.undo()
    document.read()
    return document


def test_calls_in_a_row_are_one_action_and_only_the_last_text_stays_in_the_tree(written):
    before, nodes = state(written), len(written.tree)
    for ids, keep in (([1, 2, 3], 7), ([4], 8), ([], 7), ([5, 6], 6)):
        expected = written.ids[:keep] + ids
        written.retype(ids, keep)
        assert written.ids == expected
        assert_equals_fresh(written)
    assert written.ids == [*before[0][:6], 5, 6]
    assert len(written.tree) == nodes + 2
    assert [written.origin(i).kind for i in (5, 6, 7)] == ["sampled", "typed", "typed"]
    written.undo()
    assert state(written) == before
    assert_equals_fresh(written)
    written.redo()
    assert written.ids[-2:] == [5, 6]


def test_calls_that_change_nothing_leave_no_action(written):
    text, n = state(written), len(written.ids)
    written.retype([], n)
    written.retype([1], n)
    written.retype([2], n, joined=False)
    written.undo()
    assert written.ids[n:] == [1]
    written.undo()
    assert state(written) == text
    written.retype([3], n)
    written.retype([], n)  # back to the text before these calls
    assert not written.can_redo
    written.retype([4], n)
    written.undo()
    assert state(written) == text
    written.undo()
    assert written.ids == written.prompt_ids


def test_a_space_at_the_end_is_an_action_like_any_other(written):
    text, n = written.text, len(written.ids)
    written.retype([], n, " ")
    written.retype([1], n, joined=False)
    written.undo()
    assert written.text == f"{text} "
    written.undo()
    assert written.text == text
    written.redo()
    assert written.text == f"{text} "


def test_the_prompt_of_a_text_that_is_nothing_else_changes_and_stays_the_prompt():
    document = Generation(tiny_model(), "the cat")
    for ids, keep in (([1, 2], 2), ([7, 8, 9], 3), ([], 1)):
        document.retype(ids, keep)
        assert document.n_prompt == len(document.ids) == len(document.tree) == keep + len(ids)
        assert not document.can_undo
        assert_equals_fresh(document)


def test_what_does_not_fit_or_exist_changes_nothing(written):
    written.retype([1, 2], 9)
    before, nodes, key = state(written), len(written.tree), written.key
    for ids, keep, said in (([3] * 30, 5, "do not fit"), ([260], 5, "260"), ([1], 0, "position -1"), ([1], 99, "98")):
        with pytest.raises(ValueError, match=said):
            written.retype(ids, keep)
    assert (state(written), len(written.tree), written.key) == (before, nodes, key)


@pytest.mark.parametrize("seed", range(4))
def test_typing_among_other_actions_never_mixes_up_what_was_read(seed):
    chance = random.Random(seed)
    document = Generation(tiny_model(), "the cat sat")
    for _ in range(60):
        document.read()
        match chance.randrange(7):
            case 0:
                document.go_back(chance.randrange(len(document.ids)))
            case 1 if not document.full:
                list(document.steps(WARM, 3))
            case 2 if document.can_undo:
                document.undo()
            case 3 if document.can_redo:
                document.redo()
            case 4:
                document.switch(chance.randrange(len(document.tree)))
            case _:
                keep = chance.randint(1, min(len(document.ids), 20))
                document.retype([chance.randrange(250) for _ in range(chance.randrange(4))], keep)
        assert_equals_fresh(document)
        assert [document.tree.tokens[node].token_id for node in document.path] == document.ids
    assert all(document.tree.depths[node] < document.block_size + 1 for node in range(len(document.tree)))
    assert len(all_logits(document)) == document.n_read
    assert any(token.origin == TYPED for token in document.tree.tokens)
