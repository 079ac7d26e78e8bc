"""The options of every family, from config.json as versions 4 and 5 of transformers write it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from gpt.config import GPTConfig
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.family_options import check_config, read_family_options
from gpt.models.meta import meta_model
from gpt.presets import PRESETS
from tests.gpt.models.published import CONFIGS
from tests.parity.family_models import CASES, LINEAR, OPTIONS, SIZES, reference_config


def as_version_4(config: dict[str, Any]) -> dict[str, Any]:
    """A config.json of version 5 as version 4 wrote it."""
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
    kind = rope.pop("rope_type")
    old["rope_scaling"] = None if kind == "default" else {"type": kind, **rope}
    return old


def states_layer_types(family: str, name: str) -> bool:
    """Whether a case differs from the rule of its family, which `as_version_4` leaves out."""
    return family != "gemma3_text" and "layer_types" in OPTIONS[family][name]


@pytest.mark.parametrize("case", [case for case in CASES if not states_layer_types(*case)], ids=" - ".join)
def test_version_4_and_version_5_state_the_same_model(case: tuple[str, str]) -> None:
    new = reference_config(*case).to_dict()
    old = as_version_4(new)
    assert old != new
    assert read_family_options(old) == read_family_options(new)


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
def test_published_configuration_gives_the_preset_and_transformers_number_of_parameters(name: str) -> None:
    published, n_parameters = CONFIGS[name]
    config = GPTConfig(**read_family_options(published))
    assert config == PRESETS[name]
    options = {key: value for key, value in published.items() if key not in ("model_type", "torch_dtype")}
    with torch.device("meta"):
        theirs = AutoModelForCausalLM.from_config(AutoConfig.for_model(published["model_type"], **options))
    assert count(meta_model(config)) == count(theirs) == n_parameters


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


LLAMA = {**CONFIGS["SmolLM2-135M"][0]}
GEMMA = {**CONFIGS["gemma-3-270m"][0]}
GEMMA2 = {**SIZES, "model_type": "gemma2"}
SMOLLM3 = {**SIZES, "model_type": "smollm3"}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**GEMMA, "final_logit_softcapping": 30.0}, "final_logit_softcapping=30.0 changes the mathematics"),
        ({**GEMMA, "attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0 changes the mathematics"),
        ({**GEMMA, "use_bidirectional_attention": True}, "use_bidirectional_attention=True changes the mathematics"),
        ({**GEMMA, "rope_parameters": {"sliding_attention": LINEAR}}, "type 'linear'"),
        (
            {**LLAMA, "rope_scaling": {"type": "yarn", "factor": 4.0}},
            "type 'yarn' are not implemented: known are default",
        ),
        ({**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}, "'dynamic'"),
        ({**LLAMA, "rope_parameters": {"rope_type": "longrope", "short_factor": []}}, "'longrope'"),
        ({**LLAMA, "rope_scaling": {"type": "linear"}}, "does not state factor"),
        ({**LLAMA, "rope_scaling": "linear"}, "rope_scaling='linear'"),
        ({**LLAMA, "partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
        ({**LLAMA, "hidden_act": "relu2"}, "hidden_act='relu2' is not implemented"),
        ({**LLAMA, "hidden_size": "576"}, "hidden_size must be a whole number"),
        ({**LLAMA, "num_hidden_layers": 10**9}, "num_hidden_layers must be a whole number"),
        ({**LLAMA, "tie_word_embeddings": "yes"}, "tie_word_embeddings='yes'"),
        ({**GEMMA, "layer_types": ["full_attention"]}, "layer_types="),
        ({**GEMMA, "layer_types": ["chunked_attention"] * 18}, "layer_types="),
        ({**CONFIGS["Qwen3-0.6B"][0], "use_sliding_window": True, "sliding_window": "all"}, "sliding_window must be"),
        ({**GEMMA2, "use_bidirectional_attention": True}, "use_bidirectional_attention=True changes the mathematics"),
        ({**SMOLLM3, "no_rope_layers": [1, 0]}, r"no_rope_layers=\[1, 0\]"),
        ({**SMOLLM3, "no_rope_layers": [1, 0, 2]}, "no_rope_layers="),
        ({**SMOLLM3, "no_rope_layer_interval": 0}, "no_rope_layer_interval must be a whole number"),
        ({"model_type": "llama", "hidden_size": 8}, "config.json does not state vocab_size, max_position_embeddings"),
        ({**LLAMA, "quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantised .*gptq.*original model"),
        ({**LLAMA, "quantization_config": {"quant_method": "fp8"}}, "quantised .*fp8"),
        ({**LLAMA, "auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}, "its own code .* no code of a model is run"),
        ({"model_type": "phi3"}, "a phi3 model.*choose one of the types gpt2, gpt_neox, llama"),
        ({"model_type": ["llama"]}, "not implemented"),
    ],
)
def test_what_is_not_implemented_is_refused_by_its_name(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_config(config)


def test_every_family_is_among_the_models_compared_with_transformers() -> None:
    assert OPTIONS.keys() == FAMILIES.keys()
    assert all(len(cases) >= 5 for cases in OPTIONS.values())
