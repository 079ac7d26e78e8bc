"""Options of every family, in config.json files written by versions 4 and 5 of transformers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from transformers import AutoConfig

from gpt.config import CONTEXT, PRESETS, GPTConfig
from gpt.errors import GPTError
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.options import check_config, options_inside, read_family_options
from tests.gpt.models.published import CONFIGS, published
from tests.parity.family_models import CASES, LINEAR, OPTIONS, SIZES, reference_config


def as_version_4(config: dict[str, Any]) -> dict[str, Any]:
    """Convert a config.json of version 5 to the format of version 4."""
    old = {name: value for name, value in config.items() if name not in ("rope_parameters", "layer_types")}
    rope = dict(config["rope_parameters"])
    if "sliding_attention" in rope:
        old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
        old["layer_types"] = config["layer_types"]
    is_neox = config["model_type"] == "gpt_neox"
    old["rotary_emb_base" if is_neox else "rope_theta"] = rope.pop("rope_theta")
    if is_neox:
        old["rotary_pct"] = rope.pop("partial_rotary_factor")
    if "partial_rotary_factor" in rope:
        old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    kind = rope.pop("rope_type")
    old["rope_scaling"] = None if kind == "default" else {"type": kind, **rope}
    return old


def states_layer_types(family: str, name: str) -> bool:
    """Return whether a case deviates from its family's rule, which `as_version_4` omits."""
    return family != "gemma3_text" and "layer_types" in OPTIONS[family][name]


def test_version_4_and_version_5_state_the_same_model() -> None:
    n_compared = 0
    for case in CASES:
        new = reference_config(*case).to_dict()
        if "rope_parameters" in new and not states_layer_types(*case):
            old = as_version_4(new)
            assert old != new
            assert read_family_options(old) == read_family_options(new), case
            n_compared += 1
    assert n_compared > 50


def test_rules_of_version_4_for_windows_are_those_of_transformers() -> None:
    pattern = {"num_hidden_layers": 7, "head_dim": 6, "sliding_window": 4}
    stated = AutoConfig.for_model("gemma3_text", **{**SIZES, **pattern}).to_dict()
    unstated = {name: value for name, value in stated.items() if name != "layer_types"}
    assert read_family_options(unstated)["full_layers"] == (5,)
    assert read_family_options(unstated) == read_family_options(stated)
    assert read_family_options({**unstated, "sliding_window_pattern": 2})["full_layers"] == (1, 3, 5)


@pytest.mark.parametrize(("n_layer", "interval", "expected"), [(9, 4, (3, 7)), (3, 4, ()), (3, 1, (0, 1, 2))])
def test_rule_for_layers_without_rotation_is_that_of_transformers(
    n_layer: int, interval: int, expected: tuple[int, ...]
) -> None:
    options = {**SIZES, "num_hidden_layers": n_layer, "no_rope_layer_interval": interval}
    stated = AutoConfig.for_model("smollm3", **options).to_dict()
    unstated = {name: value for name, value in stated.items() if name != "no_rope_layers"}
    assert read_family_options(stated)["unrotated_layers"] == expected
    assert read_family_options(unstated) == read_family_options(stated)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_configuration_gives_the_preset(name: str) -> None:
    found = GPTConfig(**read_family_options(published(name)))
    assert replace(found, block_size=min(found.block_size, CONTEXT)) == PRESETS[name]


