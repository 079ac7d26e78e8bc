import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
import torch

from gpt import Edits, Generation, KVCache, LoadedModel, SamplingParams, generate
from gpt.edits import Hook, Steering
from gpt.inference import engine as engine_module
from gpt.inference.engine import BATCH_TOKENS, CHUNK_TOKENS, Engine, ReadRequest
from gpt.inference.packed_weights import pack
from tests.gpt.fake_models import N_VOCAB, family_model, tiny_model
from tests.gpt.inference.waiting import wait_for_requests

CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model(block_size=96)


@pytest.fixture
def passes(monkeypatch) -> list[list[int]]:
    """Record the number of tokens of each text in every forward pass."""
    made: list[list[int]] = []
    batched = engine_module.batched_hidden_states

    def watched(model, texts, *others, **options):
        made.append([len(ids) for ids in texts])
        return batched(model, texts, *others, **options)

    monkeypatch.setattr(engine_module, "batched_hidden_states", watched)
    return made


def tiny_model_in(packing: str) -> LoadedModel:
    """Return a new tiny model, packed or not."""
    loaded = tiny_model(block_size=96)
    if packing == "int8" and not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        pytest.skip("this CPU has no int8 kernels")
    if packing != "none":
        pack(loaded.model, packing)
    return loaded


def request(ids: list[int], cache: KVCache) -> ReadRequest:
    return ReadRequest(ids, cache, None, lambda *read: read)


def orders(seed: int, count: int = 16) -> list[tuple[list[int], SamplingParams, int]]:
    """Return random (prompt, settings, tokens) triples, some of them greedy."""
    random = Random(seed)
    made = []
    for number in range(count):
        prompt = [random.randrange(N_VOCAB) for _ in range(random.randrange(1, 60))]
        params = SamplingParams(temperature=0 if number % 4 == 0 else 1.0, top_k=random.choice([None, 5]), seed=number)
        made.append((prompt, params, random.randrange(1, 30)))
    return made


@pytest.mark.parametrize("packing", ["none", "fp32", "int8"])
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
    requests = [request(ids, KVCache(loaded.model.config)) for ids in texts]
    for batch in engine._batches(requests, 60):
        engine._run_batch(batch, 60)
    close = {"atol": 1e-2, "rtol": 0} if packing == "half" else CLOSE
    for one, (states, distribution) in zip(requests, alone, strict=True):
        read, after = one.result
        assert torch.allclose(read, states, **close)
        assert torch.allclose(after.logits, distribution.logits, **close)
        assert after.entropy == pytest.approx(distribution.entropy, abs=1e-2 if packing == "half" else 1e-5)
        assert one.cache.length == len(one.ids)


def test_the_distribution_has_the_log_sum_and_the_entropy_of_its_logits(loaded):
    _, distribution = Engine(loaded.model).read([1, 2, 3], KVCache(loaded.model.config))
    p = distribution.logits.double().softmax(dim=-1)
    assert distribution.log_sum == pytest.approx(distribution.logits.double().exp().sum().log().item(), rel=1e-6)
    assert distribution.entropy == pytest.approx(-(p * p.log2()).sum().item(), rel=1e-5)


@torch.inference_mode()
def test_logits_and_distributions_are_capped_where_the_model_caps_them():
    loaded = family_model("gemma2")
    idx, engine = torch.tensor([[1, 60, 7]]), Engine(loaded.model)
    states, expected = loaded.model.hidden_states(idx)[0], loaded.model(idx)[0]
    assert expected.abs().max() < loaded.model.config.logit_softcap
    torch.testing.assert_close(engine.logits(states), expected, **CLOSE)
    torch.testing.assert_close(engine.distribution(states[-1]).logits, expected[-1], **CLOSE)


def test_a_single_prompt_is_read_in_one_pass_and_several_in_chunks(loaded, passes, monkeypatch):
    engine = Engine(loaded.model)
    batched, hold, entered = engine_module.batched_hidden_states, threading.Event(), threading.Event()

    def held(*arguments, **options):
        entered.set()
        assert hold.wait(20)
        return batched(*arguments, **options)

    monkeypatch.setattr(engine_module, "batched_hidden_states", held)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(engine.read, [1] * 90, KVCache(loaded.model.config))
        assert entered.wait(20)
        others = [pool.submit(engine.read, [2] * 70, KVCache(loaded.model.config)) for _ in range(2)]
        wait_for_requests(engine, 3)
        hold.set()
        assert len(first.result(20)[0]) == 90
        assert [len(other.result(20)[0]) for other in others] == [70, 70]
    assert passes == [[90], [CHUNK_TOKENS] * 2, [CHUNK_TOKENS] * 2, [6, 6]]


