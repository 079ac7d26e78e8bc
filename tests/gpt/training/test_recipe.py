from __future__ import annotations

from dataclasses import replace

import pytest

from gpt.model import GPT
from gpt.training.recipe import RECIPE_PRESETS, Recipe, make_optimizers

SMALL = Recipe(n_layer=2, n_head=2, n_embd=16, block_size=16, vocab_size=300, steps=100, warmup=10, decay_from=0.5)


def test_lr_factor_is_a_linear_warm_up_then_constant_then_a_linear_decay_to_zero() -> None:
    assert [SMALL.lr_factor(step) for step in (0, 4, 9, 10, 50)] == pytest.approx([0.1, 0.5, 1.0, 1.0, 1.0])
    assert [SMALL.lr_factor(step) for step in (51, 60, 75, 99)] == pytest.approx([0.98, 0.8, 0.5, 0.02])
    assert replace(SMALL, decay_from=1.0).lr_factor(99) == 1.0
    assert replace(SMALL, warmup=0).lr_factor(0) == 1.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocab_size": 256}, "vocab_size must be a number of at least 257, not 256"),
        ({"block_size": 1}, "block_size must be a number of at least 2, not 1"),
        ({"steps": 0}, "steps must be a number of at least 1, not 0"),
        ({"adamw_lr": -0.1}, "adamw_lr must be a number of at least 0, not -0.1"),
        ({"muon_lr": float("nan")}, "muon_lr must be a number of at least 0, not nan"),
        ({"held_back": 1.5}, "held_back must be a number between 0 and 1, not 1.5"),
        ({"optimizer": "sgd"}, "optimizer must be one of muon, adamw, not 'sgd'"),
        ({"precision": "fp16"}, "precision must be one of auto, fp32, bf16, not 'fp16'"),
        ({"n_head": 3}, r"n_embd \(16\) must be divisible by n_head \(3\)"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(SMALL, **changes)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_every_parameter_has_one_optimizer_and_only_matrices_decay(optimizer: str) -> None:
    model = GPT(SMALL.model_config(300))
    optimizers = make_optimizers(model, replace(SMALL, optimizer=optimizer))
    groups = [group for each in optimizers for group in each.param_groups]
    parameters = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, parameters)) == sorted(map(id, model.parameters()))
    for group in groups:
        assert {parameter.dim() == 2 for parameter in group["params"]} == {group["weight_decay"] > 0}


@pytest.mark.parametrize(
    ("name", "millions", "rows"), [("shakespeare", "10.65", (64, 256)), ("shakespeare-cpu", "0.80", (12, 64))]
)
def test_the_shakespeare_presets_are_nanogpts(name: str, millions: str, rows: tuple[int, int]) -> None:
    recipe = RECIPE_PRESETS[name]
    model = GPT(recipe.model_config(65))
    without_positions = sum(p.numel() for p in model.parameters()) - model.wpe.weight.numel()
    assert f"{without_positions / 1e6:.2f}" == millions  # "number of parameters" as printed by nanoGPT
    assert (recipe.batch_size, recipe.block_size) == rows
    (adamw,) = make_optimizers(model, recipe)
    assert [group["weight_decay"] for group in adamw.param_groups] == [0.1, 0.0]
    assert {(group["lr"], group["betas"]) for group in adamw.param_groups} == {(1e-3, (0.9, 0.99))}
    assert [recipe.lr_factor(step) for step in (0, 99)] == [0.01, 1.0]


def test_muon_gets_the_matrices_of_the_blocks_and_nothing_else() -> None:
    model = GPT(SMALL.model_config(300))
    _, muon = make_optimizers(model, SMALL)
    names = {name for name, p in model.named_parameters() if any(p is q for q in muon.param_groups[0]["params"])}
    parts = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    assert names == {f"h.{layer}.{part}.weight" for layer in range(2) for part in parts}


def test_a_recipe_of_llamas_shape_is_found_again_from_its_model() -> None:
    recipe = replace(SMALL, architecture="llama", bias=False, n_kv_head=1)
    config = recipe.model_config(300)
    assert (config.norm, config.gated, config.position, config.kv_heads, config.bias) == (
        "rms",
        True,
        "rotary",
        1,
        False,
    )
    assert Recipe().shaped_like(config).model_config(300) == config
    with pytest.raises(ValueError, match=r"n_head \(2\) must be divisible by n_kv_head \(3\)"):
        replace(recipe, n_kv_head=3)
    with pytest.raises(ValueError, match="qk_norm"):
        Recipe().shaped_like(replace(config, qk_norm=True))
