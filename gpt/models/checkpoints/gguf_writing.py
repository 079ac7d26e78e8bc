"""Write models as GGUF files, for llama.cpp and the programs that build on it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from gguf import GGUFWriter
from gguf.constants import GGMLQuantizationType, GGUFValueType, LlamaFileType
from gguf.quants import quantize
from torch import Tensor

from gpt.checks import check_choice, require
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.inputs import AnyModel, with_tokenizer
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.gguf import (
    ARCHITECTURES,
    FUSED,
    KEYS,
    NAMES,
    ORIGINAL,
    PATTERN,
    ROPE_FACTORS,
    SCALED,
    SCALING,
    WINDOW,
    GGUFFile,
    gguf_family,
    read_config,
    shortest,
)
from gpt.models.checkpoints.hugging_face_tokenizer import BYTE_TOKEN, SPACE, HuggingFaceTokenizer
from gpt.models.checkpoints.layouts import Layout
from gpt.models.checkpoints.tokenizer_formats import (
    BYTE,
    CONTROL,
    NORMAL,
    PLACE,
    ROLES,
    SPLITS,
    STARTS_WITH_BOS,
    UNKNOWN,
    USER_DEFINED,
    letters_and_merges,
    merges_of,
)
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.checkpoints.writing import config_values, effective, is_same, to_weights
from gpt.models.checkpoints.writing import read_config as config_of
from gpt.rotary import rotary_frequencies
from gpt.tokenizer import Tokenizer, Vocabulary

Kind = Literal["F32", "F16", "Q8_0"]
FILE_TYPES = {"F32": LlamaFileType.ALL_F32, "F16": LlamaFileType.MOSTLY_F16, "Q8_0": LlamaFileType.MOSTLY_Q8_0}
POSITIONS = "position_embd.weight"  # llama.cpp expects it in float32
OWN_HEAD = ("gptneox", "olmo2", "phi2", "stablelm")  # llama.cpp opens them only with an output matrix
NO_HEAD = ("gemma", "gemma2")  # llama.cpp always uses the embedding
N_BLOCK = 32  # numbers in a block of Q8_0


def save_gguf(
    model: AnyModel, path: Path | str, vocabulary: Vocabulary | None = None, *, kind: Kind = "F16", layout: str = ""
) -> None:
    """Write a GGUF file in the first architecture of llama.cpp that expresses the model.

    vocabulary: Defaults to a loaded model's tokenizer. kind: The type of the matrices; norms and biases are in float32.
    layout: The layout that the model was read from, whose family is tried first. Defaults to a loaded model's.
    Raises ValueError if the file exists, or if GGUF cannot express the model or its vocabulary.
    """
    check_choice("kind", kind, get_args(Kind))
    path = Path(path)
    require(not path.exists(), "gguf.exists", path=path)
    network, tokenizer = with_tokenizer(model)
    found = (
        (metadata, tensors)
        for metadata, family, config in candidates(network.config, layout or getattr(model, "layout", ""))
        if (tensors := to_weights(network, family, config)) is not None
    )
    metadata, tensors = next(found, ({}, {}))
    require(tensors, "gguf.no_architecture")
    if metadata["general.architecture"] in OWN_HEAD and network.config.tie_weights:
        tensors["output.weight"] = tensors["token_embd.weight"]
    if (factors := rope_factors(network.config)) is not None:
        tensors[ROPE_FACTORS] = factors
    metadata |= vocabulary_metadata(vocabulary or tokenizer)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as new:
        part = Path(new) / path.name
        write(part, metadata | {"general.file_type": int(FILE_TYPES[kind])}, tensors, kind)
        os.replace(part, path)


def candidates(config: GPTConfig, layout: str) -> Iterator[tuple[dict[str, Any], Layout, GPTConfig]]:
    """Yield the metadata, the family and its configuration for the architectures that express a configuration.

    layout: The layout that the model was read from. Its family is tried first.
    """
    known = sorted(ARCHITECTURES.items(), key=lambda item: FAMILIES[item[1]].title not in layout)
    for name, model_type in known:
        values = config_values(model_type, config)
        theirs = config_of(values)
        if theirs is None or not is_same(config, theirs):
            continue
        family = FAMILIES[model_type]
        metadata = {"general.architecture": name}
        metadata |= {f"{name}.{key}": value for key, value in options(family, config).items()}
        stored = {NAMES[FUSED].replace("{n}", "0") + ".weight": torch.empty(0)} if FUSED in family.names else {}
        family = gguf_family(family, stored, name)
        is_ignored = f"{name}.{WINDOW}" in metadata and f"{name}.{PATTERN}" not in metadata  # by llama.cpp
        is_ignored |= name in NO_HEAD and not config.tie_weights
        if not is_ignored and is_same(config, read_back(metadata, config)):
            yield metadata, family, theirs


def options(family: Layout, config: GPTConfig) -> dict[str, Any]:
    """Return the options of a model as keys of the metadata, without the architecture's name."""
    values, rms = effective(config), config.norm == "rms"
    theirs = family.stated
    found: dict[str, Any] = {"feed_forward_length": config.ff_size, "attention.head_count_kv": config.kv_heads}
    for ours, key in KEYS:
        value = values.get(ours)
        is_stated = ours in theirs and value is not None and ours not in ("rotary_size", "window_rotary_base")
        if is_stated and (ours != "norm_eps" or ("rms" in key) == rms):
            found[key] = value
    if "attention.key_length" in found:
        found["attention.value_length"] = found["attention.key_length"]
    if config.position == "rotary":
        found["rope.freq_base"] = config.rotary_base
        found["rope.dimension_count"] = config.rotary_size
        if config.window_rotary_base is not None and "window_rotary_base" in theirs:
            found["rope.freq_base_swa"] = config.window_rotary_base
        scaling = config.rotary_scaling
        if scaling is not None and scaling.kind in ("linear", "yarn"):
            found |= {SCALED: scaling.kind, SCALING: scaling.factor}
            found |= {ORIGINAL: scaling.original_context} if scaling.kind == "yarn" else {}
    windows = [config.window_of(layer) is not None for layer in range(config.n_layer)]
    if any(windows) and config.window is not None and config.window < config.block_size:
        found[WINDOW] = config.window
        found |= {PATTERN: windows} if "sliding_window_pattern" in family.others else {}
    return {key: shortest(value) if isinstance(value, float) else value for key, value in found.items()}