def test_a_long_prompt_that_is_read_alone_lets_others_in_after_a_limited_pass(loaded, passes, monkeypatch):
    per_token = Engine(loaded.model).multiplications_per_token
    monkeypatch.setattr(engine_module, "ROUND_MULTIPLICATIONS", 40 * per_token)
    states, _ = Engine(loaded.model).read([1] * 90, KVCache(loaded.model.config))
    assert passes == [[40], [40], [10]]
    assert len(states) == 90


def test_many_prompts_take_turns_and_every_text_has_a_token_in_each_round(loaded, passes, monkeypatch):
    engine = Engine(loaded.model)
    monkeypatch.setattr(engine, "_round_tokens", 2 * CHUNK_TOKENS)
    prompts = [request([1] * 60, KVCache(loaded.model.config)) for _ in range(5)]
    for rounds in ([1, 32, 32], [1, 32, 32], [1, 28, 28, 32], [1, 28, 28, 28]):
        step = request([1], KVCache(loaded.model.config))
        engine._requests = [*(one for one in prompts if not one.done.is_set()), step]
        engine._run_round()
        assert (sorted(passes.pop()), step.done.is_set()) == (rounds, True)
    assert all(one.done.is_set() for one in prompts)


def test_a_pass_reads_steps_and_prompts_together_up_to_its_limit(loaded):
    engine = Engine(loaded.model)
    sizes = (5, 1, 60, 60, 1, 2, 1)
    requests = [request([1] * size, KVCache(loaded.model.config)) for size in sizes]
    assert [[len(one.ids) for one in batch] for batch in engine._batches(requests, 60)] == [[5, 1, 60, 60, 1], [2, 1]]
    assert sum(sizes[:5]) <= BATCH_TOKENS < sum(sizes[:6]) + 1


def test_a_steered_text_shares_a_pass_and_one_with_other_edits_has_its_own(loaded):
    engine = Engine(loaded.model)
    vector = Steering(0, torch.ones(loaded.model.config.n_embd))
    edits = [None, Edits(steering=(vector,)), Edits(steering=(vector,), drop_positions=True), Edits()]
    requests = [ReadRequest([1], KVCache(loaded.model.config), each, lambda *read: read) for each in edits]
    batches = list(engine._batches(requests, 60))
    assert [[one.edits for one in batch] for batch in batches] == [[edits[2]], [edits[0], edits[1], edits[3]]]
    plain, steered = engine._hidden_states(batches[1][:2], [[1], [1]])
    assert torch.allclose(plain, loaded.model.hidden_states(torch.tensor([[1]]))[0], **CLOSE)
    assert torch.allclose(steered, loaded.model.hidden_states(torch.tensor([[1]]), edits=edits[1])[0], **CLOSE)


def test_a_round_waits_for_each_text_once_and_not_for_its_last_request(loaded):
    """A text that makes its next request before its round ends counts once."""
    engine, cache, threads = Engine(loaded.model), KVCache(loaded.model.config), iter(range(100, 200))

    def join(on_read) -> ReadRequest:
        one = ReadRequest([1], cache, None, on_read)
        one.thread = next(threads)
        engine._join(one)
        return one

    first = join(lambda *read: join(lambda *read: None))
    engine._run_round()
    assert first.done.is_set()
    assert engine._n_expected == 1


def test_a_request_that_fails_in_a_batch_fails_alone(loaded):
    engine = Engine(loaded.model)
    expected = engine.read([1, 2, 3], KVCache(loaded.model.config))[0]
    small, good = KVCache(loaded.model.config, max_length=2), KVCache(loaded.model.config)
    requests = [request([1, 2, 3], cache) for cache in (small, good)]
    engine._run_batch(requests, CHUNK_TOKENS)
    assert isinstance(requests[0].error, ValueError)
    assert small.length == 0
    assert torch.allclose(requests[1].result[0], expected, **CLOSE)
    assert all(one.done.is_set() for one in requests)


@pytest.mark.parametrize("n_texts", [2, 8])
def test_texts_generated_at_the_same_time_share_their_passes(loaded, passes, monkeypatch, n_texts):
    monkeypatch.setattr(engine_module, "GATHER_SHARE", float("inf"))  # however slow this computer's threads are
    monkeypatch.setattr(engine_module, "GATHER_SECONDS", 0.2)
    engine = Engine(loaded.model)

    def write(cache):
        engine.read([0], cache, on_read=lambda *_: wait_for_requests(engine, n_texts) if len(passes) == 1 else None)
        for token in range(1, 40):
            engine.read([token % 5], cache)

    with ThreadPoolExecutor(n_texts) as pool:
        list(pool.map(write, [KVCache(loaded.model.config) for _ in range(n_texts)]))
    assert sum(map(sum, passes)) == n_texts * 40
    assert len(passes) < 50  # 40, and a few if a thread stalls for longer


