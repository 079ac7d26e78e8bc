"""Write models to disk, in our own format or in Hugging Face's.

Our format is a folder with config.json, model.safetensors and the vocabulary.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.inputs import AnyModel, with_tokenizer
from gpt.model import GPT
from gpt.models.checkpoints.families import FAMILIES, GPT2
from gpt.models.checkpoints.files import CONFIG, WEIGHTS
from gpt.models.checkpoints.hugging_face_tokenizer import TOKENIZER_CONFIG, TOKENIZER_JSON, write_json
from gpt.models.checkpoints.layouts import Layout
from gpt.models.checkpoints.options import ACTIVATIONS, FULL, SKIPS_ROTATION, WINDOWED, read_family_options
from gpt.models.checkpoints.tokenizer_formats import SETTINGS_FILES, write_gpt2_files
from gpt.models.checkpoints.translate import expected_shapes, role_of, translate_family, whole, with_half_pairs
from gpt.models.checkpoints.vocabularies import FILES, TokenTable, write_vocabulary
from gpt.read_only import ordinary
from gpt.tokenizer import Tokenizer, Vocabulary, load_vocabulary

# Matrices that transformers stores as (in, out), like OpenAI's released weights.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
NORM_ERROR = 1e-6  # rounding errors of a mean of squares
BIASES = ("bias", "qkv_bias", "proj_bias", "mlp_bias", "head_bias")  # a family may have biases that the model lacks


def save_model(
    folder: Path | str,
    model: AnyModel,
    vocabulary: Vocabulary | Path | str | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    overwrite: bool = False,
) -> None:
    """Write a model in our own format. If interrupted, leaves the files of an existing model intact.

    vocabulary: defaults to a loaded model's tokenizer. dtype: data type for the weights.
    Raises ValueError if the folder already contains a model, unless `overwrite` is True.
    """
    network, tokenizer = with_tokenizer(model)
    state = {
        name: ordinary(value).detach().to("cpu", dtype).contiguous() for name, value in network.state_dict().items()
    }
    if network.config.tie_weights:
        del state["lm_head.weight"]
    known = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary or tokenizer
    with new_folder(Path(folder), overwrite) as new:
        save_file(state, new / WEIGHTS)
        write_vocabulary(known, new)
        write_config(new, dataclasses.asdict(network.config))


def save_hugging_face(
    model: AnyModel,
    folder: Path | str,
    vocabulary: Vocabulary | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    overwrite: bool = False,
) -> None:
    """Write a folder that `AutoModelForCausalLM.from_pretrained` and `AutoTokenizer` from transformers can open.

    Uses the family that the model was read from if possible, otherwise the first equivalent family. A tiktoken
    vocabulary is written for GPT2Tokenizer. Takes the same arguments as `save_model` and raises the same errors. Also
    raises ValueError for a model that no family in transformers can express. transformers computes in float32, as here,
    even if `dtype` stores the weights in half precision.
    """
    network, tokenizer = with_tokenizer(model)
    tokenizer = vocabulary or tokenizer
    state, config = to_transformers(network, getattr(model, "layout", ""))
    with new_folder(Path(folder), overwrite) as new:
        save_file({name: value.to(dtype) for name, value in state.items()}, new / WEIGHTS, metadata={"format": "pt"})
        if isinstance(tokenizer, Tokenizer):
            write_gpt2_files(tokenizer, new)
            if config["model_type"] != GPT2:  # AutoTokenizer expects a different class for other model types
                write_json(new / TOKENIZER_CONFIG, {"tokenizer_class": "GPT2Tokenizer"})
        else:
            write_vocabulary(tokenizer, new)
        if isinstance(tokenizer, TokenTable):
            named = {"eos_token": tokenizer.eot_id, "unk_token": tokenizer.unknown_id}
            names = {role: tokenizer.tokens[i] for role, i in named.items() if i is not None}
            write_json(new / TOKENIZER_JSON, tokenizer.as_tokenizer_json())
            write_json(new / TOKENIZER_CONFIG, {"tokenizer_class": "PreTrainedTokenizerFast", **names})
        start = tokenizer.prefix_ids[0] if tokenizer.prefix_ids else tokenizer.eot_id
        write_config(new, {**config, "bos_token_id": start, "eos_token_id": tokenizer.eot_id, "pad_token_id": None})


def write_config(folder: Path, config: Mapping[str, object]) -> None:
    """Write config.json next to the weights."""
    write_json(folder / CONFIG, config)
    shutil.copymode(folder / CONFIG, folder / WEIGHTS)  # safetensors creates files that only the owner can read


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder. Its files replace the old model if the block ends without an error."""
    if folder.is_file() or (not overwrite and any((folder / name).exists() for name in (CONFIG, WEIGHTS))):
        raise GPTError("save.exists", folder=folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as new:
        yield Path(new)
        written = os.listdir(new)
        for name in written:
            os.replace(Path(new) / name, folder / name)
        for name in {*FILES, *SETTINGS_FILES} - set(written):
            (folder / name).unlink(missing_ok=True)


def to_transformers(model: GPT, layout: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a model's weights and config.json for transformers. Biases that the model lacks become zeros.

    transformers computes in the data type that config.json names, whatever the weights are stored in. It is float32,
    because a model stored in half precision is also computed in float32 here.

    layout: layout of the checkpoint that the model was read from. Its family is tried first.
    Raises ValueError if none of FAMILIES can express the model.
    """
    for name in sorted(FAMILIES, key=lambda name: FAMILIES[name].title != layout):
        values = config_values(name, model.config)
        theirs = read_config(values)
        if theirs is not None and is_same(model.config, theirs):
            weights = to_weights(model, FAMILIES[name], theirs)
            if weights is not None:
                return weights, {"architectures": [FAMILIES[name].model_class], "dtype": "float32", **values}
    defaults = GPTConfig()
    options = {f.name: getattr(model.config, f.name) for f in dataclasses.fields(GPTConfig)}
    unusual = [f"{name}={value!r}" for name, value in options.items() if value != getattr(defaults, name)]
    raise GPTError("layout.no_family", options=", ".join(unusual))


def config_values(name: str, config: GPTConfig) -> dict[str, Any]:
    """Return options for a family, under its own names, that express a configuration as far as possible."""
    family, known = FAMILIES[name], effective(config)
    stated = {option: value for option, value in family.required.items() if value is not None}
    values: dict[str, Any] = {**family.defaults, **stated, "model_type": name}
    values |= dict.fromkeys(family.dropouts, config.dropout)
    for ours, theirs in family.theirs.items():
        if ours == "activation":
            usual = str(family.defaults.get(theirs))
            is_usual = family.activations.get(usual, ACTIVATIONS.get(usual)) == config.activation
            other = {"gelu_tanh": "gelu_pytorch_tanh"}.get(config.activation, config.activation)
            values[theirs] = usual if is_usual else other
        elif ours == "window_rotary_base":
            values[theirs] = config.window_rotary_base or config.rotary_base
        else:
            values[theirs] = known[ours]
    for ours, (theirs, exponent) in family.powers.items():
        value = known[ours] ** (1 / exponent)
        values[theirs] = round(value) if math.isclose(value, round(value), rel_tol=1e-9) else value
    if "rotary_base" in family.stated:
        values |= rope_values(family, config)
    return values | window_values(family, config)


def rope_values(family: Layout, config: GPTConfig) -> dict[str, Any]:
    """Return the options for rotary positions in the formats of transformers 4 and 5."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if (scaling := config.rotary_scaling) is not None:
        rope |= {"rope_type": scaling.kind, "factor": scaling.factor}
        low, high = scaling.low_freq_factor, scaling.high_freq_factor
        if scaling.kind == "llama3":
            rope |= {"low_freq_factor": low, "high_freq_factor": high}
        if scaling.kind == "yarn":
            rope |= {"beta_slow": low, "beta_fast": high, "truncate": scaling.truncate}
        if scaling.kind == "longrope":  # the long factors, for longer texts than ours, are not kept
            rope |= {name: list(scaling.factors) for name in ("short_factor", "long_factor")}
        if scaling.kind != "linear":
            rope["original_max_position_embeddings"] = scaling.original_context
        if scaling.kind in ("yarn", "longrope"):
            rope["attention_factor"] = scaling.attention_factor
    if "rotary_share" in family.stated:
        rope["partial_rotary_factor"] = config.rotary_share
    older = {} if scaling is None else {"rope_scaling": rope}
    if "window_rotary_base" not in family.stated:
        return {"rope_parameters": rope, **older}
    base = config.rotary_base if config.window_rotary_base is None else config.window_rotary_base
    local = {"rope_type": "default", "rope_theta": base}
    return {"rope_parameters": {FULL: rope, WINDOWED: local}, **older}


def window_values(family: Layout, config: GPTConfig) -> dict[str, Any]:
    """Return the options for attention windows and for layers without rotary positions."""
    if family.window not in family.others:
        return {}
    n_layer, window = config.n_layer, config.window
    kinds = [FULL if config.window_of(layer) is None else WINDOWED for layer in range(n_layer)]
    if "attention_types" in family.others:
        names = {FULL: "global", WINDOWED: "local"}
        return {"attention_types": [[[names[kind]], 1] for kind in kinds], family.window: window or config.block_size}
    values: dict[str, Any] = {family.window: window}
    if "layer_types" not in family.required:
        values |= {"layer_types": kinds, family.window: window or config.block_size}
    if "use_sliding_window" in family.others:
        values["use_sliding_window"] = window is not None
    if SKIPS_ROTATION in family.others:
        values["no_rope_layers"] = [int(layer not in config.unrotated_layers) for layer in range(n_layer)]
    return values


def read_config(values: dict[str, Any]) -> GPTConfig | None:
    """Return the configuration that these options describe, or None if they are invalid."""
    try:
        return GPTConfig(**read_family_options(values))
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


def to_weights(model: GPT, family: Layout, theirs: GPTConfig) -> dict[str, Tensor] | None:
    """Return the weights under the family's names, or None if one of them would need two different values.

    Empty weights are translated as if they had been read. Ours are copied into the views that this returns.
    """
    ours = {name: ordinary(value).detach().cpu().float() for name, value in model.state_dict().items()}
    theirs = replace(theirs, tie_weights=model.config.tie_weights)
    found = {name: torch.zeros(shape) for name, shape in stored_shapes(family, theirs).items()}
    weights, _ = translate_family(found, family, dataclasses.asdict(theirs))
    if family.rotary_pairs != "half":
        weights = with_half_pairs(weights, theirs, family)
    if family.normed_embedding:  # its rows x become x / sqrt(mean(x^2) + eps), whose mean square is below 1
        embedding = ours.pop("wte.weight")
        squares = embedding.double().square().mean(dim=1, keepdim=True)
        if squares.max() > 1 + NORM_ERROR:
            return None
        scale = (theirs.norm_eps / (1 - squares).clamp(min=NORM_ERROR)).sqrt()
        found[f"{family.names['wte']}.weight"] = (embedding * scale).float()
    files = {tensor.untyped_storage().data_ptr() for tensor in found.values()}
    if theirs.tie_weights:
        del ours["lm_head.weight"]
    values = {name: value for name, value in ours.items() if name in weights}  # `is_same`: others have no effect
    for name, value in values.items():
        if family.norm_offset and value.dim() == 1 and name.endswith(".weight"):
            values[name] = value = value - family.norm_offset
        for part, rows in zip(weights[name], value.split([len(part) for part in weights[name]]), strict=True):
            if part.untyped_storage().data_ptr() in files:  # norms without weights are not stored
                part.copy_(rows)
    if any(not torch.equal(whole(weights[name]), value) for name, value in values.items()):
        return None
    head = family.names["lm_head"]
    return {name if name.startswith(f"{head}.") else family.prefix + name: value for name, value in found.items()}


def stored_shapes(family: Layout, config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Return {name, without the prefix: shape} for the weights that a family stores."""
    heads, shapes = dict(zip("qkv", (config.n_head, config.kv_heads, config.kv_heads), strict=True)), {}
    for name, shape in expected_shapes(config).items():
        module, _, leaf = name.rpartition(".")
        parts = {role_of(module): shape}
        if module.endswith("c_attn") and "h.{n}.attn.q" in family.names:
            parts = {f"h.{{n}}.attn.{x}": (n * config.head_size, *shape[1:]) for x, n in heads.items()}
        for role, size in parts.items():
            if role in family.names and not (family.plain_norms and re.search(r"ln_|_norm", role)):
                size = size[::-1] if role in family.transposed else size
                size = (size[0] + family.skip_rows.get(role, 0), *size[1:])
                shapes[family.names[role].replace("{n}", name.split(".")[1]) + f".{leaf}"] = size
    for fused, names in family.split.items():
        for name in [name for name in shapes if f".{names[0]}." in name]:
            stacked = [shapes.pop(name.replace(names[0], part)) for part in names]
            shapes[name.replace(names[0], fused)] = (sum(size[0] for size in stacked), *stacked[0][1:])
    return shapes


def transposed(name: str, tensor: Tensor) -> Tensor:
    """Convert a weight from our orientation to that of transformers, or vice versa. Returns a view."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor
