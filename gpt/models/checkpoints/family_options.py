"""Read the options of a transformers model from its config.json, as written by versions 4 and 5."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from gpt.checks import check_integer, check_number, check_switch, is_integer
from gpt.config import RotaryScaling
from gpt.errors import GPTError
from gpt.models.checkpoints.families import EXPERTS, FAMILIES, GPT2, REASONS, SIZES
from gpt.models.checkpoints.layouts import Layout
from gpt.models.checkpoints.stated import ACTIVATIONS, unknown_activation, wrong_type

Values = Mapping[str, Any]  # contents of a config.json
MAX_CONTEXT = 4096  # limit for block_size in rotary models: every text allocates memory for the whole context
MAX_SIZE = 2**24  # limit for sizes in config.json: torch cannot multiply much larger matrices
FULL, WINDOWED = "full_attention", "sliding_attention"
CLASSIFIERS = re.compile(r"For(Sequence|Token)Classification|ForQuestionAnswering|RewardModel")
CLASSIFIER_HEADS = re.compile(r"(score|classifier|qa_outputs|classification_head(\.\w+)?)\.weight")
SKIPS_ROTATION = "no_rope_layer_interval"
GPT_NEO_LAYERS = {"global": FULL, "local": WINDOWED}


def check_activation(option: str, value: object) -> None:
    """Raise ValueError unless value is the name of a known activation function."""
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise unknown_activation(option, value)


# Check for each of our options, called with the option's name in config.json and its value.
CHECKS: dict[str, Callable[[str, object], None]] = {
    **dict.fromkeys(
        ("vocab_size", "n_head", "n_embd", "n_ff", "n_kv_head"), partial(check_integer, low=1, high=MAX_SIZE)
    ),
    **dict.fromkeys(("head_dim", "rotary_size"), partial(check_integer, low=1, high=MAX_SIZE)),
    "n_layer": partial(check_integer, low=1, high=10_000),
    "block_size": partial(check_integer, low=1),
    "dropout": partial(check_number, low=0.0, high=1.0),
    "rotary_share": partial(check_number, low=0.0, high=1.0),
    **dict.fromkeys(("norm_eps", "rotary_base", "window_rotary_base"), partial(check_number, low=0.0)),
    **dict.fromkeys(("tie_weights", "qkv_bias", "proj_bias", "mlp_bias", "parallel"), check_switch),
    **dict.fromkeys(("attn_softcap", "logit_softcap"), partial(check_number, low=0.0)),
    "activation": check_activation,
}


def check_config(config: Values) -> Layout | None:
    """Return a model's family, or None if config.json is in our format. Without a model_type, the family is GPT-2.

    This needs only config.json, so unsupported models are rejected before their weights are downloaded.

    Raises:
        ValueError: If the family is unknown or an option is not supported.
    """
    model_type = config.get("model_type")
    if "model_type" not in config and not config.get("auto_map"):
        family = None if "tie_weights" in config else FAMILIES[GPT2]
    elif isinstance(model_type, str) and model_type in FAMILIES:
        family = FAMILIES[model_type]
    else:
        known = ", ".join(FAMILIES)
        if (reason := refusal_reason(config)) is not None:
            raise GPTError("layout.model_type_reason", model_type=model_type, reason=reason, known=known)
        if config.get("auto_map"):
            raise GPTError("layout.remote_code", model_type=model_type)
        raise GPTError("layout.model_type", model_type=model_type, known=known)
    if quantized := config.get("quantization_config"):
        method = quantized.get("quant_method") if isinstance(quantized, dict) else None
        raise GPTError("layout.quantized", option="quantization_config", method=method or "unknown")
    if CLASSIFIERS.search(str(config.get("architectures"))):
        raise classifier(config["architectures"][0])
    if model_type is not None:
        read_family_options(config)
    return family


def check_classifier(named: Mapping[str, Tensor]) -> None:
    """Raise ValueError if the weights have a classifier's head, not one with as many rows as the token embedding."""
    shapes = [tensor.shape for tensor in named.values()]
    heads = [name for name, each in named.items() if CLASSIFIER_HEADS.fullmatch(name) and shapes.count(each.shape) == 1]
    if heads and not any("head" in name for name in named.keys() - set(heads)):
        raise classifier(heads[0])


