"""Convert a model to a transformers model: the inverse of `family_options` and `translate`.

The family is the one the model was read from, or the first of FAMILIES, whose options reproduce its configuration.
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
# Matrices that transformers stores as (in, out), as OpenAI's release does.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
BIASES = ("bias", "qkv_bias", "proj_bias", "mlp_bias", "head_bias")  # a family may have them where the model has none


def to_transformers(model: GPT, layout: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights and the config.json of a model; biases that only the family has are zeros.

    layout: of the checkpoint that the model was read from; its family is tried first.
    Raises ValueError for a model that is of none of FAMILIES.
    """
    families = sorted(FAMILIES, key=lambda name: FAMILIES[name].layout.title != layout)
    for name in families:
        for values in config_values(name, model.config):
            theirs = read_config(values)
            if theirs is not None and is_same(model.config, theirs):
                weights = to_weights(model, find_family(values), theirs)
                if weights is not None:
                    return weights, {"architectures": [CLASSES[name]], **values}
    defaults = GPTConfig()
    options = {f.name: getattr(model.config, f.name) for f in dataclasses.fields(GPTConfig)}
    unusual = [f"{name}={value!r}" for name, value in options.items() if value != getattr(defaults, name)]
    raise GPTError(
        "layout.no_family",
        "no model of transformers has these options together: {options}; save this model in our own format",
        options=", ".join(unusual),
    )


def config_values(name: str, config: GPTConfig) -> Iterable[dict[str, Any]]:
    """Yield options of a family, by its names, that may express a configuration."""
    family = FAMILIES[name]
    stated = {option: value for option, value in family.required.items() if value is not None}
    values: dict[str, Any] = {**family.defaults, **stated, "model_type": name}
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
    """Transformers' name of an activation."""
    return {"gelu_tanh": "gelu_pytorch_tanh"}.get(activation, activation)


def read_name(family: Family, name: object) -> str | None:
    """Our name of an activation of a family."""
    return family.activations.get(str(name), ACTIVATIONS.get(str(name)))


def rope_values(family: Family, config: GPTConfig) -> dict[str, Any]:
    """Return the options of rotary positions, as versions 4 and 5 of transformers read them."""
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
    """Return the options of windows, and of layers without rotary positions."""
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
    """Return the configuration that these options are read as, None if they are no model."""
    try:
        options = read_family_options(values)
        return GPTConfig(**options)
    except ValueError:
        return None


def is_same(ours: GPTConfig, theirs: GPTConfig) -> bool:
    """Return whether a model of one configuration computes what one of the other computes, up to dropout."""
    left, right = effective(ours), effective(theirs)
    for name in left.keys() - {"dropout"}:
        a, b = left[name], right[name]
        if name in BIASES and b and not a:
            continue  # zeros
        if not (math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b):
            return False
    return True


def effective(config: GPTConfig) -> dict[str, Any]:
    """Every option with the value that it stands for."""
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
        "window_rotary_base": bases,  # of each layer
    }
    if config.position != "rotary":
        values |= dict.fromkeys(("rotary_base", "rotary_share", "rotary_size", "rotary_scaling"), None)
    return values


def to_weights(model: GPT, family: Family, theirs: GPTConfig) -> dict[str, Tensor] | None:
    """Return the weights by the family's names; None if one of its weights would have to be two different ones."""
    layout, config = family.layout, model.config
    ours = {name: value.detach().cpu().float() for name, value in model.state_dict().items()}
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
    """Yield name and value of each weight, without the prefix."""
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
            continue  # a part that the family has not: `is_same` has excluded that it matters
        if layout.transposed:
            value = transposed(name, value)
        if layout.norm_offset and value.dim() == 1 and leaf == "weight":
            value = value - layout.norm_offset
        if skipped := family.skip_rows.get(role):
            value = torch.cat([value.new_zeros(skipped, value.shape[1]), value])
        yield f"{layout.names[role].format(n=n)}.{leaf}", value


def transposed(name: str, tensor: Tensor) -> Tensor:
    """Return a view of a weight in our orientation, given transformers', or the other way round."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor


def neighbours(rows: Tensor, config: GPTConfig) -> Tensor:
    """Rows of queries or keys for rotary positions that rotate neighbours together, see `translate.with_half_pairs`."""
    heads = rows.unflatten(0, (-1, config.head_size))
    first, second, rest = heads.split([config.rotary_size // 2] * 2 + [config.head_size - config.rotary_size], dim=1)
    return torch.cat([torch.stack([first, second], dim=2).flatten(1, 2), rest], dim=1).flatten(0, 1)
