"""Sizes and costs from a configuration, compared with models, with torch's counter and with published numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gpt import Generation
from gpt.cache import KVCache
from gpt.config import PRESETS, GPTConfig
from gpt.experiments.random_models import (
    MemoryInUse,
    RandomModels,
    memory_bytes,
    module_shapes,
    resize_vocabulary,
    skeleton,
)
from gpt.experiments.random_models import skeleton as make_skeleton
from gpt.experiments.shapes import (
    UNTIED_124M,
    cache_numbers,
    count_parameters,
    embedding_effects,
    flops_per_token,
    next_token_multiplications,
    parameter_parts,
    weight_shapes,
)
from gpt.model import GPT
from gpt.sampling import SamplingParams
from gpt.tokenizer import Tokenizer
from gpt.trace import Trace
from tests.conftest import families
from tests.gpt.family_configs import FAMILIES

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)

SHAPES = [
    TINY,
    replace(TINY, n_ff=7, bias=False),
    replace(TINY, bias=False, qkv_bias=False, tie_weights=False),
    replace(TINY, n_layer=1, n_head=1, n_embd=1, vocab_size=1, block_size=1),
    UNTIED_124M,
    *FAMILIES.values(),
]


def on_meta(config: GPTConfig) -> GPT:
    with torch.device("meta"):
        return GPT(config)


def test_the_parts_of_gpt2_are_those_of_its_formula_and_every_parameter_is_in_one() -> None:
    C, n = 768, 12
    assert parameter_parts(UNTIED_124M) == {
        "token_embedding": 50257 * C,
        "position_embedding": 1024 * C,
        "attention": n * (4 * C * C + C),
        "feed_forward": n * (8 * C * C + 5 * C),
        "norms": n * 4 * C + 2 * C,
        "head": 50257 * C,
    }
    for config in SHAPES:
        assert count_parameters(config) == sum(parameter.numel() for parameter in on_meta(config).parameters()), config


@pytest.mark.parametrize("skeleton", [False, True])
def test_the_weights_are_those_of_the_model(skeleton: bool) -> None:
    for config in [TINY, *FAMILIES.values()]:
        shapes = weight_shapes(config, skeleton=skeleton)
        found = [(each.name.replace("h.N", f"h.{copy}"), each.shape) for each in shapes for copy in range(each.copies)]
        model = make_skeleton(config) if skeleton else on_meta(config)
        assert sorted(found) == sorted((name, tuple(weight.shape)) for name, weight in model.named_parameters())
        assert sum(each.n_parameters for each in shapes) == count_parameters(config, skeleton=skeleton)


@pytest.mark.parametrize(
    ("name", "millions"), [("gpt2", 124), ("gpt2-medium", 355), ("gpt2-large", 774), ("gpt2-xl", 1558)]
)
def test_released_models_have_their_published_sizes(name: str, millions: int) -> None:
    assert round(count_parameters(PRESETS[name]) / 1e6) == millions


@pytest.mark.parametrize("name", families(*FAMILIES))
def test_operations_are_those_that_torch_counts_for_one_token_with_a_cache(name: str) -> None:
    config, position = FAMILIES[name], 7
    model, cache = GPT(config).eval(), KVCache(config)
    with torch.inference_mode():
        model(torch.zeros(1, position, dtype=torch.long), cache=cache)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, 1, dtype=torch.long), cache=cache, trace=Trace())  # torch can count eager attention
    assert sum(flops_per_token(config, position)) == counter.get_total_flops()


TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_a_tied_embedding_predicts_its_own_tokens_and_gets_a_gradient_in_every_row() -> None:
    config = GPTConfig(vocab_size=500, block_size=16, n_layer=1, n_head=2, n_embd=64)
    tied, untied = embedding_effects(config, TEXT), embedding_effects(replace(config, tie_weights=False), TEXT)
    assert tied == (1.0, 1.0)
    assert untied[0] < 0.02
    assert untied[1] == pytest.approx(len(set(TEXT[:-1])) / 500)


IDS = [5, 1, 60, 8, 8, 30, 2]


def filled_cache(model: GPT, idx: torch.Tensor) -> KVCache:
    cache = KVCache(model.config)
    model.hidden_states(idx[:, :-1], cache=cache)
    return cache


@pytest.mark.parametrize("cached", [True, False])
@torch.inference_mode()
def test_multiplications_are_those_that_torch_counts(model: GPT, cached: bool) -> None:
    idx = torch.tensor([IDS])
    cache = filled_cache(model, idx) if cached else None
    with FlopCounterMode(display=False) as counter:
        model.lm_head(model.hidden_states(idx[:, -1:] if cached else idx, cache=cache, trace=Trace())[:, -1])
    count = next_token_multiplications(model.config, len(IDS), cached=cached)
    assert 2 * count == counter.get_total_flops()  # one addition per multiplication


def test_memory_of_the_cache(model: GPT) -> None:
    config = model.config
    cache = KVCache(config)
    cache.reserve(config.block_size)
    assert cache.k.nbytes + cache.v.nbytes == 4 * cache_numbers(config) * config.block_size
    assert 4 * cache_numbers(GPTConfig()) == 73_728  # 2 x 12 layers x 768 numbers of 4 bytes


SMALL = GPTConfig(vocab_size=261, block_size=20, n_layer=3, n_head=3, n_embd=12)

FEW_IDS = [1, 5, 9, 2, 5]

of_every_family = pytest.mark.parametrize("name", families(*FAMILIES))


def config_of(name: str) -> GPTConfig:
    return replace(FAMILIES[name], vocab_size=261)


@of_every_family
def test_the_skeleton_has_every_shape_of_the_whole_model(name: str) -> None:
    config = config_of(name)
    assert skeleton(config)(torch.tensor([FEW_IDS])).shape == GPT(config)(torch.tensor([FEW_IDS])).shape == (1, 5, 261)
    outer = {"idx", "wte", "h.0", "h.1", "h.2", "ln_f", "lm_head"} | (
        {"wpe"} if config.position == "learned" else set()
    )
    whole = {name: shape for name, shape in module_shapes(GPT(config), FEW_IDS).items() if name in outer}
    assert module_shapes(skeleton(config), FEW_IDS) == whole
    assert whole.keys() == outer


def test_module_shapes_are_those_of_the_pass_in_order_and_leave_no_hook() -> None:
    model = GPT(replace(SMALL, n_ff=30, gated=True, n_kv_head=1))
    seen = module_shapes(model, FEW_IDS)
    assert next(iter(seen)) == "idx"
    assert list(seen)[-1] == "lm_head"
    assert seen["idx"] == (1, 5)
    assert seen["h.0.attn.c_attn"] == (1, 5, 20)
    assert seen["h.0.mlp.c_gate"] == seen["h.0.mlp.c_fc"] == (1, 5, 30)
    assert seen["h.2"] == seen["ln_f"] == (1, 5, 12)
    assert seen["lm_head"] == (1, 5, 261)
    assert not any(module._forward_hooks for module in model.modules())


@of_every_family
def test_memory_is_that_of_the_tensors_a_document_keeps(byte_tokenizer: Tokenizer, name: str) -> None:
    config = config_of(name)
    with RandomModels().model(config, byte_tokenizer) as loaded:
        document = Generation(loaded, [97] * config.block_size)
        document.read()
        assert memory_bytes(config) == sum(weight.nbytes for weight in loaded.model.parameters()) + document.n_bytes


@pytest.mark.parametrize("bare", [False, True])
def test_a_model_of_any_vocabulary_size_generates(byte_tokenizer: Tokenizer, bare: bool) -> None:
    for size in (257, 259, 261, 1000):
        vocabulary = resize_vocabulary(byte_tokenizer, size)
        with RandomModels().model(replace(SMALL, vocab_size=size), vocabulary, skeleton_only=bare) as loaded:
            steps = list(Generation(loaded, "the the").steps(SamplingParams(seed=1), 5))
            assert 1 <= len(steps) <= 5
            assert all(0 <= step.token_id < size for step in steps)


def test_a_resized_vocabulary_encodes_every_text(byte_tokenizer: Tokenizer) -> None:
    text = "the end of \U0001f9c0, the \x00"
    for size in (257, 260, 261, 300):
        vocabulary = resize_vocabulary(byte_tokenizer, size)
        ids = vocabulary.encode(text)
        assert vocabulary.n_vocab == size
        assert vocabulary.decode(ids) == text
        assert max(ids) < size
        assert vocabulary.eot_id == min(size - 1, 260)
        assert all(vocabulary.token_bytes(token_id) for token_id in range(size))
        with pytest.raises(ValueError, match="does not exist"):
            vocabulary.token_bytes(size)


def test_the_budget_is_shared_and_released(byte_tokenizer: Tokenizer) -> None:
    models = RandomModels(memory_bytes(SMALL) * 3 // 2)
    with (
        models.model(SMALL, byte_tokenizer),
        pytest.raises(MemoryInUse, match="try again later"),
        models.model(SMALL, byte_tokenizer),
    ):
        pass
    with pytest.raises(RuntimeError, match="gone"), models.model(SMALL, byte_tokenizer):
        raise RuntimeError("gone")
    with models.model(SMALL, byte_tokenizer) as loaded:
        assert loaded.model.config == SMALL