def classifier(sign: object) -> GPTError:
    """Return the error for a classifier. sign: the name of its class or of a weight."""
    return GPTError("layout.classifier", sign=sign)


def refusal_reason(config: Values) -> GPTError | None:
    """Return an error explaining why a model outside FAMILIES is unsupported, or None if the reason is unknown."""
    parts = [config, mapping(config, "text_config")]
    types = [part.get("model_type") for part in parts]
    named = [reason for reason, names in REASONS.items() if any(each in names for each in types)]
    for part in parts:
        layers = part.get("layer_types")
        has_experts = (
            any(is_integer(n := part.get(name)) and n > 1 for name in EXPERTS) and part.get("use_moe") is not False
        )
        named += ["alibi"] if part.get("alibi") is True else []
        named += ["experts"] if has_experts else []
        named += ["linear_attention"] if isinstance(layers, list) and "linear_attention" in layers else []
        named += ["encoder_decoder"] if part.get("is_encoder_decoder") is True else []
        named += ["images"] if isinstance(part.get("vision_config"), dict) else []
    sentences = {
        "alibi": GPTError("layout.reason.alibi"),
        "experts": GPTError("layout.reason.experts"),
        "linear_attention": GPTError("layout.reason.linear_attention"),
        "recurrent": GPTError("layout.reason.recurrent"),
        "sinks": GPTError("layout.reason.sinks"),
        "encoder_decoder": GPTError("layout.reason.encoder_decoder"),
        "encoder": GPTError("layout.reason.encoder"),
        "images": GPTError("layout.reason.images"),
    }
    return sentences[named[0]] if named else None


def find_family(config: Values) -> Layout:
    """Return the family of a configuration, with its variants applied."""
    family = FAMILIES[config.get("model_type", GPT2)]
    values = {**family.defaults, **config}
    for option, value, changes in family.variants:
        if option in values:
            check_switch(option, values[option])
            if values[option] == value:
                family = replace(family, **changes)
    return family


def read_family_options(config: Values) -> dict[str, Any]:
    """Return the options of a model in FAMILIES, under GPTConfig's names.

    Raises:
        ValueError: If an option is missing, has the wrong type, or is not supported.
    """
    family = find_family(config)
    values: Values = {**family.defaults, **config}
    for option, value in family.required.items():
        check_implemented(option, values.get(option), value)
    for option, other in family.equal.items():
        check_implemented(option, values.get(option), values.get(other))
    names = {**SIZES, **family.stated}
    check_complete(values, names.values())
    for ours, theirs in names.items():
        may_be_null = (
            ours in ("n_kv_head", "head_dim", "attn_softcap", "logit_softcap") or family.defaults.get(theirs, 0) is None
        )
        if values[theirs] is not None or not may_be_null:
            CHECKS[ours](theirs, values[theirs])
    options: dict[str, Any] = {ours: values[theirs] for ours, theirs in names.items()}
    options["activation"] = family.activations.get(options["activation"], ACTIVATIONS[options["activation"]])
    for ours, (theirs, exponent) in family.powers.items():
        check_number(theirs, values[theirs], 1)
        options[ours] = values[theirs] ** exponent
    if family.options.get("position") == "rotary":
        options["block_size"] = min(options["block_size"], MAX_CONTEXT)
        options |= read_rotary(family, values)
    options["unrotated_layers"] = read_unrotated_layers(family, values, options["n_layer"])
    if (size := options.pop("rotary_size", None)) is not None:
        options["rotary_share"] = rotary_share(size, options["n_embd"] // options["n_head"])
    options |= read_windows(family, values, options["n_layer"], options["block_size"])
    return without_defaults({**family.options, **options})


def rotary_share(size: int, head_size: int) -> float:
    """Return the fraction of a head that makes `GPTConfig.rotary_size` equal to `size`."""
    share = size / max(head_size, 1)
    return share if int(head_size * share) == size else math.nextafter(share, math.inf)


def without_defaults(options: dict[str, Any]) -> dict[str, Any]:
    """Replace options that equal their default with None, so that equal models have equal configurations."""
    shared = {"n_kv_head": options["n_head"], "head_dim": options["n_embd"] / options["n_head"]}
    shared["n_ff"] = 4 * options["n_embd"]
    shared |= dict.fromkeys(("qkv_bias", "proj_bias", "mlp_bias"), options.get("bias", True))
    width = options.get("head_dim") or options["n_embd"] // options["n_head"]
    shared["attn_scale"] = width**-0.5 if isinstance(width, int) and width > 0 else None
    return {name: None if name in shared and value == shared[name] else value for name, value in options.items()}


def read_rotary(family: Layout, values: Values) -> dict[str, object]:
    """Read the base, share and scaling of rotary positions.

    Version 5 of transformers writes them to `rope_parameters` (separately for each layer type in Gemma 3). Version 4
    writes the scaling to `rope_scaling` and the rest to the top level, under the names in `Layout.stated`.
    """
    if "rotary_base" not in family.stated:
        return {}
    given = mapping(values, "rope_parameters")
    by_layer = "window_rotary_base" in family.stated
    rope = {**(mapping(given, FULL) if by_layer else given)}
    if scaling := mapping(values, "rope_scaling"):
        rope |= {**scaling, "rope_type": rope_type(scaling)}
    found: dict[str, object] = {"rotary_scaling": read_scaling(rope, values)}
    stated = {"rotary_base": rope.get("rope_theta")}
    if by_layer:
        local = mapping(given, WINDOWED)
        if read_scaling(local, values) is not None:
            raise unknown_scaling(local, "default")
        stated["window_rotary_base"] = local.get("rope_theta")
    for ours, base in stated.items():
        if base is not None:
            CHECKS[ours]("rope_theta", base)
            found[ours] = base
    share = rope.get("partial_rotary_factor")
    if "rotary_share" not in family.stated:
        share = values.get("partial_rotary_factor") if share is None else share
        check_implemented("partial_rotary_factor", share, 1.0)
    elif share is not None:
        CHECKS["rotary_share"]("partial_rotary_factor", share)
        found["rotary_share"] = share
    return found


def check_implemented(option: str, value: object, implemented: object) -> None:
    """Raise ValueError if an option has an unsupported value."""
    if value not in (implemented, None):
        raise GPTError("layout.option_value", option=option, value=value, implemented=implemented)


def check_complete(values: Values, names: Iterable[str]) -> None:
    """Raise ValueError if an option is missing."""
    if missing := [name for name in names if name not in values]:
        raise GPTError("layout.option_missing", names=", ".join(missing))


def unknown_scaling(rope: Values, known: str) -> GPTError:
    """Return the error for an unsupported kind of scaling."""
    return GPTError("layout.rope_type", value=rope_type(rope), known=known)


def read_scaling(rope: Values, values: Values) -> RotaryScaling | None:
    """Read the scaling of rotary angles. Raises ValueError for an unsupported kind."""
    kind = rope_type(rope)
    if kind == "default":
        return None
    if kind not in ("linear", "llama3"):
        raise unknown_scaling(rope, "default, linear, llama3")
    context = rope.get("original_max_position_embeddings", values["max_position_embeddings"])
    names = ("factor",) if kind == "linear" else ("factor", "low_freq_factor", "high_freq_factor")
    check_complete(rope, names)
    for name in names:
        check_number(name, rope[name], 0.0)
    if kind == "linear":
        return RotaryScaling("linear", rope["factor"])
    check_integer("original_max_position_embeddings", context, 1)
    return RotaryScaling("llama3", rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"], context)


def rope_type(rope: Values) -> object:
    """Return the kind of scaling, stored under its current or former name."""
    return rope.get("rope_type", rope.get("type")) or "default"


def read_windows(family: Layout, values: Values, n_layer: int, block_size: int) -> dict[str, object]:
    """Read the window and the layers without one from `layer_types` or the family's rule; {} if no layer has a window.

    In Gemma, layers without a window also use different rotary angles.
    """
    if family.window not in family.defaults:
        return {}
    check_switch("use_sliding_window", values.get("use_sliding_window", True))
    kinds = values.get("layer_types")
    is_on = values.get("use_sliding_window", True) or (SKIPS_ROTATION in family.defaults and kinds is not None)
    window = values[family.window] if is_on else None  # SmolLM3 ignores the switch if layer_types is present
    if window is None:
        return {}
    check_integer(family.window, window, 1)
    if "attention_types" in values:
        kinds = expand_attention_types(values["attention_types"], n_layer)
    elif kinds is None:
        kinds = default_layer_types(family, values, n_layer)
    if not isinstance(kinds, list) or len(kinds) != n_layer or not all(kind in (FULL, WINDOWED) for kind in kinds):
        expected = f"[{n_layer} x {FULL} / {WINDOWED}]"
        raise wrong_type("layer_types", kinds, expected)
    full = tuple(layer for layer, kind in enumerate(kinds) if kind == FULL)
    if "window_rotary_base" not in family.stated and (len(full) == n_layer or window >= block_size):
        return {}
    return {"window": window, "full_layers": full}


def expand_attention_types(types: object, n_layer: int) -> list[str]:
    """Expand GPT-Neo's [[[kind, ...], repetitions], ...] to a list of layer types."""
    kinds: list[object] = []
    for pair in types if isinstance(types, list) else []:
        of, n = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        if isinstance(of, list) and is_integer(n) and len(kinds) + n * len(of) <= n_layer:
            kinds += of * n
    if len(kinds) != n_layer or not all(isinstance(kind, str) and kind in GPT_NEO_LAYERS for kind in kinds):
        expected = f"[[[{' / '.join(GPT_NEO_LAYERS)}, ...], n], ...]: {n_layer}"
        raise wrong_type("attention_types", types, expected)
    return [GPT_NEO_LAYERS[str(kind)] for kind in kinds]


def read_unrotated_layers(family: Layout, values: Values, n_layer: int) -> tuple[int, ...]:
    """Return the layers without rotary positions: those with 0 in `no_rope_layers`, by default every n-th layer."""
    if SKIPS_ROTATION not in family.defaults:
        return ()
    rotated = values.get("no_rope_layers")
    if rotated is None:
        every = values[SKIPS_ROTATION]
        check_integer(SKIPS_ROTATION, every, 1)
        rotated = [int((layer + 1) % every != 0) for layer in range(n_layer)]
    if (
        not isinstance(rotated, list)
        or len(rotated) < n_layer
        or not all(is_integer(n) and n in (0, 1) for n in rotated)
    ):
        raise wrong_type("no_rope_layers", rotated, f"[{n_layer} x 0 / 1]")
    return tuple(layer for layer in range(n_layer) if not rotated[layer])


def default_layer_types(family: Layout, values: Values, n_layer: int) -> list[str]:
    """Return the layer types that transformers uses if `layer_types` is missing."""
    if unrotated := read_unrotated_layers(family, values, n_layer):
        return [WINDOWED if layer in unrotated else FULL for layer in range(n_layer)]
    rules = {"sliding_window_pattern": n_layer + 1, "max_window_layers": 0}
    every, first = (values[name] if name in family.defaults else rule for name, rule in rules.items())
    check_integer("sliding_window_pattern", every, 1)
    check_integer("max_window_layers", first, 0)
    return [FULL if layer < first or (layer + 1) % every == 0 else WINDOWED for layer in range(n_layer)]


def mapping(values: Values, option: str) -> Mapping[str, object]:
    """Return a nested object in a configuration, or {} if it is missing. Raises ValueError for any other type."""
    value = values.get(option)
    if value is not None and not isinstance(value, dict):
        raise wrong_type(option, value, "{...}")
    return value or {}
