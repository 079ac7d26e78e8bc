"""A replica of a model, without Ray."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpt import Generation, SamplingParams, load_model
from gpt.edits import Edits
from gpt.models.loading import LoadedModel
from gpt.serving.replica import END, KeptTexts, Replica

PROMPT = "Once upon a time"
SPEC = {"name_or_path": "stories"}


@pytest.fixture(scope="module")
def replica() -> Replica:
    return Replica(SPEC)


@pytest.fixture(scope="module")
def here() -> LoadedModel:
    return load_model("stories", device="cpu")


def request_for(loaded: LoadedModel, seed: int, length: int, edits: Edits | None = None) -> dict[str, Any]:
    return Generation(loaded, PROMPT, edits=edits).request(SamplingParams(seed=seed), length)


def drawn_ids(replica: Replica, request: dict[str, Any]) -> list[int]:
    """Return the token ids in a complete answer."""
    *lines, end = replica.lines(request)
    assert end == END
    return [draw[0] for line in lines for draw in json.loads(line)["draws"]]


def test_texts_at_the_same_time_are_those_that_each_would_be_alone(replica: Replica, here: LoadedModel) -> None:
    edits = [Edits(head_scale={(2, 1): 0.0}) if seed == 1 else None for seed in range(3)]
    expected = [
        [step.token_id for step in Generation(here, PROMPT, edits=edit).steps(SamplingParams(seed=seed), 9)]
        for seed, edit in enumerate(edits)
    ]
    with ThreadPoolExecutor(3) as pool:
        requests = [request_for(here, seed, 9, edit) for seed, edit in enumerate(edits)]
        assert list(pool.map(lambda request: drawn_ids(replica, request), requests)) == expected


def test_a_text_that_nobody_wants_any_more_is_stopped(here: LoadedModel) -> None:
    replica = Replica(SPEC)
    lines = replica.lines(request_for(here, 1, 200))
    next(lines)
    lines.close()
    assert replica.loaded.engine.n_tokens <= len(here.tokenizer.encode(PROMPT)) + 1
    assert replica._n_running == 0


def test_errors_are_the_last_line(replica: Replica, here: LoadedModel) -> None:
    (line,) = replica.lines(request_for(here, 1, 3) | {"ids": [5000]})
    assert "5000" in json.loads(line)["error"][2].values().__str__()
    (line,) = replica.lines({})
    assert json.loads(line)["error"][0] == "cluster.failed"


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
        document.append(*drawn_ids(replica, document.request(SamplingParams(seed=2), length)))
        assert replica.loaded.engine.n_tokens - before == n_new
