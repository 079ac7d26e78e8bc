import gc

import pytest
import torch

from gpt import GPT, Generation, GPTConfig, KVCache, SamplingParams
from gpt.inference.decode import Decoder
from gpt.inference.engine import Engine
from gpt.inference.recorded import KEPT, Recorder
from tests.gpt.fake_models import tiny_model
from tests.gpt.test_decode import CONFIGS


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request):
    config = GPTConfig(**{"vocab_size": 40, "block_size": 12, "n_layer": 2, "n_head": 2, "n_embd": 32, **request.param})
    model = GPT(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def played(step):
    """Stands for a graph: the same operations on the same memory, asked for one by one."""
    step.run(), step.run()  # as before a capture: leaves nothing behind
    return step.run


def same(kept, other, length):
    return (kept is None) is (other is None) and (
        kept is None or torch.allclose(kept[:, :, :, :length], other[:, :, :, :length], atol=1e-5)
    )


@torch.inference_mode()
@pytest.mark.parametrize("queries", [True, False])
def test_a_step_of_fixed_shape_gives_what_a_step_gives_at_every_position(model, queries):
    decoder, recorder = Decoder(model), Recorder(Decoder(model), played)
    caches = [KVCache(model.config, keep_queries=queries) for _ in range(2)]
    for token in torch.randint(40, (12,)).tolist():
        expected, state = decoder.step([token], caches[:1]), recorder.step(token, caches[1])
        assert torch.allclose(state, expected, atol=1e-5)
        assert caches[0].length == caches[1].length
    for name in ("q", "k", "v"):
        assert same(getattr(caches[1], name), getattr(caches[0], name), 12)
    with pytest.raises(ValueError, match="13 positions do not fit"):
        recorder.step(0, caches[1])


@torch.inference_mode()
def test_each_text_is_recorded_once_and_forgotten_with_its_cache_or_when_there_are_too_many():
    model, recorded = tiny_model().model, []

    def record(step):
        recorded.append(step)
        return step.run

    recorder = Recorder(Decoder(model), record)
    caches = [KVCache(model.config) for _ in range(KEPT + 2)]
    for _ in range(2):
        recorder.step(1, caches[0])
    assert len(recorded) == 1
    for cache in caches:
        recorder.step(1, cache)
    assert len(recorded) == KEPT + 2
    recorder.step(1, caches[-1])
    assert len(recorded) == KEPT + 2
    recorder.step(1, caches[0])  # the longest unused had to go
    assert len(recorded) == KEPT + 3
    del caches, cache
    gc.collect()
    assert len(recorder._recorded) == 0


def test_texts_are_the_same_with_recorded_steps():
    params = [SamplingParams(temperature=0), SamplingParams(seed=3)]

    def written(loaded):
        return [[step.token_id for step in Generation(loaded, "the cat").steps(one, 8)] for one in params]

    plain, loaded = tiny_model(), tiny_model()
    loaded.engine.recorder = Recorder(loaded.engine.decoder, played)
    assert written(loaded) == written(plain)


def test_where_nothing_can_be_recorded_the_text_goes_on_without():
    def fail(step):
        raise RuntimeError("operation not permitted when stream is capturing")

    loaded = tiny_model()
    loaded.engine.recorder = Recorder(loaded.engine.decoder, fail)
    steps = list(Generation(loaded, "the cat").steps(SamplingParams(temperature=0), 5))
    assert [step.token_id for step in steps] == [
        step.token_id for step in Generation(tiny_model(), "the cat").steps(SamplingParams(temperature=0), 5)
    ]
    assert loaded.engine.recorder is None


def test_on_a_cpu_nothing_is_recorded():
    assert Engine(tiny_model().model).recorder is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_graphs_give_what_steps_give():
    model = GPT(GPTConfig(vocab_size=40, block_size=12, n_layer=2, n_head=2, n_embd=32)).eval().cuda()
    decoder, recorder = Decoder(model), Recorder(Decoder(model))
    caches = [KVCache(model.config, device="cuda") for _ in range(2)]
    for token in range(12):
        expected, state = decoder.step([token], caches[:1]), recorder.step(token, caches[1])
        assert torch.allclose(state, expected, atol=1e-4)
