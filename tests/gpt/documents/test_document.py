"""Edits of a document: actions, undo and redo, branches, retyped text."""

from __future__ import annotations

import random

import pytest
import torch

from gpt import Generation, SamplingParams
from gpt.documents.document import CHOSEN, TYPED, Origin
from tests.gpt.documents.fresh_document import GREEDY, WARM, all_logits, assert_equals_fresh, state
from tests.gpt.fake_models import forced_model, tiny_model


@pytest.fixture
def document():
    return Generation(tiny_model(), "the cat")


def test_undo_then_redo_is_identity_for_every_action(document):
    actions = [
        lambda: document.step(WARM),
        lambda: list(document.steps(WARM, 4)),
        lambda: document.append(99),
        lambda: document.append_text(" a the"),
        lambda: document.go_back(3),
        lambda: document.append(120, after=2),
        lambda: document.switch(7),
        lambda: document.append_text("xyz", after=1),
    ]
    states = [state(document)]
    for action in actions:
        action()
        states.append(state(document))
        assert states[-1] != states[-2]
    for back in reversed(states[:-1]):
        document.undo()
        assert state(document) == back
        assert_equals_fresh(document)
    assert not document.can_undo
    for forth in states[1:]:
        document.redo()
        assert state(document) == forth
        assert_equals_fresh(document)
    assert not document.can_redo


def test_an_action_after_undo_discards_redo_but_the_undone_text_stays_in_the_tree(document):
    document.append(99)
    undone = document.path[-1]
    document.undo()
    document.append(100)
    assert not document.can_redo
    document.switch(undone)
    assert document.ids[-1] == 99


def test_deleting_what_was_typed_discards_redo(document):
    n = len(document.ids)
    document.append(99)
    document.retype([5, 6], n + 1)
    document.go_back(n + 1)
    document.undo()
    document.retype([], n + 1)
    assert not document.can_redo


def test_undo_between_two_steps_of_a_run_does_not_undo_the_action_before(document):
    document.append(99)
    steps = document.steps(WARM, 5)
    next(steps), next(steps)
    document.undo()
    before = state(document)
    next(steps)
    document.undo()
    assert state(document) == before


def test_origin_and_draw_of_typed_sampled_and_chosen_tokens():
    document = Generation(tiny_model(), "the cat")
    n = document.n_prompt
    document.append_text(" a")
    step = document.step(WARM)
    document.append(7)
    assert [document.origin(position) for position in range(n + 1)] == [TYPED] * (n + 1)
    assert document.origin(n + 1) == Origin("sampled", WARM)
    assert document.draw(n + 1) == step.draw
    assert document.origin(n + 2) == CHOSEN
    assert document.draw(n + 2) is None


def test_a_step_without_a_seed_records_the_seed_it_used(document):
    step = document.step(SamplingParams(temperature=2.0))
    position = step.position
    assert document.draw(position) == step.draw
    again = Generation(document.loaded, "the cat").step(document.origin(position).params)
    assert again.token_id == step.token_id


def test_a_token_with_the_same_id_and_origin_is_the_same_node(document):
    list(document.steps(WARM, 4))
    n = len(document.tree)
    tip = document.path[-1]
    document.go_back(document.n_prompt - 1)
    list(document.steps(WARM, 4))
    assert (len(document.tree), document.path[-1]) == (n, tip)
    document.go_back(document.n_prompt - 1)
    document.append(document.tree.tokens[document.tree.children()[document.path[-1]][0]].token_id)
    assert len(document.tree) == n + 1


def test_typed_text_is_appended_whole_or_not_at_all(document):
    before = state(document), len(document.tree)
    with pytest.raises(ValueError, match=r"30 tokens do not fit: the context of 24 has room for 20"):
        document.append_text("a" * 30)
    with pytest.raises(ValueError, match="260"):
        document.append_text([1, 2, 260])
    assert (state(document), len(document.tree)) == before
    document.append_text("")
    assert (state(document), len(document.tree)) == before
    assert not document.can_undo


