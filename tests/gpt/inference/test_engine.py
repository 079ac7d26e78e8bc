import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import torch

from gpt import Edits, GPTError, KVCache, LoadedModel, SamplingParams, generate
from gpt.edits import Hook, Steering
from gpt.inference import engine as engine_module
from gpt.inference.engine import CHUNK_TOKENS, Engine
from gpt.inference.packed_weights import pack
from tests.gpt.fake_models import N_VOCAB, tiny_model
from tests.gpt.inference.waiting import wait_for_requests

CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model(block_size=96)


@pytest.fixture
def passes(monkeypatch) -> list[list[int]]:
    """Record the number of tokens of each text in every forward pass."""
    made: list[list[int]] = []
    hidden_states = Engine._hidden_states

    def watched(self, requests, parts):
        made.append([len(ids) for ids in parts])
        return hidden_states(self, requests, parts)

    monkeypatch.setattr(Engine, "_hidden_states", watched)
    return made


def tiny_model_in(packing: str) -> LoadedModel:
    """Return a new tiny model, packed or not."""
    loaded = tiny_model(block_size=96)
    if packing == "int8" and not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        pytest.skip("this CPU has no int8 kernels")
    if packing != "none":
        pack(loaded.model, packing)
    return loaded


def orders(seed: int, count: int = 10) -> list[tuple[list[int], SamplingParams, int]]:
    """Return random (prompt, settings, tokens) triples, some of them greedy."""
    random = Random(seed)
    made = []
    for number in range(count):
        prompt = [random.randrange(N_VOCAB) for _ in range(random.randrange(1, 60))]
        params = SamplingParams(temperature=0 if number % 4 == 0 else 1.0, top_k=random.choice([None, 5]), seed=number)
        made.append((prompt, params, random.randrange(1, 30)))
    return made


@pytest.mark.parametrize(
    "packing", ["none", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("fp32", "int8"))]
)
def test_a_text_generated_in_a_batch_has_the_tokens_of_one_generated_alone(packing):
    loaded = tiny_model_in(packing)

    def write(order):
        prompt, params, count = order
        return [(step.token_id, step.rank) for step in generate(loaded, prompt, params, count)]

    alone = [write(order) for order in orders(1)]
    with ThreadPoolExecutor(6) as pool:  # the seventh joins when the first one ends, and so on
        assert list(pool.map(write, orders(1))) == alone


@pytest.mark.parametrize("packing", ["none", "fp32", "half", "int8"])
def test_logits_in_a_batch_equal_those_alone_within_the_rounding_of_the_precision(packing):
    loaded = tiny_model_in(packing)
    engine = Engine(loaded.model)
    texts = [list(range(seed, seed + size)) for seed, size in enumerate((5, 1, 31, 17, 60, 2))]
    alone = [engine.read(ids, KVCache(loaded.model.config)) for ids in texts]
    caches = [KVCache(loaded.model.config) for _ in texts]
    together = engine.read_together([(ids, cache, None) for ids, cache in zip(texts, caches, strict=True)])
    close = {"atol": 1e-2, "rtol": 0} if packing == "half" else CLOSE
    for one, same in zip(together, alone, strict=True):
        for found, expected in zip(one, same, strict=True):
            torch.testing.assert_close(found, expected, **close)
    assert [cache.length for cache in caches] == [len(ids) for ids in texts]


def test_prompts_that_come_during_a_pass_are_read_in_turns_of_a_chunk(loaded, passes, monkeypatch):
    engine = Engine(loaded.model)
    hidden_states, hold, entered = Engine._hidden_states, threading.Event(), threading.Event()

    def held(*arguments):
        entered.set()
        assert hold.wait(20)
        return hidden_states(*arguments)

    monkeypatch.setattr(Engine, "_hidden_states", held)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(engine.read, [1] * 90, KVCache(loaded.model.config))
        assert entered.wait(20)
        others = [pool.submit(engine.read, [2] * 70, KVCache(loaded.model.config)) for _ in range(2)]
        wait_for_requests(engine, 3)
        hold.set()
        assert [len(each.result(20)[0]) for each in (first, *others)] == [90, 70, 70]
    assert passes == [[90], [CHUNK_TOKENS] * 2, [CHUNK_TOKENS] * 2, [6, 6]]


def test_a_long_prompt_that_is_read_alone_lets_others_in_after_a_limited_pass(loaded, passes, monkeypatch):
    per_token = Engine(loaded.model).multiplications_per_token
    monkeypatch.setattr(engine_module, "PASS_MULTIPLICATIONS", 40 * per_token)
    for edits in (None, Edits(activation="relu")):
        states, _ = Engine(loaded.model).read([1] * 90, KVCache(loaded.model.config), edits)
        assert passes == [[40], [40], [10]]
        assert len(states) == 90
        passes.clear()


