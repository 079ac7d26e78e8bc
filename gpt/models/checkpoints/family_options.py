"""The options of a transformers model by our names, from its config.json as versions 4 and 5 write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpt.checks import check_integer, check_number
from gpt.config import RotaryScaling
from gpt.errors import GPTError
from gpt.models.checkpoints.families import FAMILIES, SIZES, Family, Values
from gpt.models.checkpoints.hugging_face import ACTIVATIONS

GPT2 = "gpt2"
MAX_CONTEXT = 4096  # block_size of a rotary model: memory for it is allocated with every text
MAX_SIZE = 2**24  # of what is stated: torch cannot multiply much larger ones
LIMITS = {"n_layer": 10_000, "n_head": MAX_SIZE, "n_embd": MAX_SIZE, "head_dim": MAX_SIZE, "block_size": None}
FULL, WINDOWED = "full_attention", "sliding_attention"
SWITCHES = ("tie_weights", "qkv_bias", "proj_bias", "mlp_bias", "parallel")


def check_config(config: Values) -> Family | None:
    """The family of a model, None for GPT-2. Raises ValueError for a model that is of none or cannot be read.

    Nothing but config.json is needed, so a model is refused before its weights are downloaded.
    """
    model_type = config.get("model_type", GPT2)
    if config.get("auto_map"):
        raise GPTError("layout.remote_code", model_type=model_type)
    if quantized := config.get("quantization_config"):
        method = quantized.get("quant_method") if isinstance(quantized, dict) else None
        raise GPTError("layout.quantized", option="quantization_config", method=method or "unknown")
    if model_type == GPT2:
        return None
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise GPTError("layout.model_type", model_type=model_type, known=", ".join((GPT2, *FAMILIES)))
    read_family_options(config)
    return FAMILIES[model_type]


def read_family_options(config: Values) -> dict[str, Any]:
    """The options of a model of FAMILIES, by the names of GPTConfig.

    Raises ValueError for one that is missing, of another type, or not implemented.
    """
    family = FAMILIES[str(config["model_type"])]
    values: Values = {**family.defaults, **config}
    for option, value in family.required.items():
        if values.get(option) not in (value, None):
            raise GPTError("layout.option_value", option=option, value=values[option], implemented=value)
    names = {**SIZES, **family.options}
    if missing := [theirs for theirs in names.values() if theirs not in values]:
        raise GPTError("layout.option_missing", names=", ".join(missing))
    options: dict[str, Any] = {ours: values[theirs] for ours, theirs in names.items()}
    for ours, limit in LIMITS.items():
        if ours != "head_dim" or options.get(ours) is not None:
            check_integer(names[ours], options[ours], 1, limit)
    for ours in (switch for switch in SWITCHES if switch in options):
        if not isinstance(options[ours], bool):
            raise GPTError("layout.option_type", option=names[ours], value=options[ours], expected="true / false")
    options["activation"] = read_activation(names["activation"], options["activation"])
    options["block_size"] = min(options["block_size"], MAX_CONTEXT)
    for ours, (theirs, exponent) in family.powers.items():
        check_number(theirs, values[theirs], 1)
        options[ours] = values[theirs] ** exponent
    options |= read_rotary(family, values)
    options["unrotated_layers"] = read_unrotated_layers(values, options["n_layer"])
    options |= read_windows(family, values, options["n_layer"], options["block_size"])
    return without_defaults({**family.fixed, **options})


def without_defaults(options: dict[str, Any]) -> dict[str, Any]:
    """The options with None for those that say what None means, so that equal models have equal configurations."""
    shared = {"n_kv_head": options["n_head"], "head_dim": options["n_embd"] / options["n_head"]}
    shared["n_ff"] = 4 * options["n_embd"]
    shared |= dict.fromkeys(("qkv_bias", "proj_bias", "mlp_bias"), options.get("bias", True))
    width = options.get("head_dim") or options["n_embd"] // options["n_head"]
    shared["attn_scale"] = width**-0.5 if isinstance(width, int) and width > 0 else None
    return {name: None if name in shared and value == shared[name] else value for name, value in options.items()}


def read_activation(option: str, value: object) -> str:
    """Our name of an activation function."""
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise GPTError("layout.activation", option=option, value=value, choices=", ".join(ACTIVATIONS))
    return ACTIVATIONS[value]


def read_rotary(family: Family, values: Values) -> dict[str, object]:
    """Base, share and scaling of rotary positions.

    Version 5 of transformers writes them all in `rope_parameters`, for Gemma 3 by type of layer; version 4 the scaling
    in `rope_scaling` and the others beside it, where `Family.options` names them.
    """
    given = mapping(values, "rope_parameters")
    by_layer = "window_rotary_base" in family.options
    rope = {**(mapping(given, FULL) if by_layer else given)}
    if scaling := mapping(values, "rope_scaling"):
        rope |= {**scaling, "rope_type": rope_type(scaling)}
    found: dict[str, object] = {"rotary_scaling": read_scaling(rope, values)}
    if "rope_theta" in rope:
        found["rotary_base"] = rope["rope_theta"]
    if by_layer:
        local = mapping(given, WINDOWED)
        if read_scaling(local, values) is not None:
            raise GPTError("layout.rope_type", value=rope_type(local), known="default")
        if "rope_theta" in local:
            found["window_rotary_base"] = local["rope_theta"]
    share = rope.get("partial_rotary_factor", values.get("partial_rotary_factor"))
    if share is not None and "rotary_share" in family.options:
        found["rotary_share"] = share
    elif share not in (None, 1):
        raise GPTError("layout.option_value", option="partial_rotary_factor", value=share, implemented=1.0)
    return found


def read_scaling(rope: Values, values: Values) -> RotaryScaling | None:
    """How the angles are stretched. Raises ValueError for a kind that is not implemented."""
    kind = rope_type(rope)
    if kind == "default":
        return None
    try:
        if kind == "linear":
            return RotaryScaling("linear", rope["factor"])
        if kind == "llama3":
            return RotaryScaling(
                "llama3",
                rope["factor"],
                rope["low_freq_factor"],
                rope["high_freq_factor"],
                rope.get("original_max_position_embeddings", values["max_position_embeddings"]),
            )
    except KeyError as error:
        raise GPTError("layout.option_missing", names=error.args[0]) from None
    raise GPTError("layout.rope_type", value=kind, known="default, linear, llama3")


def rope_type(rope: Values) -> object:
    """The kind of scaling, under its newer or its older name."""
    return rope.get("rope_type", rope.get("type")) or "default"


def read_windows(family: Family, values: Values, n_layer: int, block_size: int) -> dict[str, object]:
    """The window, and the layers without it, from `layer_types` or by the rule of the family; {} if all see the same.

    Gemma's layers without a window have another rotation, too.
    """
    kinds = values.get("layer_types")
    is_on = values.get("use_sliding_window", True) or ("no_rope_layer_interval" in values and kinds is not None)
    window = values.get("sliding_window") if is_on else None  # SmolLM3 with layer_types needs no switch
    if window is None:
        return {}
    check_integer("sliding_window", window, 1)
    if kinds is None:
        kinds = default_layer_types(values, n_layer)
    if not isinstance(kinds, list) or len(kinds) != n_layer or not all(kind in (FULL, WINDOWED) for kind in kinds):
        expected = f"[{n_layer} x {FULL} / {WINDOWED}]"
        raise GPTError("layout.option_type", option="layer_types", value=kinds, expected=expected)
    full = tuple(layer for layer, kind in enumerate(kinds) if kind == FULL)
    if "window_rotary_base" not in family.options and (len(full) == n_layer or window >= block_size):
        return {}
    return {"window": window, "full_layers": full}


def read_unrotated_layers(values: Values, n_layer: int) -> tuple[int, ...]:
    """List the layers without rotary positions: a 0 in `no_rope_layers`, else every `no_rope_layer_interval`-th."""
    if "no_rope_layer_interval" not in values:
        return ()
    rotated = values.get("no_rope_layers")
    if rotated is None:
        every = values["no_rope_layer_interval"]
        check_integer("no_rope_layer_interval", every, 1)
        rotated = [int((layer + 1) % every != 0) for layer in range(n_layer)]
    if not isinstance(rotated, list) or len(rotated) < n_layer or not all(each in (0, 1) for each in rotated):
        raise GPTError("layout.option_type", option="no_rope_layers", value=rotated, expected=f"[{n_layer} x 0 / 1]")
    return tuple(layer for layer in range(n_layer) if not rotated[layer])


def default_layer_types(values: Values, n_layer: int) -> list[str]:
    """transformers' rule for a configuration without `layer_types`."""
    if unrotated := read_unrotated_layers(values, n_layer):
        return [WINDOWED if layer in unrotated else FULL for layer in range(n_layer)]
    every, first = values.get("sliding_window_pattern", n_layer + 1), values.get("max_window_layers", 0)
    check_integer("sliding_window_pattern", every, 1)
    check_integer("max_window_layers", first, 0)
    return [FULL if layer < first or (layer + 1) % every == 0 else WINDOWED for layer in range(n_layer)]


def mapping(values: Values, option: str) -> Mapping[str, object]:
    """A nested object of a configuration, {} without one."""
    value = values.get(option)
    if value is not None and not isinstance(value, dict):
        raise GPTError("layout.option_type", option=option, value=value, expected="{...}")
    return value or {}
