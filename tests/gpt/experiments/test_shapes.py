"""Sizes computed from a configuration, compared with actual models and with published numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.experiments.random_models import skeleton as make_skeleton
from gpt.experiments.shapes import (
    UNTIED_124M,
    count_parameters,
    embedding_effects,
    flops_per_token,
    parameter_parts,
    weight_shapes,
)
from gpt.model import GPT
from gpt.presets import PRESETS
from gpt.trace import Trace
from tests.conftest import families
from tests.gpt.family_configs import FAMILIES

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)
SHAPES = [
    TINY,
    replace(TINY, n_ff=7),
    replace(TINY, bias=False),
    replace(TINY, qkv_bias=False),
    replace(TINY, bias=False, qkv_bias=False, tie_weights=False),
    replace(TINY, tie_weights=False, position="rotary"),
    replace(TINY, n_layer=1, n_head=1, n_embd=1, vocab_size=1, block_size=1),
    GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128, n_ff=512),
    UNTIED_124M,
    replace(UNTIED_124M, tie_weights=True),
    *FAMILIES.values(),
    *PRESETS.values(),
]


def on_meta(config: GPTConfig) -> GPT:
    with torch.device("meta"):
        return GPT(config)


@pytest.mark.parametrize("config", SHAPES, ids=str)
def test_counts_are_those_of_the_model_and_of_each_of_its_parts(config: GPTConfig) -> None:
    model = on_meta(config)
    assert count_parameters(config) == sum(parameter.numel() for parameter in model.parameters())
    counted = dict.fromkeys(parameter_parts(config), 0)
    for name, parameter in model.named_parameters():  # a tied head is listed once, as wte
        kinds = {"wte": "token_embedding", "wpe": "position_embedding", "lm_head": "head"}
        inside = {"attn": "attention", "mlp": "feed_forward"}
        first, *rest = name.split(".")
        is_norm = "norm" in name or "ln_" in name
        counted["norms" if is_norm else inside[rest[1]] if first == "h" else kinds[first]] += parameter.numel()
    assert parameter_parts(config) == counted


@pytest.mark.parametrize("skeleton", [False, True])
@pytest.mark.parametrize("config", [TINY, *FAMILIES.values(), PRESETS["distilgpt2"]], ids=str)
def test_the_weights_are_those_of_the_model(config: GPTConfig, skeleton: bool) -> None:
    found = [
        (weight.name.replace("h.N", f"h.{copy}"), weight.shape)
        for weight in weight_shapes(config, skeleton=skeleton)
        for copy in range(weight.copies)
    ]
    model = make_skeleton(config) if skeleton else on_meta(config)
    assert sorted(found) == sorted((name, tuple(weight.shape)) for name, weight in model.named_parameters())
    assert sum(weight.n_parameters for weight in weight_shapes(config, skeleton=skeleton)) == count_parameters(
        config, skeleton=skeleton
    )


def test_the_curriculum_s_configuration_has_the_printed_numbers() -> None:
    assert count_parameters(UNTIED_124M) == 163_009_536
    assert count_parameters(replace(UNTIED_124M, tie_weights=True)) == 124_412_160
    assert f"{4 * count_parameters(UNTIED_124M) / 2**20:.2f}" == "621.83"
    parts = parameter_parts(UNTIED_124M)
    assert parts["head"] == parts["token_embedding"] == 50_257 * 768


@pytest.mark.parametrize(
    ("name", "millions"), [("gpt2", 124), ("gpt2-medium", 355), ("gpt2-large", 774), ("gpt2-xl", 1558)]
)
def test_released_models_have_their_published_sizes(name: str, millions: int) -> None:
    assert round(count_parameters(PRESETS[name]) / 1e6) == millions


@pytest.mark.parametrize("position", [0, 7])
@pytest.mark.parametrize("name", families(*FAMILIES))
def test_operations_are_those_that_torch_counts_for_one_token_with_a_cache(name: str, position: int) -> None:
    config = FAMILIES[name]
    model, cache = GPT(config).eval(), KVCache(config)
    with torch.inference_mode():
        if position:
            model(torch.zeros(1, position, dtype=torch.long), cache=cache)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, 1, dtype=torch.long), cache=cache, trace=Trace())  # torch can count eager attention
    assert flops_per_token(config, position).total == counter.get_total_flops()


TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_a_tied_embedding_predicts_its_own_tokens_and_gets_a_gradient_in_every_row() -> None:
    config = GPTConfig(vocab_size=500, block_size=16, n_layer=1, n_head=2, n_embd=64)
    tied, untied = embedding_effects(config, TEXT), embedding_effects(replace(config, tie_weights=False), TEXT)
    assert tied.own_token_best == 1.0
    assert untied.own_token_best < 0.02
    assert tied.rows_with_gradient == 1.0
    assert untied.rows_with_gradient == pytest.approx(len(set(TEXT[:-1])) / 500)