def read_back(metadata: dict[str, Any], config: GPTConfig) -> GPTConfig:
    """Return the configuration that a reader finds in the metadata."""
    sizes = {"token_embd.weight": (config.vocab_size, 1), "blk.0.ffn_down.weight": (1, config.ff_size)}
    tensors = {name: torch.empty(size, device="meta") for name, size in sizes.items()}
    named = {"attn_q": config.has_qkv_bias, "attn_output": config.has_proj_bias, "ffn_up": config.has_mlp_bias}
    tensors |= {f"blk.0.{name}.bias": torch.empty(0) for name, has_bias in named.items() if has_bias}
    tensors |= {} if config.tie_weights else {"output.weight": torch.empty(0)}
    factors = rope_factors(config)
    try:
        found = config_of(read_config(GGUFFile(metadata, tensors, {}), factors))
    except GPTError:
        found = None
    if found is None:
        return GPTConfig()
    return found if factors is None else replace(found, rotary_scaling=config.rotary_scaling)  # the same factors


def rope_factors(config: GPTConfig) -> Tensor | None:
    """Return what scaling divides each rotary frequency by, or None if GGUF states the scaling in another way."""
    scaling = config.rotary_scaling
    if scaling is None or scaling.kind not in ("llama3", "longrope") or scaling.attention_factor != 1:
        return None
    size, base = config.rotary_size, config.rotary_base
    return rotary_frequencies(size, base) / rotary_frequencies(size, base, scaling)


