"""Write with a model that runs on a cluster."""

from __future__ import annotations

import time

import pytest

from components.state.session import PendingGeneration, Session
from components.tabs.playground import generation
from gpt import Generation, SamplingParams, get_model
from gpt.documents import generation as documents
from gpt.models.loading import LoadedModel
from tests.components.tabs.playground_session import drawn, ids, new_session, run
from tests.gpt.documents.fake_cluster import FakeCluster, deployed

PARAMS = SamplingParams(seed=3)
LENGTH = 8


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> tuple[LoadedModel, FakeCluster]:
    monkeypatch.setattr(documents, "POLL_SECONDS", 0.01)
    return deployed(get_model())


@pytest.fixture
def session(model: tuple[LoadedModel, FakeCluster]) -> Session:
    """A session that is about to generate."""
    document = Generation(model[0], "Once upon a time")
    document.read()
    session = new_session(document)
    session.pending = PendingGeneration(session.document, PARAMS, LENGTH, session.lock.begin(), time.perf_counter())
    return session


def test_the_page_says_that_the_cluster_is_away_and_writes_on_when_it_is_back(
    session: Session, model: tuple[LoadedModel, FakeCluster]
) -> None:
    model[1].is_there = False
    frames = generation.generate(session)
    next(frames)  # the prompt
    next(frames)
    assert drawn(session, "status")["text"].startswith("The cluster that runs the model is unreachable.")
    session.language = "zh"
    assert drawn(session, "status")["text"].startswith("暂时连接不上运行模型的集群")
    model[1].is_there = True
    run(frames)
    session.language = "en"
    assert "8 tokens" in drawn(session, "status")["text"]
    alone = Generation(get_model(), "Once upon a time")
    list(alone.local_steps(PARAMS, LENGTH))
    assert ids(session) == alone.ids


def test_a_text_that_waits_for_its_cluster_can_be_stopped(
    session: Session, model: tuple[LoadedModel, FakeCluster]
) -> None:
    before = ids(session)
    model[1].is_there = False
    frames = generation.generate(session)
    next(frames), next(frames)
    generation.stop(session)
    run(frames)
    assert ids(session) == before
    assert session.progress is None


def test_the_rate_is_that_of_the_model_and_not_of_the_page(session: Session) -> None:
    run(generation.generate(session))
    throughput = session.throughput
    assert throughput is not None
    assert (throughput.count, throughput.seconds > 0) == (LENGTH, True)