def test_a_steered_text_shares_a_pass_and_one_with_other_edits_has_its_own(loaded, passes):
    vector = Steering(0, torch.ones(loaded.model.config.n_embd))
    edits = [None, Edits(steering=(vector,)), Edits(steering=(vector,), drop_positions=True), Edits()]
    found = Engine(loaded.model).read_together([([1], KVCache(loaded.model.config), each) for each in edits])
    assert passes == [[1, 1, 1], [1]]
    for (states, _), each in zip(found, edits, strict=True):
        expected = loaded.model.hidden_states(torch.tensor([[1]]), edits=each)[0]
        assert torch.allclose(states, expected, **CLOSE)


def test_texts_generated_at_the_same_time_share_their_passes(loaded, passes, monkeypatch):
    n_texts = 8
    monkeypatch.setattr(engine_module, "GATHER_SHARE", float("inf"))  # however slow this computer's threads are
    monkeypatch.setattr(engine_module, "GATHER_SECONDS", 60)
    engine = Engine(loaded.model)
    engine._n_expected = n_texts

    def write(cache):
        for token in range(40):
            engine.read([token % 5], cache)

    with ThreadPoolExecutor(n_texts) as pool:
        list(pool.map(write, [KVCache(loaded.model.config) for _ in range(n_texts)]))
    assert sum(map(sum, passes)) == n_texts * 40
    assert len(passes) == 40


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_whatever_a_hook_raises_reaches_its_caller_alone(loaded, error):
    engine, start = Engine(loaded.model), threading.Barrier(3)

    def fail(_):
        raise error("not this one")

    def write(edits=None):
        start.wait(20)
        cache = KVCache(loaded.model.config)
        return [len(engine.read([token], cache, edits)) for token in (1, 2, 3)]

    with ThreadPoolExecutor(3) as pool:
        wrong = pool.submit(write, Edits(hooks=(Hook("resid_post", 0, fail),)))
        right = [pool.submit(write) for _ in range(2)]
        with pytest.raises(error, match="not this one"):
            wrong.result(20)
        assert [one.result(20) for one in right] == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.parametrize("shared", [False, True])
def test_a_prompt_that_fails_in_its_middle_leaves_the_cache_as_it_was(loaded, monkeypatch, shared):
    engine, ids = Engine(loaded.model), list(range(80))
    engine._pass_tokens = CHUNK_TOKENS
    expected = engine.read(ids, KVCache(loaded.model.config))[0]
    caches, hidden_states = [KVCache(loaded.model.config) for _ in range(2 if shared else 1)], Engine._hidden_states

    def fails(self, requests, parts):
        found = hidden_states(self, requests, parts)
        if requests[0].cache is caches[0] and requests[0].n_read == CHUNK_TOKENS:
            raise RuntimeError("out of memory")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_hidden_states", fails)
        with pytest.raises(RuntimeError, match="out of memory"):
            engine.read_together([(ids, cache, None) for cache in caches])
    for cache in caches:
        assert cache.length == 0
        assert torch.allclose(engine.read(ids, cache)[0], expected, **CLOSE)


def test_too_little_memory_is_a_sentence_and_the_next_text_is_read(loaded):
    engine = Engine(loaded.model)

    def fills(x):
        raise torch.OutOfMemoryError("12 TiB")

    edits = Edits(hooks=(Hook("resid_post", 0, fills),))
    with pytest.raises(GPTError, match="does not fit in the free memory of cpu"):
        engine.read([1, 2], KVCache(loaded.model.config), edits)
    assert len(engine.read([1, 2], KVCache(loaded.model.config))[0]) == 2


def test_a_pass_that_fails_after_it_has_stored_positions_is_repeated_for_each_text_alone(loaded, monkeypatch):
    engine = Engine(loaded.model)
    caches = [KVCache(loaded.model.config) for _ in range(3)]
    expected = [engine.read([1, 2, token], KVCache(loaded.model.config))[1] for token in (3, 4, 5)]
    for cache in caches:
        engine.read([1, 2], cache)
    batched = engine_module.batched_hidden_states

    def fails(model, texts, caches, *others):
        batched(model, texts[:2], caches[:2], *others[:-1])
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine_module, "batched_hidden_states", fails)
    together = engine.read_together([([token], cache, None) for token, cache in zip((3, 4, 5), caches, strict=True)])
    assert [cache.length for cache in caches] == [3, 3, 3]
    for (_, logits), right in zip(together, expected, strict=True):
        assert torch.allclose(logits, right, **CLOSE)
