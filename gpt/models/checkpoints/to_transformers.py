"""Convert a model to a transformers model: the inverse of `family_options` and `translate`.

Uses the original checkpoint's family if it can express the configuration, and otherwise the first of FAMILIES that
can.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.detection import expected_shapes
from gpt.models.checkpoints.families import FAMILIES, SIZES, Family
from gpt.models.checkpoints.family_options import (
    FULL,
    SKIPS_ROTATION,
    WINDOWED,
    find_family,
    read_family_options,
)
from gpt.models.checkpoints.stated import ACTIVATIONS
from gpt.models.checkpoints.translate import role_of
from gpt.read_only import ordinary

CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gpt_neo": "GPTNeoForCausalLM",
    "phi": "PhiForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "opt": "OPTForCausalLM",
    "stablelm": "StableLmForCausalLM",
    "gemma": "GemmaForCausalLM",
    "olmo": "OlmoForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
    "gpt_bigcode": "GPTBigCodeForCausalLM",
    "gptj": "GPTJForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}
# Matrices that transformers stores as (in, out), like OpenAI's released weights.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
BIASES = ("bias", "qkv_bias", "proj_bias", "mlp_bias", "head_bias")  # a family may have biases that the model lacks


def to_transformers(model: GPT, layout: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a model's weights and config.json for transformers. Biases that the model lacks become zeros.

    transformers computes in the data type that config.json names, whatever the weights are stored in. It is float32,
    because a model stored in half precision is also computed in float32 here.

    layout: layout of the checkpoint that the model was read from. Its family is tried first.
    Raises ValueError if none of FAMILIES can express the model.
    """
    families = sorted(FAMILIES, key=lambda name: FAMILIES[name].layout.title != layout)
    for name in families:
        for values in config_values(name, model.config):
            theirs = read_config(values)
            if theirs is not None and is_same(model.config, theirs):
                weights = to_weights(model, find_family(values), theirs)
                if weights is not None:
                    return weights, {"architectures": [CLASSES[name]], "dtype": "float32", **values}
    defaults = GPTConfig()
    options = {f.name: getattr(model.config, f.name) for f in dataclasses.fields(GPTConfig)}
    unusual = [f"{name}={value!r}" for name, value in options.items() if value != getattr(defaults, name)]
    raise GPTError(
        "layout.no_family",
        "no transformers model combines these options: {options}; save this model in our own format",
        options=", ".join(unusual),
    )


def config_values(name: str, config: GPTConfig) -> Iterable[dict[str, Any]]:
    """Yield candidate options for a family, under its own names, to express a configuration."""
    family = FAMILIES[name]
    stated = {option: value for option, value in family.required.items() if value is not None}
    values: dict[str, Any] = {**family.defaults, **stated, "model_type": name}
    values |= dict.fromkeys(family.dropouts, config.dropout)
    for ours, theirs in {**SIZES, **family.options}.items():
        if ours == "activation":
            usual = family.defaults.get(theirs)
            values[theirs] = usual if read_name(family, usual) == config.activation else their_name(config.activation)
        elif ours == "window_rotary_base":
            values[theirs] = config.window_rotary_base or config.rotary_base
        else:
            values[theirs] = effective(config)[ours]
    for ours, (theirs, exponent) in family.powers.items():
        value = effective(config)[ours] ** (1 / exponent)
        values[theirs] = round(value) if math.isclose(value, round(value), rel_tol=1e-9) else value
    values |= {theirs: values[other] for theirs, other in family.equal.items()}
    if "rotary_base" in family.options:
        values |= rope_values(family, config)
    values |= window_values(family, config)
    yield values
    for option, value, _ in family.variants:
        yield {**values, option: value}


def their_name(activation: str) -> str:
    """Return the name that transformers uses for an activation function."""
    return {"gelu_tanh": "gelu_pytorch_tanh"}.get(activation, activation)


def read_name(family: Family, name: object) -> str | None:
    """Return our name for a family's activation function, or None if there is none."""
    return family.activations.get(str(name), ACTIVATIONS.get(str(name)))


