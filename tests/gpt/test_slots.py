import random

import pytest
import torch

from gpt import GPT, GPTConfig, KVCache
from gpt.cache import STEP, rows_of, whole_steps
from gpt.inference import slots as slots_module
from gpt.inference.decode import Decoder
from gpt.inference.step import Seen, look_back


@pytest.fixture(params=["learned", "rotary"])
def model(request):
    torch.manual_seed(3)
    model = GPT(GPTConfig(vocab_size=30, block_size=60, n_layer=2, n_head=3, n_embd=48, position=request.param)).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


@torch.inference_mode()
def test_texts_that_come_and_go_turn_back_and_grow_too_long_read_as_if_alone(model, monkeypatch):
    monkeypatch.setattr(slots_module, "LENGTH", 32)  # some of the texts outgrow their seats
    monkeypatch.setattr(slots_module, "SLOTS", 5)  # and there are too few
    chance = random.Random(0)
    together, alone = Decoder(model), Decoder(model)
    texts = [(KVCache(model.config, keep_queries=n % 2 == 0), KVCache(model.config)) for n in range(7)]
    seen = set()
    for _ in range(250):
        if chance.random() < 0.15:
            cache, twin = chance.choice(texts)
            length = chance.randint(0, cache.length)
            cache.crop(length)
            twin.crop(length)
        if chance.random() < 0.05:
            texts[chance.randrange(7)] = KVCache(model.config), KVCache(model.config)
        if chance.random() < 0.05:  # one goes on by himself for a moment
            cache, twin = chance.choice([pair for pair in texts if pair[0].length < 55])
            idx = torch.tensor([[chance.randrange(30) for _ in range(3)]])
            assert torch.allclose(model(idx, cache=cache), model(idx, cache=twin), atol=1e-5)
        here = [pair for pair in chance.sample(texts, chance.randint(1, 7)) if pair[0].length < 60]
        if not here:
            continue
        ids = [chance.randrange(30) for _ in here]
        states = together.step(ids, [cache for cache, _ in here])
        for token, state, (cache, twin) in zip(ids, states, here, strict=True):
            assert torch.allclose(state, alone.step([token], [twin])[0], atol=1e-5)
            assert torch.allclose(cache.k[..., : cache.length, :], twin.k[..., : twin.length, :], atol=1e-5)
            assert torch.allclose(cache.v[..., : cache.length, :], twin.v[..., : twin.length, :], atol=1e-5)
            seen.add(cache.length)
    assert max(seen) > 45  # longer than a seat


@torch.inference_mode()
@pytest.mark.parametrize("keys_first", [True, False])
@pytest.mark.parametrize(("n_head", "head_size"), [(1, 64), (2, 32), (3, 64), (12, 64)])
def test_what_a_text_sees_does_not_depend_on_the_others_to_the_bit(n_head, head_size, keys_first):
    torch.manual_seed(0)
    lengths = [1, 7, 16, 17, 40, 100]
    S = whole_steps(max(lengths))
    q, k, v = (torch.randn(len(lengths), n_head, rows, head_size) for rows in (1, S, S))
    hidden = torch.zeros(len(lengths), n_head, 1, S)
    for row, length in enumerate(lengths):
        hidden[row, ..., length:] = -torch.inf
    seen = Seen(*rows_of(len(lengths) * n_head, S, S), hidden.flatten(0, 1), keys_first)
    together = look_back(q.flatten(0, 1), k.flatten(0, 1), v.view(-1, head_size), seen).view_as(q)
    for row, length in enumerate(lengths):
        end = whole_steps(length)
        seen = Seen(*rows_of(n_head, end, S), hidden[row, 0, :, :end], keys_first)
        alone = look_back(q[row], k[row, :, :end], v[row].view(-1, head_size), seen).view(n_head, 1, -1)
        assert torch.equal(alone, together[row]) or (n_head == 1 and torch.allclose(alone, together[row], atol=1e-6))
        exact = torch.nn.functional.scaled_dot_product_attention(q[row], k[row, :, :length], v[row, :, :length])
        assert torch.allclose(together[row], exact, atol=1e-5)


@torch.inference_mode()
def test_idle_texts_do_not_keep_the_others_waiting_in_far_seats(model):
    decoder = Decoder(model)
    caches = [KVCache(model.config) for _ in range(12)]
    decoder.step([1] * 12, caches)
    assert len(decoder.slots.together(caches[9:]).seated.seen.starts) <= 5 * model.config.n_head
    assert decoder.slots.together(caches[9:]).rows == [0, 1, 2]


@torch.inference_mode()
def test_a_text_that_is_gone_leaves_its_seat(model):
    decoder = Decoder(model)
    for _ in range(4):
        caches = [KVCache(model.config) for _ in range(3)]
        decoder.step([1, 2, 3], caches)
        del caches
    assert len(decoder.slots._seats) == 0


@pytest.mark.parametrize(("count", "whole"), [(1, STEP), (STEP, STEP), (STEP + 1, 2 * STEP)])
def test_whole_steps(count, whole):
    assert whole_steps(count) == whole
