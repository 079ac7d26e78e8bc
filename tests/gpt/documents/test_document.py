"""Edits of a document: actions, undo and redo, branches, origins."""

from __future__ import annotations

import pytest

from gpt import Generation, SamplingParams
from gpt.documents.document import CHOSEN, MAX_TOKENS, TYPED, Origin, Token, TokenTree
from tests.gpt.documents.fresh_document import GREEDY, WARM, assert_equals_fresh, state
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
    document.append(document.tree.tokens[document.tree.children(document.path[-1])[0]].token_id)
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


def test_a_tree_refuses_cycles_a_second_root_and_too_many_tokens():
    root = Token(1, None, TYPED)
    with pytest.raises(ValueError, match="first token cannot follow another one"):
        TokenTree([Token(1, 0, TYPED)])
    for parent in (None, 1, 2, -1):
        with pytest.raises(ValueError, match="must follow one of 0 to 0"):
            TokenTree([root, Token(2, parent, TYPED)])
    tree = TokenTree([root] + [Token(2, 0, CHOSEN)] * (MAX_TOKENS - 1))
    with pytest.raises(ValueError, match=r"at most 65,536 tokens"):
        tree.add(3, TYPED, 0)
