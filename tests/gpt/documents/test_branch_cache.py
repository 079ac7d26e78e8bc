"""Activations of branches: computed once, kept within the byte limit, exact after any sequence of actions."""

from __future__ import annotations

import pytest
import torch

from gpt import Generation, SamplingParams
from tests.gpt.documents.fresh_document import GREEDY, WARM, assert_equals_fresh
from tests.gpt.fake_models import forced_model, tiny_model

NODE_BYTES = (3 * 2 * 16 + 16) * 4  # float32 keys, values and queries of two layers, and a final-norm state


@pytest.fixture
def document():
    return Generation(tiny_model(), "the cat")


def cached_nodes(document):
    return [node for span in document._branches.spans.values() for node in span.nodes]


def test_a_branch_continues_as_a_fresh_document_with_the_same_text(family):
    document = Generation(family, "the cat")
    list(document.steps(WARM, 6))
    document.append(99, after=4)
    document.append_text("th a")
    other = SamplingParams(temperature=2.0, seed=9)
    typed = Generation(document.loaded, list(document.ids))
    assert [s.token_id for s in document.steps(other, 6)] == [s.token_id for s in typed.steps(other, 6)]
    assert_equals_fresh(document)


def test_neither_a_common_prefix_nor_a_branch_returned_to_is_computed_again():
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
def test_random_branching_keeps_logits_exact_and_each_state_once_within_the_limit(tokens):
    document = Generation(tiny_model(), "the cat", max_branch_bytes=tokens * NODE_BYTES)
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
        kept = cached_nodes(document)
        assert len(kept) == len(set(kept))
        assert not set(kept) & (set(document.path) | document.evicted)
        assert document._branches.n_bytes == len(kept) * NODE_BYTES <= tokens * NODE_BYTES
    assert bool(document.evicted) == (tokens == 6)


@pytest.mark.parametrize("tokens", [0, 1, 5])
def test_the_oldest_branch_is_evicted_first_and_computed_again_on_return(tokens):
    loaded = tiny_model()
    document = Generation(loaded, "the cat", max_branch_bytes=tokens * NODE_BYTES)
    old = []
    for letter in "xyz":
        document.append_text(letter + "ab", after=2)
        document.read()
        old.append(document.path[3:])
    assert set(old[0]) <= document.evicted
    assert (set(old[1]) <= document.evicted) == (tokens < 3)
    document.switch(old[0][-1])
    assert_equals_fresh(document)
    assert not set(old[0]) & document.evicted
    assert document._branches.n_bytes <= tokens * NODE_BYTES


@pytest.mark.parametrize("nodes", [0, 2, 1000])
def test_n_bytes_counts_the_memory_of_the_text_and_the_branches(nodes, monkeypatch):
    monkeypatch.setattr("gpt.cache.BLOCK", 4)
    document = Generation(tiny_model(), "abcd", max_branch_bytes=nodes * NODE_BYTES)
    assert document.n_bytes == 0
    document.read()
    assert document.n_bytes == 4 * NODE_BYTES
    document.append_text("xyz", after=1)
    assert document.n_bytes == (4 + min(2, nodes)) * NODE_BYTES  # the memory of four positions is kept
    document.read()
    assert document.n_bytes == (8 + min(2, nodes)) * NODE_BYTES
    document.switch(3)
    assert (document.n_read, document.n_bytes) == ((4, 11 * NODE_BYTES) if nodes > 3 else (2, 8 * NODE_BYTES))


def test_reading_below_n_read_is_consistent_while_the_text_grows(document):
    document.read()
    n, version = document.n_read, document.version
    ids, path, states = document.ids[:n], document.path[:n], document.states()[:n].clone()
    weights, tokens = document.attn_weights(1), list(document.tree.tokens)
    for _ in document.steps(WARM, 8):
        assert (document.ids[:n], document.path[:n], document.tree.tokens[: len(tokens)]) == (ids, path, tokens)
        assert torch.equal(document.states()[:n], states)
        assert len(document.ids) == len(document.path) == document.n_read + 1
    torch.testing.assert_close(document.attn_weights(1)[:n, :n], weights)
    assert document.version != version


def test_branches_of_a_text_whose_activations_are_taken_are_left_behind():
    loaded = tiny_model()
    other, document = Generation(loaded, [1, 2, 3, 4, 5, 6]), Generation(loaded, [1, 2, 3, 7, 8, 9])
    other.read()
    other.append(99, after=2)  # nodes 3 to 5 are now a branch
    document.take_activations(other)
    assert document.n_read == 3
    document.append(10, after=2)
    document.switch(5)  # nodes 3 to 5 of another tree
    document.read()
    assert_equals_fresh(document)
