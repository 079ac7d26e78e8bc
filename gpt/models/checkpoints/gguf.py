"""Open GGUF files: find the family of transformers for an architecture of llama.cpp, and its options and weights."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.config import RotaryScaling
from gpt.errors import GPTError
from gpt.models.checkpoints.contents import Contents, Reader
from gpt.models.checkpoints.families import FAMILIES, SIZES
from gpt.models.checkpoints.family_options import FULL, WINDOWED, find_family, rotary_share
from gpt.models.checkpoints.files import CONFIG, several_files
from gpt.models.checkpoints.gguf_file import GGUFFile, is_gguf, read_gguf
from gpt.models.checkpoints.gguf_vocabulary import gguf_tokenizer
from gpt.models.checkpoints.layouts import SEPARATE, Layout, RotaryPairs
from gpt.models.checkpoints.stated import Hints
from gpt.models.checkpoints.vocabularies import PlainIds, vocabulary_or_ids
from gpt.rotary import scale_frequencies
from gpt.tokenizer import Vocabulary

FUSED = "h.{n}.attn.c_attn"
NAMES = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "h.{n}.ln_1": "blk.{n}.attn_norm",
    FUSED: "blk.{n}.attn_qkv",
    "h.{n}.attn.q": "blk.{n}.attn_q",
    "h.{n}.attn.k": "blk.{n}.attn_k",
    "h.{n}.attn.v": "blk.{n}.attn_v",
    "h.{n}.attn.q_norm": "blk.{n}.attn_q_norm",
    "h.{n}.attn.k_norm": "blk.{n}.attn_k_norm",
    "h.{n}.attn.c_proj": "blk.{n}.attn_output",
    "h.{n}.ln_1_post": "blk.{n}.post_attention_norm",
    "h.{n}.ln_2": "blk.{n}.ffn_norm",
    "h.{n}.mlp.c_gate": "blk.{n}.ffn_gate",
    "h.{n}.mlp.c_fc": "blk.{n}.ffn_up",
    "h.{n}.mlp.c_proj": "blk.{n}.ffn_down",
    "h.{n}.ln_2_post": "blk.{n}.post_ffw_norm",
    "ln_f": "output_norm",
    "lm_head": "output",
}
# Our options, and keys of the metadata, after the name of the architecture.
KEYS = (
    ("block_size", "context_length"),
    ("n_layer", "block_count"),
    ("n_head", "attention.head_count"),
    ("n_kv_head", "attention.head_count_kv"),
    ("n_embd", "embedding_length"),
    ("head_dim", "attention.key_length"),
    ("rotary_base", "rope.freq_base"),
    ("window_rotary_base", "rope.freq_base_swa"),
    ("rotary_size", "rope.dimension_count"),
    ("parallel", "use_parallel_residual"),
    ("attn_softcap", "attn_logit_softcapping"),
    ("logit_softcap", "final_logit_softcapping"),
    ("norm_eps", "attention.layer_norm_rms_epsilon"),
    ("norm_eps", "attention.layer_norm_epsilon"),
)
BIASES = {"qkv_bias": ("attn_q", "attn_qkv"), "proj_bias": ("attn_output",), "mlp_bias": ("ffn_up",)}
NUMBERS = {*(key for _, key in KEYS), "attention.value_length", "attention.sliding_window", "rope.scaling.factor"}
WINDOW, PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"
SCALED, SCALING = "rope.scaling.type", "rope.scaling.factor"
# Keys that change the computation and are not read, and the values at which they do not change it.
REFUSED = {
    "expert_count": (0,),
    "attention.clamp_kqv": (0,),
    "attention.scale": (0,),
    "attention.causal": (True,),
    "embedding_scale": (0, 1),
    "residual_scale": (0, 1),
    "logit_scale": (0, 1),
    "rope.scaling.attn_factor": (0, 1),
    "rope.scale_linear": (0, 1),
}
ROPE_FACTORS = "rope_freqs.weight"
MAX_LAYERS = 10_000
LARGEST = {"Gemma 2": 46, "Gemma 3": 62}  # layers of the models of 27B, which scale scores by another width


@dataclass(frozen=True)
class Architecture:
    """An architecture of llama.cpp. family: key of FAMILIES. pairs: see `Layout.rotary_pairs`."""

    family: str
    pairs: RotaryPairs = "half"


ARCHITECTURES = {
    "gpt2": Architecture("gpt2"),
    "llama": Architecture("llama", "interleaved"),
    "qwen2": Architecture("qwen2"),
    "qwen3": Architecture("qwen3"),
    "gemma": Architecture("gemma"),
    "gemma2": Architecture("gemma2"),
    "gemma3": Architecture("gemma3_text"),
    "gptneox": Architecture("gpt_neox"),
    "phi2": Architecture("phi"),
    "phi3": Architecture("phi3"),
    "starcoder": Architecture("gpt_bigcode"),
    "starcoder2": Architecture("starcoder2"),
    "stablelm": Architecture("stablelm"),
    "olmo": Architecture("olmo", "interleaved"),
    "olmo2": Architecture("olmo2"),
    "smollm3": Architecture("smollm3", "interleaved"),
}


def parts_of(path: Path) -> list[Path]:
    """Return the GGUF file at a path or in a folder, all its parts if it is split, or [] if there is another format."""
    if path.is_file():
        return split_parts(path) if is_gguf(path) else []
    found = sorted(each for each in path.glob("*.gguf") if each.is_file())
    if not found or (path / CONFIG).is_file():
        return []
    parts = split_parts(found[0])
    if found != parts:
        raise several_files(found)
    return parts


def part_names(name: str) -> list[str]:
    """Return the names of all parts of a GGUF file that is split, and any other name alone."""
    if (number := re.search(r"-\d{5}-of-(\d{5})\.gguf$", name)) is None:
        return [name]
    return [f"{name[: number.start()]}-{n:05}-of-{number[1]}.gguf" for n in range(1, int(number[1]) + 1)]


def split_parts(path: Path) -> list[Path]:
    """Return all parts of a GGUF file that is split, and any other file alone."""
    parts = [path.with_name(name) for name in part_names(path.name)]
    if missing := [part.name for part in parts if not part.is_file()]:
        raise GPTError("gguf.parts", file=path.name, n=len(parts), missing=missing[0])
    return parts


def read(parts: list[Path], hints: Hints) -> Contents:
    """Read a GGUF file.

    Raises ValueError if it is damaged, or for an architecture or an option that is not implemented.
    """
    file = read_gguf(parts)
    tensors = dict(file.tensors)
    factors = tensors.pop(ROPE_FACTORS, None)
    config = read_config(file, factors)
    family = gguf_family(find_family(config), tensors, ARCHITECTURES[file.metadata["general.architecture"]].pairs)

    def vocabulary(n_vocab: int) -> Vocabulary:
        return vocabulary_or_ids(
            lambda: gguf_tokenizer(file.metadata, n_vocab, parts[0].name) or PlainIds(n_vocab), n_vocab
        )

    return Contents(tensors, vocabulary, config, family=family, folder=parts[0].parent, stored_as=file.main_kind)


GGUF = Reader("GGUF", parts_of, read)


def read_config(file: GGUFFile, factors: Tensor | None) -> dict[str, Any]:
    """Return the options in the metadata as a config.json of transformers. The weights determine sizes and biases.

    factors: what the rotary frequencies are divided by.
    """
    name = str(file.metadata.get("general.architecture"))
    if name not in ARCHITECTURES:
        raise GPTError("gguf.architecture", name=name, known=", ".join(ARCHITECTURES))
    values = {key.partition(".")[2]: value for key, value in file.metadata.items() if key.startswith(f"{name}.")}
    for key in NUMBERS & values.keys():
        if isinstance(value := values[key], list) and value and value.count(value[0]) == len(value):
            values[key] = value[0]  # one for each layer
        if not isinstance(values[key], int | float):
            raise unknown_value(key, value)
    check_values(values)
    model_type = ARCHITECTURES[name].family
    if model_type == "llama" and values.get(WINDOW):
        model_type = "mistral"  # llama.cpp has one architecture for both
    family = FAMILIES[model_type]
    theirs = {**SIZES, **family.stated}
    config: dict[str, Any] = {"model_type": model_type}
    stated = {ours: values[key] for ours, key in KEYS if key in values}
    stated = {"n_kv_head": stated.get("n_head"), "head_dim": None} | stated
    config |= {theirs[ours]: value for ours, value in stated.items() if ours in theirs}
    widths = {name: tensor.shape for name, tensor in file.tensors.items() if tensor.dim() == 2}
    config[theirs["vocab_size"]] = widths.get("token_embd.weight", (None,))[0]
    config[theirs["n_ff"]] = widths.get("blk.0.ffn_down.weight", (None, None))[1]
    config[theirs["tie_weights"]] = "output.weight" not in file.tensors
    for ours, parts in BIASES.items():
        if ours in theirs:
            config[theirs[ours]] = any(f"blk.0.{part}.bias" in file.tensors for part in parts)
    return config | read_rope(family, values, factors) | read_window(family, values)


def check_values(values: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that changes the computation and is not read."""
    for key, without_effect in REFUSED.items():
        if values.get(key, without_effect[0]) not in without_effect:
            raise unknown_value(key, values[key])
    if (kind := values.get(SCALED, "none")) not in ("none", "linear"):
        raise unknown_value(SCALED, kind)
    if values.get("attention.value_length") != values.get("attention.key_length"):
        raise unknown_value("attention.value_length", values.get("attention.value_length"))