# Sizes under the names used by each family.
TINY = {
    **SIZES,
    "num_layers": 3,
    "num_heads": 4,
    "ffn_dim": 37,
    "n_positions": 48,
    "n_layer": 3,
    "n_head": 4,
    "n_embd": 24,
}
GPT2 = {**TINY, "model_type": "gpt2"}
LLAMA = {**SIZES, "model_type": "llama"}
GEMMA = {**SIZES, "model_type": "gemma3_text"}
GEMMA2 = {**SIZES, "model_type": "gemma2"}
SMOLLM3 = {**SIZES, "model_type": "smollm3"}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**GEMMA, "final_logit_softcapping": 30.0}, "final_logit_softcapping=30.0 changes the mathematics"),
        ({**GEMMA, "use_bidirectional_attention": True}, "use_bidirectional_attention=True changes the mathematics"),
        ({**GEMMA, "rope_parameters": {"sliding_attention": LINEAR}}, "type 'linear'"),
        (
            {**LLAMA, "rope_scaling": {"type": "ntk", "factor": 4.0}},
            "type 'ntk' are not implemented: known types are default",
        ),
        ({**LLAMA, "rope_scaling": {"type": "linear"}}, "does not state factor"),
        ({**LLAMA, "partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
        ({**LLAMA, "hidden_act": "mish"}, "hidden_act='mish' is not implemented"),
        ({**LLAMA, "num_hidden_layers": 10**9}, "num_hidden_layers must be a whole number"),
        ({**GEMMA, "layer_types": ["full_attention"]}, "layer_types="),
        ({**SMOLLM3, "no_rope_layers": [1, 0]}, "config.json is damaged"),
        ({"model_type": "llama", "hidden_size": 8}, "config.json does not state vocab_size, num_hidden_layers"),
        ({**LLAMA, "quantization_config": {"quant_method": "torchao"}}, "quantised with torchao.*original model"),
        (
            {**LLAMA, "quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}},
            r"quantised with compressed-tensors \(nvfp4-pack-quantized\)",
        ),
        ({"model_type": "exaone"}, "an? exaone model.*not implemented: choose one of the types gpt2, gpt_neox, llama"),
        ({"auto_map": {"AutoConfig": "x.X"}}, "a None model"),
        # Options of individual families
        ({**GPT2, "scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True changes"),
        ({**TINY, "model_type": "gpt_neo", "attention_types": [[["local"], 10**12]]}, "attention_types="),
        ({**TINY, "model_type": "phi", "qk_layernorm": True}, "qk_layernorm=True"),
        ({**TINY, "model_type": "phi3", "rope_scaling": {"type": "longrope", "long_factor": [1.0]}}, "short_factor"),
        ({**TINY, "model_type": "opt", "do_layer_norm_before": False}, "do_layer_norm_before=False"),
        ({**TINY, "model_type": "stablelm", "use_parallel_residual": True}, "use_parallel_residual=True"),
        ({**TINY, "model_type": "olmo", "clip_qkv": 8.0}, "clip_qkv=8.0"),
        ({**TINY, "model_type": "gpt_bigcode", "multi_query": False}, "multi_query=False"),
    ],
)
def test_what_is_not_implemented_is_refused_by_its_name(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_config(config)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_value_of_another_type_is_refused_in_a_sentence(family: str) -> None:
    sizes = {"hidden_size": 32, "n_embd": 32, "num_key_value_heads": 4, "head_dim": 8, "rotary_dim": 4}
    config = {**TINY, **sizes, "model_type": family, "attention_types": [[["global"], 3]]}
    check_config(config)
    for option in {*FAMILIES[family].theirs.values(), *FAMILIES[family].required}:
        for value in ("no", [1], {"a": 1}, math.nan):
            with pytest.raises(GPTError):
                check_config({**config, option: value})


@pytest.mark.parametrize("family", FAMILIES)
def test_values_that_config_json_does_not_state_are_those_of_transformers(family: str) -> None:
    config = AutoConfig.for_model(family)
    rope = getattr(config, "rope_parameters", None) or {}
    rope = rope.get("full_attention", rope)
    for option, value in FAMILIES[family].defaults.items():
        theirs = getattr(config, option, rope.get(option, value))
        unused = option == "sliding_window" and not getattr(config, "use_sliding_window", True)
        assert value is None or value == theirs or unused, option


def test_code_that_a_repository_brings_is_not_needed_for_an_implemented_type() -> None:
    assert check_config({**LLAMA, "auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}) == FAMILIES["llama"]


def test_every_family_is_among_the_models_compared_with_transformers() -> None:
    assert OPTIONS.keys() == FAMILIES.keys()
    assert all(len(cases) >= 4 for cases in OPTIONS.values())


@pytest.mark.parametrize(("name", "width", "factor"), [("dim", 2048, 32.0), ("dim", 4096, 8.0), ("n_embd", 4096, 8.0)])
def test_the_factor_of_scaled_angles_follows_from_the_width(name: str, width: int, factor: float) -> None:
    options = {name: width, "use_scaled_rope": True}
    assert options_inside(options)["rotary_scaling"].factor == factor
    assert options_inside({"config": options}, {"n_embd"})["rotary_scaling"].factor == factor
