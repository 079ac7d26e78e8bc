"""Models with random weights: the skeleton, the shapes of a pass, vocabularies of any size, the memory budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gpt import Generation
from gpt.config import GPTConfig
from gpt.experiments.random_models import (
    MemoryInUse,
    RandomModels,
    memory_bytes,
    module_shapes,
    resize_vocabulary,
    skeleton,
)
from gpt.model import GPT
from gpt.models.checkpoints.vocabularies import Characters
from gpt.sampling import SamplingParams
from gpt.tokenizer import Tokenizer
from tests.conftest import families
from tests.gpt.family_configs import FAMILIES

TINY = GPTConfig(vocab_size=261, block_size=20, n_layer=3, n_head=3, n_embd=12)
IDS = [1, 5, 9, 2, 5]
of_every_family = pytest.mark.parametrize("name", families(*FAMILIES))


def config_of(name: str) -> GPTConfig:
    return replace(FAMILIES[name], vocab_size=261)


@of_every_family
def test_the_skeleton_is_the_head_of_the_embeddings(name: str) -> None:
    config = config_of(name)
    model = skeleton(config).eval()
    idx = torch.tensor([IDS])
    with torch.inference_mode():
        x = config.embedding_scale * model.wte.weight[idx]
        x = x if model.wpe is None else x + model.wpe.weight[: len(IDS)]
        logits = torch.nn.functional.linear(x, model.lm_head.weight, model.lm_head.bias)
        if (cap := config.logit_softcap) is not None:
            logits = (logits / cap).tanh() * cap
        torch.testing.assert_close(model(idx), logits)


@of_every_family
def test_the_skeleton_has_every_shape_of_the_whole_model(name: str) -> None:
    config = config_of(name)
    assert skeleton(config)(torch.tensor([IDS])).shape == GPT(config)(torch.tensor([IDS])).shape == (1, 5, 261)
    outer = {"idx", "wte", "h.0", "h.1", "h.2", "ln_f", "lm_head"} | (
        {"wpe"} if config.position == "learned" else set()
    )
    whole = [stage for stage in module_shapes(GPT(config), IDS) if stage.name in outer]
    assert module_shapes(skeleton(config), IDS) == whole
    assert {stage.name for stage in whole} == outer


def test_module_shapes_are_those_of_the_pass_in_order_and_leave_no_hook() -> None:
    model = GPT(replace(TINY, n_ff=30, gated=True, n_kv_head=1))
    seen = {stage.name: stage.shape for stage in module_shapes(model, IDS)}
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
        with RandomModels().model(replace(TINY, vocab_size=size), vocabulary, skeleton_only=bare) as loaded:
            steps = list(Generation(loaded, "the the").steps(SamplingParams(seed=1), 5))
            assert 1 <= len(steps) <= 5
            assert all(0 <= step.token_id < size for step in steps)


@pytest.mark.parametrize("size", [257, 258, 260, 261, 262, 5000])
def test_a_resized_vocabulary_encodes_every_text(byte_tokenizer: Tokenizer, size: int) -> None:
    text = "the end of \U0001f9c0, the \x00"
    vocabulary = resize_vocabulary(byte_tokenizer, size)
    ids = vocabulary.encode(text)
    assert vocabulary.n_vocab == size
    assert vocabulary.decode(ids) == text
    assert max(ids) < size
    assert vocabulary.eot_id == min(size - 1, 260)
    assert all(vocabulary.token_bytes(token_id) for token_id in range(size))
    with pytest.raises(ValueError, match="does not exist"):
        vocabulary.token_bytes(size)


def test_vocabularies_that_cannot_be_cut_are_refused(byte_tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="at least 257 tokens"):
        resize_vocabulary(byte_tokenizer, 256)
    with pytest.raises(ValueError, match="cannot be cut down to 2"):
        resize_vocabulary(Characters(["a", "b", "c"]), 2)


def test_a_model_over_the_budget_is_refused_with_its_size(byte_tokenizer: Tokenizer) -> None:
    models = RandomModels(10 * 2**20)
    large = GPTConfig(n_layer=1, n_embd=48, vocab_size=50257)
    with (
        pytest.raises(ValueError, match=r"needs 10\.25 MiB of memory: the limit is 10\.00 MiB"),
        models.model(large, byte_tokenizer),
    ):
        pass


def test_the_budget_is_shared_and_released(byte_tokenizer: Tokenizer) -> None:
    models = RandomModels(memory_bytes(TINY) * 3 // 2)
    with (
        models.model(TINY, byte_tokenizer),
        pytest.raises(MemoryInUse, match="try again later"),
        models.model(TINY, byte_tokenizer),
    ):
        pass
    with pytest.raises(RuntimeError, match="gone"), models.model(TINY, byte_tokenizer):
        raise RuntimeError("gone")
    with models.model(TINY, byte_tokenizer) as loaded:
        assert loaded.model.config == TINY