def test_a_text_that_fails_ends_and_the_others_continue(loaded):
    good = [KVCache(loaded.model.config) for _ in range(3)]
    full = KVCache(loaded.model.config, max_length=2)
    engine = Engine(loaded.model)

    def write(cache):
        made = [engine.read([token % 5], cache)[1].logits for token in range(10)]
        return torch.stack(made)

    with ThreadPoolExecutor(4) as pool:
        wrong, *right = [pool.submit(write, cache) for cache in (full, *good)]
        with pytest.raises(ValueError, match="3 positions do not fit in a cache of 2"):
            wrong.result(20)
        logits = [one.result(20) for one in right]
    assert full.length == 2
    assert all(torch.allclose(one, logits[0], **CLOSE) for one in logits)
    assert engine.read([1], KVCache(loaded.model.config))[1].logits.shape == logits[0].shape[1:]


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("place", ["callback", "hook"])
def test_whatever_a_callback_or_hook_raises_reaches_its_caller_alone(loaded, place, error):
    engine, start = Engine(loaded.model), threading.Barrier(3)

    def write(on_read, edits=None):
        start.wait(20)
        cache = KVCache(loaded.model.config)
        return [engine.read([token], cache, edits, on_read) for token in (1, 2, 3)]

    def fail(*_):
        raise error("not this one")

    failing = (fail, None) if place == "callback" else (print, Edits(hooks=(Hook("resid_post", 0, fail),)))
    with ThreadPoolExecutor(3) as pool:
        wrong = pool.submit(write, *failing)
        right = [pool.submit(write, on_read) for on_read in (lambda *read: len(read), lambda *read: 7)]
        with pytest.raises(error, match="not this one"):
            wrong.result(20)
        assert [one.result(20) for one in right] == [[2, 2, 2], [7, 7, 7]]


def test_a_text_holds_its_own_logits_alone(loaded):
    engine, start = Engine(loaded.model), threading.Barrier(4)

    def read(cache):
        start.wait(20)
        return engine.read([1, 2, 3], cache)[1].logits

    with ThreadPoolExecutor(4) as pool:
        for logits in pool.map(read, [KVCache(loaded.model.config) for _ in range(4)]):
            assert logits.untyped_storage().nbytes() == 4 * N_VOCAB


def test_an_edited_text_and_a_plain_one_at_the_same_time_equal_those_alone(loaded):
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
        assert torch.allclose(logits, close, **CLOSE)


def test_a_prompt_that_fails_in_its_middle_leaves_the_cache_as_it_was(loaded, monkeypatch):
    engine, cache, ids = Engine(loaded.model), KVCache(loaded.model.config), list(range(80))
    expected = engine.read(ids, KVCache(loaded.model.config))[0]
    batched = engine_module.batched_hidden_states

    def fails(model, texts, caches, *others, **options):
        if caches[0].length >= CHUNK_TOKENS:
            raise RuntimeError("out of memory")
        return batched(model, texts, caches, *others, **options)

    one = request(ids, cache)
    with monkeypatch.context() as patch:
        patch.setattr(engine_module, "batched_hidden_states", fails)
        engine._run_batch([one], CHUNK_TOKENS)
        assert (cache.length, one.done.is_set()) == (CHUNK_TOKENS, False)
        engine._run_batch([one], CHUNK_TOKENS)
    assert str(one.error) == "out of memory"
    assert cache.length == 0
    assert torch.allclose(engine.read(ids, cache)[0], expected, **CLOSE)


def test_a_pass_that_fails_after_it_has_stored_positions_is_repeated_for_each_text_alone(loaded, monkeypatch):
    engine = Engine(loaded.model)
    caches = [KVCache(loaded.model.config) for _ in range(3)]
    expected = [engine.read([1, 2, token], KVCache(loaded.model.config))[1].logits for token in (3, 4, 5)]
    for cache in caches:
        engine.read([1, 2], cache)
    batched = engine_module.batched_hidden_states

    def fails(model, texts, caches, *others, **options):
        if len(texts) > 1:
            batched(model, texts[:1], caches[:1], *others, **options)
            raise RuntimeError("out of memory")
        return batched(model, texts, caches, *others, **options)

    monkeypatch.setattr(engine_module, "batched_hidden_states", fails)
    requests = [request([token], cache) for token, cache in zip((3, 4, 5), caches, strict=True)]
    engine._run_batch(requests, CHUNK_TOKENS)
    assert [cache.length for cache in caches] == [3, 3, 3]
    for one, right in zip(requests, expected, strict=True):
        assert torch.allclose(one.result[1].logits, right, **CLOSE)


def test_concurrent_first_accesses_get_the_same_engine():
    loaded = tiny_model()
    start = threading.Barrier(8)

    def ask(_):
        start.wait(20)
        return id(loaded.engine)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
