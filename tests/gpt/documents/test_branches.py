"""The document as a tree: choosing, undo, branches, and what is kept of them."""

from __future__ import annotations

import pytest
import torch

from gpt import Generation, SamplingParams
from gpt.documents.branches import CHOSEN, MAX_TOKENS, TYPED, Branches, History, Origin, Token
from tests.gpt.fake_models import fake_model, forced_model, tiny_model

GREEDY = SamplingParams(temperature=0, seed=0)
WARM = SamplingParams(temperature=3.0, seed=5)
ROW = (3 * 2 * 16 + 16) * 4  # bytes a token: keys, values and queries of two layers, a final state; float32


@pytest.fixture
def document():
    return Generation(tiny_model(), "the cat")


def state(document):
    return list(document.ids), list(document.path), document.text


def all_logits(document):
    document.read()
    return torch.stack([document.logits(position) for position in range(document.n_read)])


def kept_aside(document):
    return [node for piece in document._reading.shelf._pieces.values() for node in piece.nodes]


def assert_like_a_fresh_one(document):
    fresh = Generation(document.loaded, document.ids[: document.loaded.model.config.block_size])
    torch.testing.assert_close(all_logits(document), all_logits(fresh), atol=1e-5, rtol=0)
    for layer in range(document.loaded.model.config.n_layer):
        torch.testing.assert_close(document.attn_weights(layer), fresh.attn_weights(layer), atol=1e-5, rtol=0)


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
        assert_like_a_fresh_one(document)
    assert not document.can_undo
    for forth in states[1:]:
        document.redo()
        assert state(document) == forth
        assert_like_a_fresh_one(document)
    assert not document.can_redo


def test_nothing_can_be_undone_or_redone_where_nothing_was_done(document):
    with pytest.raises(ValueError, match="nothing to undo"):
        document.undo()
    with pytest.raises(ValueError, match="nothing to redo"):
        document.redo()


def test_a_new_action_after_undo_ends_redo_and_leaves_the_undone_text_in_the_tree(document):
    document.append(99)
    undone = document.path[-1]
    document.undo()
    document.append(100)
    assert not document.can_redo
    document.switch(undone)
    assert document.ids[-1] == 99


def test_an_undo_between_two_steps_of_a_run_keeps_what_was_before_the_run(document):
    document.append(99)
    steps = document.steps(WARM, 5)
    next(steps), next(steps)
    document.undo()
    before = state(document)
    next(steps)
    document.undo()
    assert state(document) == before


def test_every_token_says_how_it_came_about():
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


def test_a_step_without_a_seed_records_the_one_that_was_taken(document):
    step = document.step(SamplingParams(temperature=2.0))
    position = step.position
    assert document.draw(position) == step.draw
    again = Generation(document.loaded, "the cat").step(document.origin(position).params)
    assert again.token_id == step.token_id


def test_a_token_that_sampling_had_cut_can_be_chosen():
    rows = torch.full((24, 260), -float("inf"))
    rows[:, 5] = 0.0
    document = Generation(fake_model(rows), "ab")
    assert document.step(SamplingParams(top_k=1, seed=1)).token_id == 5
    document.append(77)
    assert document.ids[-1] == 77


def test_a_branch_goes_on_as_if_it_had_been_typed(document):
    list(document.steps(WARM, 6))
    document.append(99, after=4)
    document.append_text("th a")
    other = SamplingParams(temperature=2.0, seed=9)
    typed = Generation(document.loaded, list(document.ids))
    assert [s.token_id for s in document.steps(other, 6)] == [s.token_id for s in typed.steps(other, 6)]
    assert_like_a_fresh_one(document)


def test_the_common_prefix_is_not_read_again_nor_anything_on_return():
    loaded = forced_model([97] * 24)
    document = Generation(loaded, "abcdef")
    list(document.steps(GREEDY, 4))
    document.read()
    first = document.path[-1]
    document.append_text("xyz", after=3)
    document.read()
    assert loaded.model.calls == [6, 1, 1, 1, 1, 3]
    second = document.path[-1]
    for tip in (first, second, document.tree.path(first)[7], first, document.path[1], second):
        document.switch(tip)
        document.read()
    assert loaded.model.calls == [6, 1, 1, 1, 1, 3]


@pytest.mark.parametrize("tokens", [6, 1000])
def test_branches_left_and_taken_up_again_keep_their_logits_and_no_state_twice(tokens):
    document = Generation(tiny_model(), "the cat", branch_memory=tokens * ROW)
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
        assert_like_a_fresh_one(document)
        kept = kept_aside(document)
        assert len(kept) == len(set(kept))
        assert not set(kept) & (set(document.path) | document.forgotten)
        assert document._reading.shelf.n_bytes == len(kept) * ROW <= tokens * ROW
    assert bool(document.forgotten) == (tokens == 6)