def unknown_value(key: str, value: object) -> GPTError:
    """Return the error for an option of the metadata that is not implemented."""
    return GPTError("gguf.option", option=key, value=value)


def read_rope(family: Layout, values: Mapping[str, Any], factors: Tensor | None) -> dict[str, Any]:
    """Return the options for rotary positions, and the scale of the scores, which is not stored."""
    if family.options.get("position") != "rotary":
        return {}
    n_embd, n_head = values.get("embedding_length", 0), values.get("attention.head_count") or 1
    head_size = values.get("attention.key_length") or n_embd // n_head
    rope: dict[str, Any] = {"rope_type": "default"}
    if values.get(SCALED) == "linear":
        rope = {"rope_type": "linear", "factor": values.get(SCALING, 1.0)}
    size = values.get("rope.dimension_count", head_size)
    if "rotary_share" in family.stated:
        rope["partial_rotary_factor"] = rotary_share(size, head_size)
    elif size != head_size:
        raise unknown_value("rope.dimension_count", size)
    if "rope.freq_base" in values:
        rope["rope_theta"] = values["rope.freq_base"]
    if factors is not None:
        rope |= llama3_scaling(rope.get("rope_theta", 10000.0), head_size, factors)
    config: dict[str, Any] = {"rope_parameters": rope}
    if "window_rotary_base" in family.stated:
        config["rope_parameters"] = {FULL: rope}
    if "attn_scale" in family.powers:
        is_largest = values.get("block_count") == LARGEST[family.title]
        config[family.powers["attn_scale"][0]] = n_embd // n_head if is_largest else head_size
    return config


