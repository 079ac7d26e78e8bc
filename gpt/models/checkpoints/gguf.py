"""Read GGUF, llama.cpp's file format, as a family of transformers. Weights are dequantised when they are needed."""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType
from gguf.quants import dequantize
from torch import Tensor

from gpt.errors import GPTError, require
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.files import CONFIG, Contents, Deferred, Reader, several_files
from gpt.models.checkpoints.layouts import SEPARATE, Hints, Layout
from gpt.models.checkpoints.options import FULL, WINDOWED, rotary_share
from gpt.models.checkpoints.tokenizer_formats import gguf_tokenizer
from gpt.models.checkpoints.untrusted import map_file, reading
from gpt.models.checkpoints.vocabularies import vocabulary_or_ids
from gpt.tokenizer import PlainIds, Vocabulary

FUSED = "h.{n}.attn.c_attn"
NAMES = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "h.{n}.ln_1": "blk.{n}.attn_norm",
    FUSED: "blk.{n}.attn_qkv",
    **{f"h.{{n}}.attn.{each}": f"blk.{{n}}.attn_{each}" for each in ("q", "k", "v", "q_norm", "k_norm")},
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
WINDOW, PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"
SCALED, SCALING = "rope.scaling.type", "rope.scaling.factor"
ORIGINAL, ATTENTION = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
# Keys that change the computation unless they have one of these values, of which the first is the default.
REFUSED = {
    **dict.fromkeys(("expert_count", "attention.clamp_kqv", "attention.scale"), (0,)),
    **dict.fromkeys(("embedding_scale", "residual_scale", "logit_scale", "rope.scale_linear"), (0, 1)),
    "use_parallel_residual": (False,),
    "attention.causal": (True,),
    SCALED: ("none", "linear", "yarn", "longrope"),
}
ROPE_FACTORS, LONG_FACTORS = ("rope_freqs.weight", "rope_factors_short.weight"), "rope_factors_long.weight"
LARGEST = {"Gemma 2": 46, "Gemma 3": 62}  # layers of the models of 27B, which scale scores by another width
# {architecture of llama.cpp: key of FAMILIES}
ARCHITECTURES = {
    **{name: name for name in ("gpt2", "llama", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "olmo", "olmo2")},
    **{name: name for name in ("starcoder2", "stablelm", "smollm3")},
    **{"gemma3": "gemma3_text", "gptneox": "gpt_neox", "phi2": "phi", "starcoder": "gpt_bigcode"},
}
IN_PAIRS = ("llama", "olmo", "smollm3")  # rotate neighbouring dimensions
MAGIC, VERSIONS, ALIGNMENT = b"GGUF", (2, 3), 32
SCALARS = {**dict(enumerate("BbHhIif?")), 10: "Q", 11: "q", 12: "d"}  # letters of `struct` for types of values
KINDS = {kind.value: kind.name for kind in GGMLQuantizationType}
PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
CHUNK = 2**18  # numbers that are dequantised at a time


def parts_of(path: Path) -> list[Path]:
    """Return the GGUF file at a path or in a folder, all its parts if it is split, or [] if there is another format."""
    found = [] if (path / CONFIG).is_file() else sorted(each for each in path.glob("*.gguf") if each.is_file())
    if path.is_file():
        with path.open("rb") as file:
            found = [path] if file.read(len(MAGIC)) == MAGIC else []
    parts = [found[0].with_name(name) for name in part_names(found[0].name)] if found else []
    if missing := [part.name for part in parts if not part.is_file()]:
        raise GPTError("gguf.parts", file=found[0].name, n=len(parts), missing=missing[0])
    if path.is_dir() and found != parts:
        raise several_files(found)
    return parts


def part_names(name: str) -> list[str]:
    """Return the names of all parts of a GGUF file that is split, and any other name alone."""
    if (number := re.search(r"-\d{5}-of-(\d{5})\.gguf$", name)) is None:
        return [name]
    return [f"{name[: number.start()]}-{n:05}-of-{number[1]}.gguf" for n in range(1, int(number[1]) + 1)]


def read(parts: list[Path], hints: Hints) -> Contents:
    metadata, tensors, kinds = read_gguf(parts)
    config = read_config(metadata, tensors)
    weights = {name: tensor for name, tensor in tensors.items() if name not in (*ROPE_FACTORS, LONG_FACTORS)}
    family = gguf_family(FAMILIES[config["model_type"]], weights, metadata["general.architecture"])

    def vocabulary(n: int) -> Vocabulary:
        return vocabulary_or_ids(lambda: gguf_tokenizer(metadata, n, parts[0].name) or PlainIds(n), n)

    main = max(kinds, key=kinds.__getitem__, default="F32")
    return Contents(weights, vocabulary, config, family=family, folder=parts[0].parent, stored_as=main)