@pytest.mark.parametrize("position", [-1, 5, 100])
def test_positions_and_tokens_that_do_not_exist_are_refused(document, position):
    for action in (document.go_back, document.origin, document.draw, lambda p: document.append(1, after=p)):
        with pytest.raises(ValueError, match=f"position {position} does not exist"):
            action(position)
    with pytest.raises(ValueError, match=f"token number {position}"):
        document.switch(position)


def test_a_character_cut_at_the_end_of_a_run_is_completed_by_the_next_run():
    euro = "€".encode()
    document = Generation(forced_model([0, *euro, 97, 97]), "ab")
    assert [step.text for step in document.steps(GREEDY, 2)] == ["", "\ufffd"]
    assert [step.text for step in document.steps(GREEDY, 2)] == ["€", "a"]
    assert document.text == "ab€a"


def test_a_copy_has_the_branches_and_an_independent_history(document):
    list(document.steps(WARM, 3))
    document.append(9, after=4)
    before = state(document)
    other = document.copy()
    other.undo()
    other.append_text("zz")
    assert state(document) == before
    assert_equals_fresh(other)
    document.undo()
    assert_equals_fresh(document)


def test_a_branch_continues_as_a_fresh_document_with_the_same_text(family):
    document = Generation(family, "the cat")
    list(document.steps(WARM, 6))
    document.append(99, after=4)
    document.append_text("th a")
    other = SamplingParams(temperature=2.0, seed=9)
    typed = Generation(document.loaded, list(document.ids))
    assert [s.token_id for s in document.steps(other, 6)] == [s.token_id for s in typed.steps(other, 6)]
    assert_equals_fresh(document)


def test_a_common_prefix_is_not_computed_again():
    loaded = forced_model([97] * 24)
    document = Generation(loaded, "abcdef")
    list(document.steps(GREEDY, 4))
    document.read()
    first = document.path[-1]
    document.append_text("xyz", after=3)
    document.read()
    assert loaded.model.calls == [6, 1, 1, 1, 1, 3]
    document.switch(first)
    document.read()
    assert loaded.model.calls[6:] == [6], "what follows the fourth token"


def test_random_branching_keeps_logits_exact():
    document = Generation(tiny_model(), "the cat")
    torch.manual_seed(11)
    for _ in range(60):
        move = int(torch.randint(4, ()))
        if move == 0:
            document.switch(int(torch.randint(len(document.tree), ())))
        elif move == 1 and not document.full:
            document.append(int(torch.randint(256, ())))
        elif move == 2:
            document.append_text("ab", after=int(torch.randint(min(20, len(document.ids)), ())))
        elif not document.full:
            document.step(WARM)
        assert_equals_fresh(document)


def test_reading_below_n_read_is_consistent_while_the_text_grows(document):
    document.read()
    n = document.n_read
    ids, path, states = document.ids[:n], document.path[:n], document.states()[:n].clone()
    weights, tokens = document.attn_weights(1), list(document.tree.tokens)
    for _ in document.steps(WARM, 8):
        assert (document.ids[:n], document.path[:n], document.tree.tokens[: len(tokens)]) == (ids, path, tokens)
        assert torch.equal(document.states()[:n], states)
        assert len(document.ids) == len(document.path) == document.n_read + 1
    torch.testing.assert_close(document.attn_weights(1)[:n, :n], weights)


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


def test_undo_returns_to_a_typed_text_that_was_left_in_between(written):
    written.retype([1, 2], 9)
    typed = state(written)
    written.go_back(1)
    written.switch(typed[1][-1])
    written.retype([3], 9)
    written.undo()
    assert state(written) == typed


def test_the_prompt_of_a_text_that_is_nothing_else_changes_and_stays_the_prompt():
    document = Generation(tiny_model(), "the cat")
    for ids, keep in (([1, 2], 2), ([7, 8, 9], 3), ([], 1)):
        document.retype(ids, keep)
        assert document.n_prompt == len(document.ids) == len(document.tree) == keep + len(ids)
        assert not document.can_undo
        assert_equals_fresh(document)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
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
