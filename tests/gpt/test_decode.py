import pytest
import torch

from gpt import GPT, GPTConfig, KVCache
from gpt.inference.decode import Decoder, is_plain
from gpt.inference.products import LARGE

CONFIGS = {
    "gpt2": {},
    "three heads of odd width": {"n_head": 3, "n_embd": 33},
    "one head": {"n_head": 1},
    "no bias": {"bias": False},
    "no query bias": {"qkv_bias": False},
    "untied": {"tie_weights": False},
    "rotary": {"position": "rotary"},
    "relu": {"activation": "relu"},
    "exact gelu": {"activation": "gelu"},
    "silu, narrow": {"activation": "silu", "n_ff": 20},
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request):
    torch.manual_seed(5)
    config = GPTConfig(**{"vocab_size": 40, "block_size": 12, "n_layer": 2, "n_head": 2, "n_embd": 32, **request.param})
    model = GPT(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # also norms and biases
    return model


@torch.inference_mode()
def test_steps_of_texts_of_different_lengths_are_those_of_the_model(model):
    texts = [torch.randint(40, (1, n)) for n in (1, 4, 11)]
    decoder = Decoder(model)
    caches = [KVCache(model.config, keep_queries=n != 4) for n in (1, 4, 11)]
    for text, cache in zip(texts, caches, strict=True):
        if text.shape[1] > 1:
            model(text[:, :-1], cache=cache)
    states = decoder.step([int(text[0, -1]) for text in texts], caches)
    for state, text, cache in zip(states, texts, caches, strict=True):
        assert torch.allclose(state, model.hidden_states(text)[0, -1], atol=1e-5)
        assert torch.allclose(decoder.logits(state[None])[0], model(text)[0, -1], atol=1e-5)
        assert cache.length == text.shape[1]
        whole = KVCache(model.config, keep_queries=cache.q is not None)
        model(text, cache=whole)
        for kept, same in ((cache.k, whole.k), (cache.v, whole.v), (cache.q, whole.q)):
            if kept is not None:
                assert torch.allclose(kept[:, :, :, : cache.length], same[:, :, :, : cache.length], atol=1e-5)


@pytest.mark.parametrize("intel", [False, True])
@torch.inference_mode()
def test_a_large_model_gives_a_text_alone_the_same_bits_as_among_others(monkeypatch, intel):
    monkeypatch.setattr("gpt.inference.decode.is_intel", lambda: intel)
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=300, block_size=40, n_layer=1, n_head=8, n_embd=1024)).eval()
    decoder = Decoder(model)
    assert decoder.size >= LARGE
    texts = [list(range(n)) for n in (3, 9, 20, 32, 5)]
    caches = [[KVCache(model.config) for _ in texts] for _ in range(2)]
    for text, *two in zip(texts, *caches, strict=True):
        for cache in two:
            decoder.read([text], [cache])
    for token in range(3):
        together = decoder.step([token] * len(texts), caches[0])
        alone = torch.cat([decoder.step([token], [cache]) for cache in caches[1]])
        assert torch.equal(together, alone)
        assert torch.equal(decoder.logits(together), torch.cat([decoder.logits(state[None]) for state in alone]))


@torch.inference_mode()
def test_a_prompt_that_is_read_in_pieces_is_that_of_the_model(model):
    text, decoder = torch.randint(40, (1, 11)), Decoder(model)
    cache, whole = (KVCache(model.config, keep_queries=True) for _ in range(2))
    states = torch.cat(
        [decoder.read([text[0, start:end].tolist()], [cache])[0] for start, end in ((0, 5), (5, 6), (6, 11))]
    )
    assert torch.allclose(states, model.hidden_states(text, cache=whole)[0], atol=1e-5)
    for kept, same in ((cache.k, whole.k), (cache.v, whole.v), (cache.q, whole.q)):
        assert torch.allclose(kept[:, :, :, :11], same[:, :, :, :11], atol=1e-5)
    assert cache.length == 11
    with pytest.raises(ValueError, match="13 positions do not fit a cache of 12"):
        decoder.read([[1, 2]], [cache])
    assert cache.length == 11


@torch.inference_mode()
def test_a_full_cache_is_refused(model):
    cache = KVCache(model.config)
    model(torch.randint(40, (1, 12)), cache=cache)
    with pytest.raises(ValueError, match="13 positions do not fit a cache of 12"):
        Decoder(model).step([0], [cache])
    assert cache.length == 12


def test_what_is_not_the_plain_model_is_not_decoded(model):
    assert is_plain(model)
    assert not is_plain(model.train())
    model.eval().h[0] = torch.nn.Identity()
    assert not is_plain(model)