@pytest.mark.parametrize("tokens", [0, 1, 5])
def test_beyond_the_memory_the_oldest_branch_is_forgotten_said_so_and_read_again(tokens):
    loaded = tiny_model()
    document = Generation(loaded, "the cat", branch_memory=tokens * ROW)
    old = []
    for letter in "xyz":
        document.append_text(letter + "ab", after=2)
        document.read()
        old.append(document.path[3:])
    assert set(old[0]) <= document.forgotten
    assert (set(old[1]) <= document.forgotten) == (tokens < 3)
    document.switch(old[0][-1])
    assert_like_a_fresh_one(document)
    assert not set(old[0]) & document.forgotten
    assert document._reading.shelf.n_bytes <= tokens * ROW


def test_each_state_is_kept_once_and_none_is_lost(document):
    list(document.steps(WARM, 6))
    document.read()
    first = list(document.path)
    for letter in "xyz":
        document.append_text(letter + "ab", after=2)
        document.read()
        document.append_text("q", after=4)
        document.read()
    everything = set(range(len(document.tree)))
    assert sorted(kept_aside(document)) == sorted(everything - set(document.path))
    document.switch(first[-3])
    assert document.n_read == len(document.ids)
    assert sorted(kept_aside(document)) == sorted(everything - set(document.path))
    assert not document.forgotten


def test_the_same_token_that_came_about_the_same_way_is_the_same_branch(document):
    list(document.steps(WARM, 4))
    n = len(document.tree)
    tip = document.path[-1]
    document.go_back(document.n_prompt - 1)
    list(document.steps(WARM, 4))
    assert (len(document.tree), document.path[-1]) == (n, tip)
    document.go_back(document.n_prompt - 1)
    document.append(document.tree.tokens[document.tree.children(document.path[-1])[0]].token_id)
    assert len(document.tree) == n + 1


def test_the_tree_says_where_branches_part_and_end(document):
    n = document.n_prompt
    document.append_text("xy")
    document.append(9, after=n - 1)
    assert document.tree.children(n - 1) == [n, n + 2]
    assert document.tree.leaves() == [n + 1, n + 2]
    assert document.tree.path(n + 1) == list(range(n + 2))


def test_of_a_branch_inside_the_prompt_only_what_is_left_of_it_is_prompt(document):
    whole = document.n_prompt
    document.append_text("abc", after=1)
    assert document.n_prompt == 2
    document.undo()
    assert document.n_prompt == whole


def test_typed_text_is_taken_whole_or_not_at_all(document):
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
    with pytest.raises(ValueError, match=f"no token number {position}"):
        document.switch(position)


def test_a_character_cut_by_the_end_of_a_run_is_completed_by_the_next():
    euro = "€".encode()
    document = Generation(forced_model([0, *euro, 97, 97]), "ab")
    assert [step.text for step in document.steps(GREEDY, 2)] == ["", "\ufffd"]
    assert [step.text for step in document.steps(GREEDY, 2)] == ["€", "a"]
    assert document.text == "ab€a"


def test_a_copy_has_the_branches_too_and_undoes_by_itself(document):
    list(document.steps(WARM, 3))
    document.append(9, after=4)
    before = state(document)
    other = document.copy()
    other.undo()
    other.append_text("zz")
    assert state(document) == before
    assert_like_a_fresh_one(other)
    document.undo()
    assert_like_a_fresh_one(document)


def test_a_tree_takes_no_cycles_no_second_root_and_no_end_of_tokens():
    root = Token(1, None, TYPED)
    with pytest.raises(ValueError, match="first token has none before it"):
        Branches([Token(1, 0, TYPED)])
    for parent in (None, 1, 2, -1):
        with pytest.raises(ValueError, match="must follow one of 0 to 0"):
            Branches([root, Token(2, parent, TYPED)])
    tree = Branches([root] + [Token(2, 0, CHOSEN)] * (MAX_TOKENS - 1))
    with pytest.raises(ValueError, match=r"at most 65,536 tokens"):
        tree.add(3, TYPED, 0)


def test_only_sampled_tokens_have_settings_and_these_a_seed():
    for how, params in (("sampled", None), ("sampled", SamplingParams()), ("typed", WARM), ("guessed", None)):
        with pytest.raises(ValueError, match="sampled"):
            Origin(how, params)


def test_actions_that_are_joined_are_undone_together():
    history = History(0)
    history.push(1)
    history.push(2, joined=True)
    history.push(2)
    assert history.undo() == 0
    assert history.redo() == 2
