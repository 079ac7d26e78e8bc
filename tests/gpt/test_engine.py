import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import torch

from gpt import Edits, Generation, KVCache, LoadedModel, SamplingParams, generate
from gpt.inference.engine import PIECE, PROMPT_ROWS, Asked, Engine
from gpt.inference.packed import pack
from tests.gpt.fake_models import N_VOCAB, tiny_model


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model(block_size=96)


def tiny_model_in(packing: str) -> LoadedModel:
    """A model of its own, plain for fp32."""
    loaded = tiny_model(block_size=96)
    if packing == "int8":
        if not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
            pytest.skip("this CPU has no int8 kernels")
        pack(loaded.model, packing)
    return loaded


def orders(seed: int, count: int = 16) -> list[tuple[list[int], SamplingParams, int, float]]:
    """(prompt, settings, tokens, seconds to wait before): random, some of them greedy."""
    random = Random(seed)
    made = []
    for number in range(count):
        prompt = [random.randrange(N_VOCAB) for _ in range(random.randrange(1, 60))]
        params = SamplingParams(temperature=0 if number % 4 == 0 else 1.0, top_k=random.choice([None, 5]), seed=number)
        made.append((prompt, params, random.randrange(1, 30), random.random() * 0.02))
    return made


@pytest.mark.parametrize("packing", ["fp32", "int8"])
def test_what_somebody_gets_does_not_depend_on_who_else_is_there(packing):
    loaded = tiny_model_in(packing)

    def write(order):
        prompt, params, count, wait = order
        time.sleep(wait)
        return [(step.token_id, step.rank) for step in generate(loaded, prompt, params, count)]

    alone = [write(order) for order in orders(1)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(write, orders(1))) == alone


def test_a_text_alone_is_read_whole_and_together_in_pieces(loaded):
    sizes: list[list[int]] = []
    engine = Engine(loaded.model)
    read = engine.decoder.read
    hold, entered = threading.Event(), threading.Event()

    def watched(texts, caches):
        sizes.append([len(ids) for ids in texts])
        entered.set()
        assert hold.wait(20)
        return read(texts, caches)

    engine.decoder.read = watched
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(engine.read, [1] * 90, KVCache(loaded.model.config))
        assert entered.wait(20)
        others = [pool.submit(engine.read, [2] * 70, KVCache(loaded.model.config)) for _ in range(2)]
        while len(engine._asked) < 2:
            time.sleep(0.001)
        hold.set()
        assert len(first.result(20)[0]) == 90
        assert [len(other.result(20)[0]) for other in others] == [70, 70]
    assert sizes == [[90], [PIECE, PIECE], [PIECE, PIECE], [6, 6]]


@pytest.mark.parametrize("packing", ["fp32", "int8"])
def test_prompts_that_come_at_once_are_read_in_one_pass_and_each_as_if_alone(packing):
    loaded = tiny_model_in(packing)
    engine = Engine(loaded.model)
    texts = [list(range(seed, seed + size)) for seed, size in enumerate((5, 1, 31, 17, 60, 2))]
    alone = [engine.read(ids, KVCache(loaded.model.config)) for ids in texts]
    asked = [Asked(ids, KVCache(loaded.model.config), None, lambda *read: read) for ids in texts]
    passes = [[len(one.ids) for one in several] for several in engine._passes(asked, 60)]
    assert passes == [[1], [5, 31, 17, 60, 2]]
    assert PROMPT_ROWS == 128
    for several in engine._passes(asked, 60):
        engine._pass(several, 60)
    for one, (states, outlook) in zip(asked, alone, strict=True):
        read, after = one.result
        assert torch.allclose(read, states, atol=1e-5)
        assert torch.allclose(after.logits, outlook.logits, atol=1e-5)
        assert one.cache.length == len(one.ids)


def test_a_prompt_that_fails_among_others_fails_alone(loaded):
    engine = Engine(loaded.model)
    expected = engine.read([1, 2, 3], KVCache(loaded.model.config))[0]
    small, good = KVCache(loaded.model.config, max_length=2), KVCache(loaded.model.config)
    asked = [Asked([1, 2, 3], cache, None, lambda *read: read) for cache in (small, good)]
    engine._pass(asked, PIECE)
    assert isinstance(asked[0].error, ValueError)
    assert small.length == 0
    assert torch.allclose(asked[1].result[0], expected, atol=1e-5)
    assert all(one.ready.is_set() for one in asked)


def test_those_who_wait_share_one_step(loaded):
    engine = Engine(loaded.model)
    rows: list[int] = []
    step = engine.decoder.step

    def counted(ids, caches):
        rows.append(len(ids))
        return step(ids, caches)

    engine.decoder.step = counted
    caches = [KVCache(loaded.model.config) for _ in range(8)]
    start = threading.Barrier(8)

    def write(cache):
        start.wait()
        for token in range(20):
            engine.read([token % 5], cache)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, caches))
    assert sum(rows) == 8 * 20
    assert len(rows) < 8 * 20 / 2