def rope_values(family: Family, config: GPTConfig) -> dict[str, Any]:
    """Return the options for rotary positions in the formats of transformers 4 and 5."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if (scaling := config.rotary_scaling) is not None:
        rope |= {"rope_type": scaling.kind, "factor": scaling.factor}
        if scaling.kind == "llama3":
            rope |= {
                "low_freq_factor": scaling.low_freq_factor,
                "high_freq_factor": scaling.high_freq_factor,
                "original_max_position_embeddings": scaling.original_context,
            }
    if "rotary_share" in family.options:
        rope["partial_rotary_factor"] = config.rotary_share
    older = {} if scaling is None else {"rope_scaling": rope}
    if "window_rotary_base" not in family.options:
        return {"rope_parameters": rope, **older}
    base = config.rotary_base if config.window_rotary_base is None else config.window_rotary_base
    local = {"rope_type": "default", "rope_theta": base}
    return {"rope_parameters": {FULL: rope, WINDOWED: local}, **older}


def window_values(family: Family, config: GPTConfig) -> dict[str, Any]:
    """Return the options for attention windows and for layers without rotary positions."""
    if family.window not in family.defaults:
        return {}
    n_layer, window = config.n_layer, config.window
    kinds = [FULL if config.window_of(layer) is None else WINDOWED for layer in range(n_layer)]
    if "attention_types" in family.defaults:
        names = {FULL: "global", WINDOWED: "local"}
        return {"attention_types": [[[names[kind]], 1] for kind in kinds], family.window: window or config.block_size}
    values: dict[str, Any] = {family.window: window}
    if "layer_types" not in family.required:
        values |= {"layer_types": kinds, family.window: window or config.block_size}
    if "use_sliding_window" in family.defaults:
        values["use_sliding_window"] = window is not None
    if SKIPS_ROTATION in family.defaults:
        values["no_rope_layers"] = [int(layer not in config.unrotated_layers) for layer in range(n_layer)]
    return values


def read_config(values: dict[str, Any]) -> GPTConfig | None:
    """Return the configuration that these options describe, or None if they are invalid."""
    try:
        options = read_family_options(values)
        return GPTConfig(**options)
    except ValueError:
        return None


def is_same(ours: GPTConfig, theirs: GPTConfig) -> bool:
    """Return whether models with the two configurations compute the same function, apart from dropout."""
    left, right = effective(ours), effective(theirs)
    for name in left.keys() - {"dropout"}:
        a, b = left[name], right[name]
        if name in BIASES and b and not a:
            continue  # these biases are zeros
        if not (math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b):
            return False
    return True


def effective(config: GPTConfig) -> dict[str, Any]:
    """Return the configuration with every default replaced by its effective value."""
    values = {f.name: getattr(config, f.name) for f in dataclasses.fields(GPTConfig)}
    windows = [config.window_of(layer) for layer in range(config.n_layer)]
    windows = [None if window is not None and window >= config.block_size else window for window in windows]
    bases = [config.window_rotary_base if config.window_of(layer) else None for layer in range(config.n_layer)]
    values |= {
        "n_ff": config.ff_size,
        "n_kv_head": config.kv_heads,
        "head_dim": config.head_size,
        "qkv_bias": config.has_qkv_bias,
        "proj_bias": config.has_proj_bias,
        "mlp_bias": config.has_mlp_bias,
        "attn_scale": config.score_scale,
        "rotary_size": config.rotary_size,
        "rotary_share": config.rotary_size / config.head_size,
        "window": windows,
        "full_layers": None,
        "window_rotary_base": bases,  # one per layer
    }
    if config.position != "rotary":
        values |= dict.fromkeys(("rotary_base", "rotary_share", "rotary_size", "rotary_scaling"), None)
    return values


def to_weights(model: GPT, family: Family, theirs: GPTConfig) -> dict[str, Tensor] | None:
    """Return the weights under the family's names, or None if one of them would need two different values."""
    layout, config = family.layout, model.config
    ours = {name: ordinary(value).detach().cpu().float() for name, value in model.state_dict().items()}
    for name, shape in expected_shapes(replace(theirs, tie_weights=config.tie_weights)).items():
        if name.endswith(".bias"):
            ours.setdefault(name, torch.zeros(shape))
    found: dict[str, Tensor] = {}
    for name, value in their_parts(ours, family, config):
        if config.tie_weights and name == layout.names["lm_head"] + ".weight":
            continue
        if name in found and not torch.equal(found[name], value):
            return None
        found[name] = value.contiguous()
    for fused, parts in family.split.items():
        for name in [name for name in found if f".{parts[0]}." in name]:
            rows = [found.pop(name.replace(parts[0], part)) for part in parts]
            found[name.replace(parts[0], fused)] = torch.cat(rows)
    if family.plain_norms:
        norms = [name for name, value in found.items() if "norm" in name and value.dim() == 1]
        if any(not torch.equal(found[name], torch.full_like(found[name], name.endswith("weight"))) for name in norms):
            return None
        found = {name: value for name, value in found.items() if name not in norms}
    head = layout.names["lm_head"]
    return {name if name.startswith(f"{head}.") else family.prefix + name: value for name, value in found.items()}


def their_parts(ours: dict[str, Tensor], family: Family, config: GPTConfig) -> Iterable[tuple[str, Tensor]]:
    """Yield the name, without the prefix, and the value of each weight."""
    layout, rows = family.layout, [n * config.head_size for n in (config.n_head, config.kv_heads, config.kv_heads)]
    for name, value in ours.items():
        module, _, leaf = name.rpartition(".")
        role, n = role_of(module), module.split(".")[1] if module.startswith("h.") else ""
        if role == "h.{n}.attn.c_attn":
            parts = list(value.split(rows))
            if layout.rotary_pairs == "interleaved":
                parts[:2] = [neighbours(part, config) for part in parts[:2]]
            if "h.{n}.attn.q" in layout.names:
                for letter, part in zip("qkv", parts, strict=True):
                    yield f"{layout.names[f'h.{{n}}.attn.{letter}'].format(n=n)}.{leaf}", part
                continue
            if layout.qkv_order == "heads":
                parts = [torch.stack([part.unflatten(0, (config.n_head, -1)) for part in parts], dim=1).flatten(0, 2)]
            value = torch.cat(parts)
        if role not in layout.names:
            continue  # the family lacks this part; `is_same` has ensured that it has no effect
        if layout.transposed:
            value = transposed(name, value)
        if layout.norm_offset and value.dim() == 1 and leaf == "weight":
            value = value - layout.norm_offset
        if skipped := family.skip_rows.get(role):
            value = torch.cat([value.new_zeros(skipped, value.shape[1]), value])
        yield f"{layout.names[role].format(n=n)}.{leaf}", value


def transposed(name: str, tensor: Tensor) -> Tensor:
    """Convert a weight from our orientation to that of transformers, or vice versa. Returns a view."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor


def neighbours(rows: Tensor, config: GPTConfig) -> Tensor:
    """Reorder rows of queries or keys for models that rotate neighbours together; see `translate.with_half_pairs`."""
    heads = rows.unflatten(0, (-1, config.head_size))
    first, second, rest = heads.split([config.rotary_size // 2] * 2 + [config.head_size - config.rotary_size], dim=1)
    return torch.cat([torch.stack([first, second], dim=2).flatten(1, 2), rest], dim=1).flatten(0, 1)