def read_window(family: Layout, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for attention windows. Raises ValueError if the family has none."""
    window, pattern = values.get(WINDOW), values.get(PATTERN)
    if family.window not in family.defaults:
        if window and any(pattern) if isinstance(pattern, list) else window:
            raise unknown_value(WINDOW, window)
        return {}
    config: dict[str, Any] = {family.window: window} if window else {}
    by_layer = "sliding_window_pattern" in family.defaults
    if isinstance(pattern, list) and by_layer:
        config["layer_types"] = [WINDOWED if is_windowed else FULL for is_windowed in pattern]
    elif pattern and by_layer:
        config["sliding_window_pattern"] = pattern
    elif not window and by_layer and WINDOW not in values and "window_rotary_base" in family.stated:
        config["layer_types"] = [FULL] * min(values.get("block_count", 0), MAX_LAYERS)
    elif not window and not by_layer:
        config[family.window] = None
    return config


def gguf_family(family: Layout, named: Mapping[str, Tensor], pairs: RotaryPairs) -> Layout:
    """Return the family with the names and the storage format that its weights have in GGUF."""
    has_fused = "blk.0.attn_qkv.weight" in named
    roles = {role: theirs for role, theirs in family.names.items() if role not in (FUSED, *SEPARATE)}
    first: dict[str, str] = {}  # roles with the same name share their weights
    names = {role: NAMES[first.setdefault(theirs, role)] for role, theirs in roles.items()}
    names |= {role: NAMES[role] for role in ((FUSED,) if has_fused else SEPARATE)}
    stacked = {"ffn_up": ("ffn_gate", "ffn_up")} if family.split and "blk.0.ffn_gate.weight" not in named else {}
    return replace(
        family,
        title=f"GGUF ({family.title})",
        names=names,
        prefix="",
        split=stacked,
        skip_rows={},
        transposed=(),
        qkv_order="qkv",
        norm_offset=0.0,
        rotary_pairs=pairs,
    )


def llama3_scaling(base: float, size: int, factors: Tensor) -> dict[str, Any]:
    """Return the options of Llama 3's scaling that divides the rotary frequencies by these factors.

    The factors are 1 for fast rotations, have one value for slow ones, and are interpolated in between.
    """
    found, factor = 1 / factors.double(), float(factors.max())
    if found.dim() == 1 and len(found) == size // 2 and factor > 1:
        frequencies = 1 / base ** (torch.arange(0, size, 2).double() / size)
        kept = ((found - 1 / factor) / (1 - 1 / factor)).clamp(0, 1)
        between = (kept > 1e-6) & (kept < 1 - 1e-6)
        slow = float(frequencies[kept <= 1e-6].max()) if (kept <= 1e-6).any() else 0.0
        fast = float(frequencies[kept >= 1 - 1e-6].min()) if (kept >= 1 - 1e-6).any() else 2 * float(frequencies[0])
        if between.any():
            near, far = frequencies[between][[0, -1]].tolist()
            at_near, at_far = kept[between][[0, -1]].tolist()
            slope = (at_near - at_far) / (near - far) if near > far else 1 / min(near - slow, fast - near)
            slow, fast = near - at_near / slope, near + (1 - at_near) / slope
        context = max(1, round(2 * math.pi / max(slow, 1e-9)))
        low, high = (context * frequency / (2 * math.pi) for frequency in (slow, fast))
        scaled = scale_frequencies(frequencies, RotaryScaling("llama3", factor, low, high, context))
        if torch.allclose(scaled, frequencies * found, rtol=1e-5, atol=0):
            rope = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high}
            return {**rope, "original_max_position_embeddings": context}
    elif factor == 1:
        return {}
    raise unknown_value(ROPE_FACTORS, [round(value, 3) for value in factors.flatten().tolist()[:8]])
