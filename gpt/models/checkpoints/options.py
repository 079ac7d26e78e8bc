"""Read a model's options: from the config.json of a family in transformers, or from what training programs save."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from gpt.config import GPTConfig, RotaryScaling, ScalingKind
from gpt.errors import GPTError, check_integer, is_integer, is_number, require
from gpt.models.checkpoints.families import FAMILIES, GPT2
from gpt.models.checkpoints.files import CONFIG
from gpt.models.checkpoints.layouts import SCALES, Layout, Options
from gpt.models.checkpoints.untrusted import Record, reading

Values = Mapping[str, Any]  # contents of a config.json
MAX_LAYERS = 10_000
# Methods of quantisation that `gpt.models.checkpoints.quantized` reads, and formats of compressed-tensors.
QUANTIZED = ("bitsandbytes", "gptq", "awq", "compressed-tensors", "fp8", "fbgemm_fp8", "metal", "MLX")
FORMATS = ("dense", "pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mixed-precision")
FULL, WINDOWED = "full_attention", "sliding_attention"
CLASSIFIERS = re.compile(r"For(Sequence|Token)Classification|ForQuestionAnswering|RewardModel")
SKIPS_ROTATION = "no_rope_layer_interval"
GPT_NEO_LAYERS = {"global": FULL, "local": WINDOWED}
ORIGINAL = "original_max_position_embeddings"
# {kind of scaling: {option of transformers: field of RotaryScaling}}, for reading and writing.
LIMITS = {"factor": "factor", ORIGINAL: "original_context"}
FACTORS = LIMITS | {"attention_factor": "attention_factor"}
SCALING: dict[ScalingKind, dict[str, str]] = {
    "linear": {"factor": "factor"},
    "dynamic": {"factor": "factor", "max_position_embeddings": "original_context"},
    "llama3": LIMITS | {name: name for name in ("low_freq_factor", "high_freq_factor")},
    "yarn": FACTORS | {"beta_slow": "low_freq_factor", "beta_fast": "high_freq_factor", "truncate": "truncate"},
    "longrope": FACTORS | {"short_factor": "factors", "long_factor": "long_factors"},
}
# {transformers' name: our name} for activation functions.
ACTIVATIONS = {
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate", "gelu_tanh"), "gelu_tanh"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    "relu": "relu",
    **dict.fromkeys(("relu2", "relu_squared"), "relu2"),
}


def check_config(config: Values) -> Layout | None:
    """Return a model's family, or None if config.json is in our format. Without a model_type, the family is GPT-2.

    This needs only config.json, so unsupported models are rejected before their weights are downloaded.
    Raises ValueError if the family is unknown or an option is not supported.
    """
    model_type = config.get("model_type")
    if "model_type" not in config and not config.get("auto_map"):
        family = None if "tie_weights" in config else FAMILIES[GPT2]
    elif isinstance(model_type, str) and model_type in FAMILIES:
        family = FAMILIES[model_type]
    else:
        raise GPTError("layout.model_type", model_type=model_type, known=", ".join(FAMILIES))
    if (quantized := quantization_of(config)) is not None:
        method = str(quantized.get("quant_method", "MLX" if "group_size" in quantized else "unknown"))
        form = str(quantized.get("format", "dense"))
        if method not in QUANTIZED or form not in FORMATS or quantized.get("mode", "affine") != "affine":
            raise GPTError("layout.quantized", method=method if form in FORMATS else f"{method} ({form})")
    if CLASSIFIERS.search(str(config.get("architectures"))):
        raise GPTError("layout.classifier", sign=config["architectures"][0])
    if model_type is not None:
        GPTConfig(**read_family_options(config))
    return family


def quantization_of(config: Values) -> Values | None:
    """Return how the weights are quantised, as transformers or MLX state it, or None if they are not."""
    stated = config.get("quantization_config") or config.get("quantization")
    return stated if isinstance(stated, dict) else None


def read_family_options(config: Values) -> Options:
    family = FAMILIES[config.get("model_type", GPT2)]
    values = {**family.defaults, **config}
    for option, only in family.required.items():  # the only values that are implemented
        value = values.get(option)
        require(value in (only, None), "layout.option_value", option=option, value=value, implemented=only)
    check_complete(values, family.theirs.values())
    check_integer(family.theirs["n_layer"], values[family.theirs["n_layer"]], 1, MAX_LAYERS)
    with reading(CONFIG):  # values of other types
        options: Options = {ours: values[theirs] for ours, theirs in family.theirs.items()}
        name = options["activation"]
        options["activation"] = family.activations.get(name) or our_activation(family.theirs["activation"], name)
        options |= {ours: values[theirs] ** exponent for ours, (theirs, exponent) in family.powers.items()}
        options |= read_rotary(family, values) if "rotary_base" in family.stated else {}
        if (scaling := options.get("rotary_scaling")) is not None and scaling.kind == "dynamic":
            options["block_size"] = int(scaling.factor * scaling.original_context)
        if "rotary_size" in options:
            options["rotary_share"] = rotary_share(options.pop("rotary_size"), options["n_embd"] // options["n_head"])
        layers = read_layers(family, values, options["n_layer"], options["block_size"])
        return {**family.options, **options, **layers}


def rotary_share(size: int, head_size: int) -> float:
    """Return the fraction of a head that makes `GPTConfig.rotary_size` equal to `size`."""
    share = size / max(head_size, 1)
    return share if int(head_size * share) == size else math.nextafter(share, math.inf)


def read_rotary(family: Layout, values: Values) -> Options:
    """Read the base, share and scaling of rotary positions.

    Version 5 of transformers writes them to `rope_parameters` (separately for each layer type in Gemma 3). Version 4
    writes the scaling to `rope_scaling` and the rest to the top level, under the names in `Layout.stated`.
    """
    by_layer = "window_rotary_base" in family.stated
    given = values.get("rope_parameters") or {}
    rope, local = (given.get(FULL) or {}, given.get(WINDOWED) or {}) if by_layer else (given, {})
    require(rope_type(local) == "default", "layout.rope_type", value=rope_type(local), known="default")
    if older := values.get("rope_scaling"):
        rope = {**rope, **older, "rope_type": rope_type(older)}
    share = rope.get("partial_rotary_factor")
    if "rotary_share" not in family.stated:
        name, value = "partial_rotary_factor", values.get("partial_rotary_factor") if share is None else share
        require(value in (1.0, None), "layout.option_value", option=name, value=value, implemented=1.0)
    found: Options = {"rotary_base": rope.get("rope_theta"), "rotary_share": share}
    found |= {"window_rotary_base": local.get("rope_theta"), "rotary_scaling": read_scaling(rope, values)}
    return {ours: value for ours, value in found.items() if value is not None}


def check_complete(values: Collection[str], names: Collection[str]) -> None:
    if missing := [name for name in names if name not in values]:
        raise GPTError("layout.option_missing", names=", ".join(missing))


def read_scaling(rope: Values, values: Values) -> RotaryScaling | None:
    """Read the scaling of rotary angles. Raises ValueError for an unsupported kind."""
    kind = {"su": "longrope"}.get(rope_type(rope), rope_type(rope))  # its first name
    if kind == "default":
        return None
    require(kind in SCALING, "layout.rope_type", value=kind, known="default, " + ", ".join(SCALING))
    longest = values["max_position_embeddings"]
    context = rope.get(ORIGINAL) or values.get(ORIGINAL) or longest
    factor = rope.get("factor") or max(1.0, longest / context)
    length = math.log(max(factor, 1.0))
    usual: Options = {"original_context": longest if kind == "dynamic" else context}
    if kind == "yarn":
        mscale, all_dim = rope.get("mscale"), rope.get("mscale_all_dim")
        both = (mscale, all_dim) if mscale and all_dim else (1.0, 0.0)
        attention, divisor = (0.1 * each * length + 1 for each in both)
        usual |= {"factor": factor, "low_freq_factor": 1, "high_freq_factor": 32, "truncate": True}
        usual["attention_factor"] = attention / divisor
    if kind == "longrope":
        usual |= {"factor": factor, "attention_factor": math.sqrt(1 + length / math.log(context))}
    names = SCALING[kind]
    found = usual | {ours: rope[theirs] for theirs, ours in names.items() if rope.get(theirs) is not None}
    check_complete([theirs for theirs, ours in names.items() if ours in found], names)
    return RotaryScaling(kind, **{ours: found[ours] for ours in names.values()})


def rope_type(rope: Values) -> Any:
    """Return the kind of scaling, stored under its current or former name."""
    return rope.get("rope_type", rope.get("type")) or "default"


def read_layers(family: Layout, values: Values, n_layer: int, block_size: int) -> Options:
    """Read which layers have no rotary positions, and which have a window."""
    others, numbers = family.others, range(n_layer)
    unrotated: tuple[int, ...] = ()
    if SKIPS_ROTATION in others:  # layers with 0 in `no_rope_layers`, by default every n-th layer
        rotated = values.get("no_rope_layers")
        rotated = [(layer + 1) % values[SKIPS_ROTATION] for layer in numbers] if rotated is None else rotated
        unrotated = tuple(layer for layer in numbers if not rotated[layer])
    kinds, window = values.get("layer_types"), values[family.window] if family.window in others else None
    if not values.get("use_sliding_window", True) and (SKIPS_ROTATION not in others or kinds is None):
        window = None  # SmolLM3 ignores the switch if layer_types is present
    if window is None:
        return {"unrotated_layers": unrotated}
    option = "layer_types"
    if "attention_types" in others:  # GPT-Neo's [[[kind, ...], repetitions], ...]
        option, repeated = "attention_types", values["attention_types"]
        every = (GPT_NEO_LAYERS[kind] for of, n in repeated for _ in range(n) for kind in of)
        kinds = list(islice(every, n_layer + 1))
    elif kinds is None and unrotated:
        kinds = [WINDOWED if layer in unrotated else FULL for layer in numbers]
    elif kinds is None:
        every_nth = values["sliding_window_pattern"] if "sliding_window_pattern" in others else n_layer + 1
        first = values["max_window_layers"] if "max_window_layers" in others else 0
        kinds = [FULL if layer < first or (layer + 1) % every_nth == 0 else WINDOWED for layer in numbers]
    if len(kinds) != n_layer or not {*kinds} <= {FULL, WINDOWED}:
        form, value = f"[{n_layer} x {FULL} / {WINDOWED}]", values.get(option)
        raise GPTError("layout.option_type", option=option, value=value, file=CONFIG, expected=form)
    full = tuple(layer for layer in numbers if kinds[layer] == FULL)
    if "window_rotary_base" not in family.stated and (len(full) == n_layer or window >= block_size):
        return {"unrotated_layers": unrotated}
    return {"unrotated_layers": unrotated, "window": window, "full_layers": full}


LLAMA_32_WIDTH = 3072  # width of Llama 3.2 3B; larger models with scaled angles are Llama 3.1
# Names that other training programs use for our options.
SYNONYMS = {
    "n_head": "n_head n_heads num_heads num_attention_heads nhead heads",
    "n_layer": "n_layer n_layers num_layers num_hidden_layers n_blocks num_blocks",
    "n_embd": "n_embd n_embed d_model dim_embedding dim emb_dim embed_dim embedding_dim hidden_size",
    "n_ff": "n_ff n_inner d_ff ffn_dim dim_feedforward intermediate_size",
    "block_size": "block_size context_length context_size ctx n_ctx n_positions seq_length seq_len max_seq_len max_len"
    " max_position_embeddings",
    "vocab_size": "vocab_size n_vocab",
    "n_kv_head": "n_kv_head n_kv_heads num_key_value_heads n_query_groups",
    "head_dim": "head_dim",
    "window": "sliding_window",
    "norm_eps": "norm_eps layer_norm_epsilon layer_norm_eps layernorm_eps ln_eps rms_norm_eps",
    "activation": "activation activation_function hidden_act",
    "attn_scale": "attn_scale",
    "rotary_base": "rotary_base rope_theta rope_base",
    "tie_weights": "tie_weights tie_word_embeddings weight_tying",
}
# Checkpoint entries that contain such options. Those that describe the model itself come first.
MODEL_ARGS = "model_args"
PLACES = (
    *(MODEL_ARGS, "model_config", "config", "hparams", "hyper_parameters", "hyperparameters", "params", "args", "cfg"),
)


def options_inside(entries: Mapping[str, object], determined: Collection[str] = ()) -> Options:
    """Return the options in a checkpoint's other entries or in another file. The first of the same options wins.

    determined: Options that the weights determine. They are read only from "model_args", because other entries may
    describe another model, such as nanoGPT's defaults.
    Raises ValueError for an activation function that is not implemented.
    """
    found: Options = {}
    for name, place in places(entries):
        stated: Options = {}
        for ours, names in SYNONYMS.items():
            values = [place[theirs] for theirs in names.split() if is_value(ours, place.get(theirs))]
            if values:
                stated[ours] = values[0]
        if place.get("use_scaled_rope"):  # in Meta's params.json; the factor is not stated, but fixed for each model
            is_small = stated.get("n_embd", 0) <= LLAMA_32_WIDTH
            factor = place.get("rope_scaling_factor") or (32.0 if is_small else 8.0)
            stated["rotary_scaling"] = RotaryScaling("llama3", factor)
        kept = {ours: value for ours, value in stated.items() if name == MODEL_ARGS or ours not in determined}
        found = kept | found
    if "activation" in found:
        found["activation"] = our_activation("activation", found["activation"])
    return found


def places(entries: Mapping[str, Any]) -> Iterator[tuple[str, Values]]:
    """Yield (name, options) for the entries that contain options: those in PLACES, the file itself, other objects."""
    objects = [name for name, value in entries.items() if isinstance(value, Record) and name not in PLACES]
    for name in (*PLACES, "", *objects):
        place = entries.get(name) if name else entries
        if isinstance(place, Mapping):
            yield name, place
            inside = (*PLACES, "model") if name else ()
            yield from ((inner, place[inner]) for inner in inside if isinstance(place.get(inner), Mapping))


def our_activation(option: str, value: Any) -> str:
    name = value.lower() if isinstance(value, str) else ""
    require(name in ACTIVATIONS, "layout.activation", option=option, value=value, choices=", ".join(ACTIVATIONS))
    return ACTIVATIONS[name]


def is_value(ours: str, value: Any) -> bool:
    if ours == "activation":
        return isinstance(value, str)
    if ours == "attn_scale":
        return value in SCALES or is_number(value)
    if ours == "tie_weights":
        return isinstance(value, bool)
    return is_number(value) if ours in ("norm_eps", "rotary_base") else is_integer(value) and value > 0