def test_one_that_fails_ends_alone_and_the_others_go_on(loaded):
    good = [KVCache(loaded.model.config) for _ in range(3)]
    full = KVCache(loaded.model.config, max_length=2)
    engine = Engine(loaded.model)

    def write(cache):
        made = [engine.read([token % 5], cache)[1].logits for token in range(10)]
        return torch.stack(made)

    with ThreadPoolExecutor(4) as pool:
        wrong, *right = [pool.submit(write, cache) for cache in (full, *good)]
        with pytest.raises(ValueError, match="3 positions do not fit a cache of 2"):
            wrong.result(20)
        logits = [one.result(20) for one in right]
    assert full.length == 2
    assert all(torch.allclose(one, logits[0], atol=1e-5) for one in logits)
    assert engine.read([1], KVCache(loaded.model.config))[1].logits.shape == logits[0].shape[1:]


def test_what_somebody_does_with_what_was_read_fails_for_him_alone(loaded):
    engine, start = Engine(loaded.model), threading.Barrier(3)

    def write(then):
        start.wait(20)
        cache = KVCache(loaded.model.config)
        return [engine.read([token], cache, then=then) for token in (1, 2, 3)]

    def choke(states, outlook):
        raise RuntimeError("not this one")

    with ThreadPoolExecutor(3) as pool:
        wrong, *right = [pool.submit(write, then) for then in (choke, lambda *read: len(read), lambda *read: 7)]
        with pytest.raises(RuntimeError, match="not this one"):
            wrong.result(20)
        assert [one.result(20) for one in right] == [[2, 2, 2], [7, 7, 7]]


def test_an_edited_text_and_a_plain_one_write_at_once_and_each_keeps_to_itself(loaded):
    edits = Edits(head_scale={(0, 0): 0.0}, activation="relu")
    params = SamplingParams(temperature=0)

    def write(edits):
        document = Generation(loaded, [1, 2, 3], edits=edits)
        return [step.token_id for step in document.steps(params, 30)], document.logits(document.n_read - 1)

    alone = [write(edits), write(None)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(write, [edits, None]))
    for (ids, logits), (same, close) in zip(alone, together, strict=True):
        assert ids == same
        assert torch.allclose(logits, close, atol=1e-5)


def test_a_step_that_fails_after_some_have_read_leaves_nobody_with_a_token_twice(loaded):
    engine = Engine(loaded.model)
    step, count = engine.decoder.step, [0]

    class Fails:
        """Stands for a GPU that has no memory left when the second text is recorded."""

        def step(self, token, cache):
            count[0] += 1
            if count[0] == 2:
                raise RuntimeError("out of memory")
            return step([token], [cache])

    caches = [KVCache(loaded.model.config) for _ in range(3)]
    expected = [engine.read([1, 2, token], KVCache(loaded.model.config))[1].logits for token in (3, 4, 5)]
    for cache in caches:
        engine.read([1, 2], cache)
    engine.recorder = Fails()
    asked = [Asked([token], cache, None, lambda *read: read) for token, cache in zip((3, 4, 5), caches, strict=True)]
    engine._pass(asked, PIECE)
    assert engine.recorder is None
    assert [cache.length for cache in caches] == [3, 3, 3]
    for one, right in zip(asked, expected, strict=True):
        assert torch.allclose(one.result[1].logits, right, atol=1e-5)


def test_a_prompt_that_fails_in_its_middle_is_read_from_its_start_the_next_time(loaded, monkeypatch):
    engine, cache, ids = Engine(loaded.model), KVCache(loaded.model.config), list(range(80))
    expected = engine.read(ids, KVCache(loaded.model.config))[0]
    read = engine.decoder.read

    def fails(texts, caches):
        if caches[0].length >= PIECE:
            raise RuntimeError("out of memory")
        return read(texts, caches)

    monkeypatch.setattr(engine, "_gather", lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(engine.decoder, "read", fails)
        patch.setattr("gpt.inference.engine.max", lambda lengths: PIECE, raising=False)  # as if others were there
        with pytest.raises(RuntimeError, match="out of memory"):
            engine.read(ids, cache)
    assert cache.length == 0
    assert torch.allclose(engine.read(ids, cache)[0], expected, atol=1e-5)


def test_whoever_writes_while_python_ends_still_gets_the_text(loaded):
    engine = Engine(loaded.model)
    engine._thread.shutdown()  # as Python does, before it waits for the threads of a program
    states, _ = engine.read([1, 2, 3], KVCache(loaded.model.config))
    assert states.shape[0] == 3


def test_all_who_come_at_once_share_one_engine():
    loaded = tiny_model()
    start = threading.Barrier(8)

    def ask(_):
        start.wait(20)
        return id(loaded.engine)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
