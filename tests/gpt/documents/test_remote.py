"""Generation through a process boundary, with replicas in this process."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from gpt import Edits, Generation, Hook, Step, generate
from gpt.analysis.patching import patch_from
from gpt.config import RotaryScaling
from gpt.documents import generation
from gpt.documents.generation import stream
from tests.gpt.analysis.concept_dictionary import axis_concepts
from tests.gpt.documents.fake_cluster import deployed
from tests.gpt.documents.fresh_document import WARM, assert_equals_fresh
from tests.gpt.fake_models import tiny_model

PROMPT = list(b"the cat")
MORE = {"activation": "relu", "drop_positions": True, "mlp_scale": {1: 2.0}}  # besides a head and a patch


def exact(steps: Iterable[Step]) -> list[Step]:
    """Return steps without the numbers that depend on how many tokens are read in one pass."""
    return [replace(step, probability=0.0, entropy=0.0) for step in steps]


@pytest.fixture
def here():
    return tiny_model(block_size=64)


def test_a_concept_that_is_turned_down_reads_its_activity_where_the_text_is_made(here):
    here = replace(here, concepts=axis_concepts())
    loaded, _ = deployed(here)
    edits = Edits(steering=tuple(here.concepts.steering(0, feature, -1) for feature in range(0, 16, 2)))
    alone, document = Generation(here, PROMPT, edits=edits), Generation(loaded, PROMPT, edits=edits)
    assert exact(document.steps(WARM, 9)) == exact(alone.steps(WARM, 9))
    assert document.ids != [*PROMPT, *(step.token_id for step in Generation(here, PROMPT).steps(WARM, 9))]


@pytest.mark.parametrize("interval", [0.0, math.inf], ids=["a reply a token", "all in one reply"])
@pytest.mark.parametrize("edited", [False, True], ids=["plain", "edited"])
def test_a_remote_text_equals_a_local_one_in_steps_and_activations(here, edited, interval):
    patches = (patch_from(here.model, list(b"the dog"), "mlp_out", 1, 3),)
    edits = Edits(head_scale={(0, 1): 0.0}, patches=patches, **MORE) if edited else None
    loaded, cluster = deployed(here, interval=interval)
    alone, document = (Generation(each, PROMPT, edits=edits) for each in (here, loaded))
    for count in (9, 4):
        assert exact(document.steps(WARM, count)) == exact(alone.steps(WARM, count))
    alone.read()
    assert (document.ids, document.n_read) == (alone.ids, alone.n_read)
    assert_close(document.states(), alone.states(), atol=1e-5, rtol=0)
    assert_close(document.attn_weights(1), alone.attn_weights(1), atol=1e-5, rtol=0)
    # Nothing crosses the boundary twice.
    assert [request["n_known"] for request in cluster.requests] == [0, len(PROMPT) + 9]
    document.undo()
    assert document.ids == alone.ids[:-4]


@pytest.mark.parametrize("interval", [0.0, math.inf])
@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_remote_text_that_outgrows_its_original_context_equals_a_local_one(kind, interval):
    factors = {"factors": (1.0, 1.0, 2.0, 2.0), "long_factors": (1.0, 2.0, 3.0, 4.0)} if kind == "longrope" else {}
    scaling = RotaryScaling(kind, 2.0, original_context=len(PROMPT) + 4, **factors)
    here = tiny_model(block_size=64, position="rotary", rotary_scaling=scaling)
    alone, document = Generation(here, PROMPT), Generation(deployed(here, interval=interval)[0], PROMPT)
    for count in (4, 5):  # the first text ends where the second one has to be read again
        assert exact(document.steps(WARM, count)) == exact(alone.steps(WARM, count))
        alone.read()
        assert_close(document.states(), alone.states(), atol=1e-5, rtol=0)
        assert_close(document.attn_weights(1), alone.attn_weights(1), atol=1e-5, rtol=0)


def test_a_text_goes_on_elsewhere_when_its_replica_dies(here):
    loaded, cluster = deployed(here, lives=[5, 0, 1, 7])
    alone, document = Generation(here, PROMPT), Generation(loaded, PROMPT)
    assert exact(document.steps(WARM, 30)) == exact(alone.steps(WARM, 30))
    assert [len(request["ids"]) for request in cluster.requests] == [7, 12, 12, 13, 20]
    assert_equals_fresh(document)


def test_a_text_ends_with_an_error_when_replicas_die_on_it_again_and_again(here):
    document = Generation(deployed(here, lives=[3, *[0] * 6])[0], PROMPT)
    steps = document.steps(WARM, 30)
    assert len([next(steps) for _ in range(3)]) == 3
    with pytest.raises(ValueError, match="5 replicas in a row failed"):
        next(steps)


def test_a_text_waits_for_a_cluster_that_is_away(here, monkeypatch):
    monkeypatch.setattr(generation, "POLL_SECONDS", 0.01)
    loaded, cluster = deployed(here)
    alone, document = Generation(here, PROMPT), Generation(loaded, PROMPT)
    steps = (step for _, step in stream(document, WARM, 12))
    made = [next(steps) for _ in range(4)]
    cluster.is_there = False
    assert [next(steps) for _ in range(3)] == [None] * 3
    cluster.is_there = True
    assert exact([*made, *(step for step in steps if step is not None)]) == exact(alone.steps(WARM, 12))


def test_this_process_reads_a_text_while_the_cluster_is_away(here):
    loaded, cluster = deployed(here)
    document = Generation(loaded, PROMPT)
    document.read()
    assert [request["max_new_tokens"] for request in cluster.requests] == [0]
    cluster.is_there = False
    document.append(5)
    document.read()
    assert document.n_read == len(PROMPT) + 1
    assert_equals_fresh(document)


def test_a_remote_text_that_is_dropped_is_stopped(here):
    loaded, cluster = deployed(here)
    steps = Generation(loaded, PROMPT).steps(WARM, 30)
    next(steps)
    assert cluster.n_open == 1
    del steps
    assert cluster.n_open == 0


def test_a_deployed_model_refuses_hooks_in_a_sentence_and_this_process_reads_the_text(here):
    loaded, cluster = deployed(here)
    hooks = Edits(hooks=(Hook("resid_post", 0, lambda x: 2 * x),))
    with pytest.raises(ValueError, match="the hook on resid_post is a Python function, which cannot be saved or sent"):
        list(generate(loaded, PROMPT, WARM, 5, edits=hooks))
    alone, document = Generation(here, PROMPT, edits=hooks), Generation(loaded, PROMPT, edits=hooks)
    for each in (alone, document):
        each.read()
    assert torch.equal(alone.states(), document.states())
    assert cluster.requests == []