def read_config(metadata: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the options in the metadata as a config.json of transformers. The weights determine sizes and biases."""
    name = str(metadata.get("general.architecture"))
    require(name in ARCHITECTURES, "gguf.architecture", name=name, known=", ".join(ARCHITECTURES))
    values = {key.partition(".")[2]: value for key, value in metadata.items() if key.startswith(f"{name}.")}
    for key in {key for _, key in KEYS} & values.keys():
        if isinstance(value := values[key], list) and value.count(value[0]) == len(value):
            values[key] = value[0]  # one for each layer
        require(not isinstance(values[key], list), "gguf.option", option=key, value=value)
    model_type = ARCHITECTURES[name]
    if model_type == "llama" and values.get(WINDOW):
        model_type = "mistral"  # llama.cpp has one architecture for both
    family = FAMILIES[model_type]
    for key, without_effect in REFUSED.items():
        is_read = key == "use_parallel_residual" and "parallel" in {**family.stated, **family.options}
        if values.get(key, without_effect[0]) not in without_effect and not is_read:
            raise GPTError("gguf.option", option=key, value=values[key])
    size = values.get("attention.value_length")
    require(size == values.get("attention.key_length"), "gguf.option", option="attention.value_length", value=size)
    theirs = family.theirs
    config: dict[str, Any] = {"model_type": model_type}
    stated = {ours: values[key] for ours, key in KEYS if key in values}
    stated = {"n_kv_head": stated.get("n_head"), "head_dim": None} | stated
    config |= {theirs[ours]: value for ours, value in stated.items() if ours in theirs}
    widths = {name: tensor.shape for name, tensor in tensors.items() if tensor.dim() == 2}
    config[theirs["vocab_size"]] = widths.get("token_embd.weight", (None,))[0]
    config[theirs["n_ff"]] = widths.get("blk.0.ffn_down.weight", (None, None))[1]
    config[theirs["tie_weights"]] = "output.weight" not in tensors
    for ours, parts in BIASES.items():
        if ours in theirs:
            config[theirs[ours]] = any(f"blk.0.{part}.bias" in tensors for part in parts)
    return config | read_rope(family, values, tensors) | read_window(family, values)


def read_rope(family: Layout, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the options for rotary positions, and the scale of the scores, which is not stored."""
    if family.options.get("position") != "rotary":
        return {}
    n_embd, n_head = values.get("embedding_length", 0), values.get("attention.head_count") or 1
    head_size = values.get("attention.key_length") or n_embd // n_head
    kind, size = values.get(SCALED, "none"), values.get("rope.dimension_count", head_size)
    attention = values.get(ATTENTION) or 1.0
    rope = {"rope_type": "default" if kind == "none" else kind, "factor": values.get(SCALING, 1.0)}
    rope["original_max_position_embeddings"] = values.get(ORIGINAL) or values.get("context_length")
    factors = next((tensors[name].tolist() for name in ROPE_FACTORS if name in tensors), None)
    if factors is not None:  # divisors of the frequencies, maybe others in long texts, or from Llama 3's scaling
        long_factors = tensors[LONG_FACTORS].tolist() if LONG_FACTORS in tensors else factors
        rope |= {"rope_type": "longrope", "short_factor": factors, "long_factor": long_factors}
        rope |= {"factor": 1.0, "attention_factor": attention}
    else:
        require(kind != "longrope", "gguf.option", option=SCALED, value=kind)
        require(attention == 1, "gguf.option", option=ATTENTION, value=attention)
    if "rotary_share" in family.stated:
        rope["partial_rotary_factor"] = rotary_share(size, head_size)
    else:
        require(size == head_size, "gguf.option", option="rope.dimension_count", value=size)
    if "rope.freq_base" in values:
        rope["rope_theta"] = values["rope.freq_base"]
    config: dict[str, Any] = {"rope_parameters": {FULL: rope} if "window_rotary_base" in family.stated else rope}
    if "attn_scale" in family.powers:
        is_largest = values.get("block_count") == LARGEST[family.title]
        config[family.powers["attn_scale"][0]] = n_embd // n_head if is_largest else head_size
    return config


def read_window(family: Layout, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for attention windows. Raises ValueError if the family has none."""
    window, pattern = values.get(WINDOW), values.get(PATTERN)
    if family.window not in family.others:
        is_on = any(pattern) if window and isinstance(pattern, list) else window
        require(not is_on, "gguf.option", option=WINDOW, value=window)
        return {}
    if "sliding_window_pattern" not in family.others:
        return {family.window: window or None}
    config: dict[str, Any] = {family.window: window} if window else {}
    if isinstance(pattern, list):
        config["layer_types"] = [WINDOWED if is_windowed else FULL for is_windowed in pattern]
    elif pattern:
        config["sliding_window_pattern"] = pattern
    elif WINDOW not in values and "window_rotary_base" in family.stated:
        config["layer_types"] = [FULL] * values.get("block_count", 0)
    return config


def gguf_family(family: Layout, named: Mapping[str, Tensor], architecture: str) -> Layout:
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
        rotary_pairs="interleaved" if architecture in IN_PAIRS else "half",
    )


def read_rows(
    stored: Tensor, kind: GGMLQuantizationType, shape: tuple[int, ...], dtype: torch.dtype, rows: range
) -> Tensor:
    """Return these rows, or blocks of rows, of a matrix of this shape in a data type, dequantised a few at a time.

    stored: The rows of the matrix, (rows, bytes of a row). The numbers of each are in blocks of their own.
    """
    n = len(stored) // shape[0]
    stored = stored[rows.start * n : rows.stop * n]
    found = torch.empty(len(rows), *shape[1:], dtype=dtype)
    n_rows = max(1, CHUNK // shape[-1])
    for some, out in zip(stored.split(n_rows), found.view(-1, shape[-1]).split(n_rows), strict=True):
        out.copy_(torch.from_numpy(dequantize(some.numpy(), kind)).view_as(out))
    return found


def bits_of(kind: str) -> int:
    """Return the bits that a type spends on a number, apart from scales: 4 for "Q4_K"."""
    return int(match[0]) if (match := re.search(r"\d+", kind)) else 32


def read_gguf(paths: Sequence[Path]) -> tuple[dict[str, Any], dict[str, Tensor], Counter[str]]:
    """Return the metadata of a file's first part, all tensors, and how many numbers are stored in each type."""
    metadata: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    kinds: Counter[str] = Counter()
    for path in paths:
        with reading(path), path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            data.seek(len(MAGIC))
            version, n_tensors, n_values = read_numbers(data, "IQQ")
            require(version in VERSIONS, "gguf.version", file=path.name, version=version)
            stated = {read_string(data): read_value(data, *read_numbers(data, "I")) for _ in range(n_values)}
            infos = []
            for _ in range(n_tensors):
                name, (n_sizes,) = read_string(data), read_numbers(data, "I")
                *sizes, kind, offset = read_numbers(data, f"{n_sizes}QIQ")
                infos.append((name, tuple(reversed(sizes)), kind, offset))
            metadata = metadata or stated
            alignment = stated.get("general.alignment", ALIGNMENT)
            start, whole = -(-data.tell() // alignment) * alignment, map_file(path)
            for name, shape, kind, offset in infos:
                try:
                    tensors[name] = stored_tensor(whole, start + offset, shape, KINDS.get(kind, ""))
                except (KeyError, NotImplementedError):
                    raise GPTError("gguf.type", file=path.name, name=name, kind=KINDS.get(kind, kind)) from None
                kinds[KINDS[kind]] += math.prod(shape) if len(shape) > 1 else 0
    return metadata, tensors, kinds


def read_numbers(data: mmap.mmap, form: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{form}", data.read(struct.calcsize(f"<{form}")))


def read_string(data: mmap.mmap) -> str:
    return data.read(*read_numbers(data, "Q")).decode(errors="surrogateescape")


def read_value(data: mmap.mmap, kind: int) -> Any:
    if kind == GGUFValueType.STRING:
        return read_string(data)
    if kind != GGUFValueType.ARRAY:
        found = read_numbers(data, SCALARS[kind])[0]
        return shortest(found) if SCALARS[kind] == "f" else found
    kind, n = read_numbers(data, "IQ")
    if kind == GGUFValueType.STRING:
        return [read_string(data) for _ in range(n)]
    return list(read_numbers(data, f"{n}{SCALARS[kind]}"))


def stored_tensor(whole: torch.UntypedStorage, start: int, shape: tuple[int, ...], name: str) -> Tensor:
    """Return a tensor of the type with this name. Raises KeyError or NotImplementedError for unknown types."""
    kind = GGMLQuantizationType[name]
    n_block, n_bytes = GGML_QUANT_SIZES[kind]
    n_row = shape[-1] // n_block * n_bytes
    stop = start + math.prod(shape[:-1]) * n_row
    if stop > whole.nbytes():
        raise EOFError(f"{whole.nbytes():,} < {stop:,}")
    stored = torch.empty(0, dtype=torch.uint8).set_(whole[start:stop])
    if name in PLAIN:
        return stored.view(PLAIN[name]).view(shape)
    rows = stored.view(-1, n_row)
    dequantize(rows[:1].numpy(), kind)
    return Deferred(partial(read_rows, rows, kind, shape), torch.empty(shape, device="meta"))


def shortest(value: float) -> float:
    """Return the number with the fewest digits that is the same in float32, such as 1e-5."""
    return float(str(np.float32(value)))


GGUF = Reader(parts_of, read, {"GGUF": "`*.gguf`, or the first bytes"})
