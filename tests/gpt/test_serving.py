"""A replica of a model, without Ray."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from itertools import count

import pytest

from gpt import Generation, SamplingParams, load_model
from gpt.documents.backends import StreamReply, StreamRequest, plain_edits
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.cluster import ModelSpec
from gpt.models.loading import LoadedModel
from gpt.serving.replica import KeptTexts, Replica
from tests.asynchronous import run

PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def replica() -> Replica:
    return Replica(ModelSpec("stories", "stories", "fp32"))


@pytest.fixture(scope="module")
def here() -> LoadedModel:
    return load_model("stories", device="cpu")


def request_for(loaded: LoadedModel, prompt: str, seed: int, length: int, edits: Edits | None = None) -> StreamRequest:
    document = Generation(loaded, prompt, edits=edits)
    return document.request(SamplingParams(seed=seed), length)


async def collected(replies: AsyncIterator[StreamReply | GPTError]) -> list[int]:
    made: list[int] = []
    async for reply in replies:
        assert isinstance(reply, StreamReply)
        made += [draw.token_id for draw in reply.draws]
    return made


def test_texts_at_the_same_time_are_those_that_each_would_be_alone(replica: Replica, here: LoadedModel) -> None:
    edits = Edits(head_scale={(2, 1): 0.0})
    options = [(seed, edits if seed == 3 else None) for seed in range(5)]

    async def at_once() -> list[list[int]]:
        requests = [request_for(here, PROMPT, seed, 20, edits) for seed, edits in options]
        return await asyncio.gather(*(collected(replica.stream(request)) for request in requests))

    expected = [
        [step.token_id for step in Generation(here, PROMPT, edits=edits).steps(SamplingParams(seed=seed), 20)]
        for seed, edits in options
    ]
    assert run(at_once()) == expected


def test_a_text_that_nobody_wants_any_more_is_stopped(here: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    replica, closed, asked = Replica(ModelSpec("stories", "stories", "fp32")), threading.Event(), count()
    # The second interval lasts until the stream is closed.
    monkeypatch.setattr(replica, "_interval", lambda: float(next(asked) > 0 and not closed.wait(60)))

    async def first() -> StreamReply | GPTError:
        stream = replica.stream(request_for(here, PROMPT, 1, 200))
        reply = await anext(stream)
        await stream.aclose()
        closed.set()
        return reply

    assert isinstance(run(first()), StreamReply)
    replica._threads.shutdown(wait=True)
    assert replica.loaded.engine.n_tokens <= len(here.tokenizer.encode(PROMPT)) + 3
    assert replica._n_running == 0


def test_errors_for_the_visitor_are_sent(replica: Replica) -> None:
    async def only() -> list[StreamReply | GPTError]:
        request = StreamRequest([5000], params=SamplingParams(seed=1), max_new_tokens=3)
        return [reply async for reply in replica.stream(request)]

    (error,) = run(only())
    assert isinstance(error, GPTError)
    assert "5000" in str(error)


def test_a_healthy_replica_says_so(replica: Replica) -> None:
    run(replica.check_health())


def kept(loaded: LoadedModel, *texts: list[int], max_bytes: int = 2**30) -> KeptTexts:
    found = KeptTexts(max_bytes)
    for ids in texts:
        document = Generation(loaded, ids)
        document.read()
        found.put(document)
    return found


def test_a_kept_text_is_taken_by_what_continues_or_begins_it(here: LoadedModel) -> None:
    texts = kept(here, [1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 9])
    assert texts.take([7, 8]) is None
    assert texts.take([1, 2, 4]) is None  # it shares two tokens with each of them
    found = texts.take([1, 2, 3, 4, 5, 6])
    assert found is not None
    assert found.ids == [1, 2, 3, 4, 5]
    found = texts.take([1, 2])
    assert found is not None
    again = Generation(here, [1, 2])
    again.take_activations(found)
    assert again.n_read == 2


def test_texts_are_kept_up_to_a_number_of_bytes(here: LoadedModel) -> None:
    size = kept(here, [1, 2, 3])._documents[0].n_bytes
    texts = kept(here, [1, 2, 3], [4, 5, 6], [7, 8, 9], max_bytes=2 * size)
    assert [texts.take(ids) is None for ids in ([1, 2, 3], [4, 5, 6], [7, 8, 9])] == [True, False, False]


def test_a_text_that_is_continued_is_not_read_again(replica: Replica, here: LoadedModel) -> None:
    document = Generation(here, "The dog ran to the")
    for length, n_new in ((10, 5 + 10), (7, 7)):
        before = replica.loaded.engine.n_tokens
        request = document.request(SamplingParams(seed=2), length)
        document.append(*run(collected(replica.stream(request))))
        assert replica.loaded.engine.n_tokens - before == n_new


def test_plain_edits_of_nothing_are_empty() -> None:
    assert plain_edits(None) == plain_edits(Edits()) == {}