def write(path: Path, metadata: dict[str, Any], tensors: dict[str, Tensor], kind: Kind) -> None:
    """Write a file. Matrices whose rows have no whole number of blocks are written in float16 instead of Q8_0."""
    writer = GGUFWriter(path, metadata.pop("general.architecture"))
    types = {bool: GGUFValueType.BOOL, int: GGUFValueType.UINT32, float: GGUFValueType.FLOAT32}
    for key, value in metadata.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, types.get(type(value), GGUFValueType.STRING))
    for name, tensor in tensors.items():
        fits = "F16" if kind == "Q8_0" and tensor.shape[-1] % N_BLOCK else kind
        stored = GGMLQuantizationType[fits if tensor.dim() > 1 and name != POSITIONS else "F32"]
        writer.add_tensor(name, quantize(tensor.numpy(), stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def vocabulary_metadata(vocabulary: Vocabulary | None) -> dict[str, Any]:
    """Return the metadata for a vocabulary. Raises ValueError if GGUF has no vocabulary of this kind."""
    if vocabulary is None or isinstance(vocabulary, PlainIds):
        return {f"{PLACE}.model": "none"}
    if isinstance(vocabulary, Tokenizer):
        ids, merges = letters_and_merges(vocabulary.encoding._mergeable_ranks)
        special = vocabulary.special_names
        found = byte_level(ids | special, [" ".join(pair) for pair in merges], "gpt-2", dict.fromkeys(special, CONTROL))
        roles = {"bos_token": vocabulary.eot_id, "eos_token": vocabulary.eot_id}
    elif isinstance(vocabulary, HuggingFaceTokenizer):
        found = library_vocabulary(vocabulary)
        ids = vocabulary._tokenizer.get_vocab()
        roles = {role: ids.get(name) for role, name in vocabulary.settings.tokens.items()}
        if roles.get("eos_token") is None:
            roles["eos_token"] = vocabulary.eot_id
    else:
        raise GPTError("gguf.vocabulary", kind=type(vocabulary).__name__)
    for role, token_id in roles.items():
        if role in ROLES and token_id is not None:
            found[f"{ROLES[role]}_token_id"] = token_id
    found["add_bos_token"] = bool(vocabulary.prefix_ids)
    metadata = {f"{PLACE}.{name}": value for name, value in found.items()}
    chat = vocabulary.settings.chat if isinstance(vocabulary, HuggingFaceTokenizer) else None
    return metadata if chat is None else metadata | {"tokenizer.chat_template": chat.source}


def byte_level(ids: dict[str, int], merges: list[str], pre: str, kinds: dict[str, int]) -> dict[str, Any]:
    """Return the metadata of byte-level BPE. kinds: {token: type} for tokens that are not normal."""
    names = {token_id: name for name, token_id in ids.items()}
    tokens = [names.get(i, f"[PAD{i}]") for i in range(max(names) + 1)]
    types = [kinds.get(token, NORMAL) for token in tokens]
    return {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": types, "merges": merges}


def library_vocabulary(vocabulary: HuggingFaceTokenizer) -> dict[str, Any]:
    """Return the metadata for a vocabulary of the `tokenizers` library. Raises ValueError if it is of another kind."""
    content = json.loads(vocabulary._tokenizer.to_str())
    model, normalizer, pre_tokenizer = content["model"], content["normalizer"], content["pre_tokenizer"]
    if model["type"] != "BPE":
        raise GPTError("gguf.vocabulary", kind=model["type"])
    added = {each["content"]: each for each in content["added_tokens"]}
    kinds = {name: CONTROL if each["special"] else USER_DEFINED for name, each in added.items()}
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    ids = {**model["vocab"], **{name: each["id"] for name, each in added.items()}}
    splits = pre_tokenizer.get("pretokenizers", [pre_tokenizer]) if pre_tokenizer else []
    if any(each["type"] == "ByteLevel" for each in splits):
        return byte_level(ids, merges, pattern_name(normalizer, splits, model), kinds)
    if not model.get("byte_fallback") or (pre_tokenizer and pre_tokenizer["type"] not in ("Split", "Metaspace")):
        raise GPTError("gguf.vocabulary", kind=pre_tokenizer["type"] if pre_tokenizer else model["type"])
    rank: dict[str, int] = {}
    for n, (left, right) in enumerate(merge.split(" ") for merge in merges):
        rank.setdefault(left + right, n)
    names = {token_id: name for name, token_id in ids.items()}
    tokens = [names.get(i, f"[PAD{i}]") for i in range(max(names) + 1)]
    kinds |= {token: BYTE for token in tokens if BYTE_TOKEN.fullmatch(token)}
    kinds |= {model["unk_token"]: UNKNOWN} if model.get("unk_token") else {}
    scores = [float(-rank.get(token, len(merges))) for token in tokens]
    types = [kinds.get(token, NORMAL) for token in tokens]
    if len(merges) < len(merges_of(list(zip(tokens, scores, types, strict=True)))):
        raise GPTError("gguf.vocabulary", kind="BPE")  # SentencePiece tries all pairs that make a token
    whole = [kind == USER_DEFINED for kind in types]
    return {
        "model": "llama",
        "pre": "default",
        "tokens": [token.replace(SPACE, " ") if each else token for token, each in zip(tokens, whole, strict=True)],
        "scores": scores,
        "token_type": types,
        "add_space_prefix": vocabulary.strips_space,
    }


def pattern_name(normalizer: Any, splits: list[dict[str, Any]], model: dict[str, Any]) -> str:
    """Return llama.cpp's name for the way in which a byte-level vocabulary splits texts."""
    patterns = [each["pattern"]["Regex"] for each in splits if each["type"] == "Split"]
    digits = any(each["type"] == "Digits" for each in splits)
    for pre, (normal, known) in SPLITS.items():
        theirs = [each["pattern"]["Regex"] for each in known if each["type"] == "Split"]
        same = theirs == patterns and any(each["type"] == "Digits" for each in known) == digits and normal == normalizer
        if same and (pre in STARTS_WITH_BOS) == bool(model.get("ignore_merges")):
            return pre
    raise GPTError("gguf.vocabulary", kind=f"BPE {patterns or [each['type'] for each in splits]}"[:80])
