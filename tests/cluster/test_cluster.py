"""Texts that a Ray cluster generates."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from gpt import Generation, SamplingParams, Step, load_model
from gpt.documents.backends import polled
from gpt.models.loading import LoadedModel
from tests.cluster.processes import kill, own_processes

PROMPT = "Once upon a time, there was a little girl named Lily. She"
LENGTH = 120
REPLICA, DRIVER = "ray::ServeReplica:glassbox-stories", "gpt.serving.driver"


@pytest.fixture(scope="module")
def here() -> LoadedModel:
    return load_model("stories", device="cpu")


def params(seed: int) -> SamplingParams:
    return SamplingParams(temperature=0.9, seed=seed)


def patient(steps: Iterator[Step]) -> Iterator[Step]:
    """The steps, however long the cluster is away."""
    return (step for step in polled(steps) if step is not None)


def written(loaded: LoadedModel, seed: int, length: int = LENGTH) -> Generation:
    document = Generation(loaded, PROMPT)
    for _ in patient(document.steps(params(seed), length)):
        pass
    return document


def test_a_replica_writes_what_this_process_writes(loaded: LoadedModel, here: LoadedModel) -> None:
    alone, document = Generation(here, PROMPT), Generation(loaded, PROMPT)
    steps = list(patient(document.steps(params(7), LENGTH)))
    expected = list(alone.steps(params(7), LENGTH))
    assert [(s.token_id, s.text, s.position, s.draw) for s in steps] == [
        (s.token_id, s.text, s.position, s.draw) for s in expected
    ]
    alone.read()
    assert document.n_read == alone.n_read
    torch.testing.assert_close(document.states(), alone.states(), atol=2e-4, rtol=0)
    torch.testing.assert_close(document.attn_weights(3), alone.attn_weights(3), atol=2e-4, rtol=0)


def test_a_replica_batches_texts_and_each_is_the_same_as_alone(loaded: LoadedModel, here: LoadedModel) -> None:
    seeds = range(8)
    with ThreadPoolExecutor(len(seeds)) as pool:
        documents = list(pool.map(lambda seed: written(loaded, seed, 40), seeds))
    assert [document.ids for document in documents] == [written(here, seed, 40).ids for seed in seeds]


@pytest.mark.parametrize("victims", [REPLICA, DRIVER], ids=["every replica", "the whole cluster"])
def test_a_text_goes_on_and_ends_the_same_after_kill_9_of(loaded: LoadedModel, here: LoadedModel, victims: str) -> None:
    expected = written(here, 7)
    assert written(loaded, 1, 1).n_read  # there is a replica
    document = Generation(loaded, PROMPT)
    pids = own_processes(victims)
    assert pids
    n = n_waits = 0
    for step in polled(document.steps(params(7), LENGTH)):
        n_waits += step is None
        n += step is not None
        if n == 5 and step is not None:
            kill(pids)  # as fast as can be: the replica is ahead
    assert n == len(expected.ids) - expected.n_prompt
    assert n_waits, "the text had ended before"
    assert document.ids == expected.ids
