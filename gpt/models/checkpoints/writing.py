"""Write models to disk: in our own format, in Hugging Face's, or as GGUF for llama.cpp.

Our format is a folder with config.json, model.safetensors and the vocabulary.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from gguf import GGUFWriter
from gguf.constants import GGMLQuantizationType, LlamaFileType
from gguf.quants import quantize
from safetensors.torch import save_file
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError, check_choice, require
from gpt.inputs import AnyModel, with_tokenizer
from gpt.model import GPT
from gpt.models.checkpoints import gguf, tokenizer_formats
from gpt.models.checkpoints import hugging_face_tokenizer as hf
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.families import FAMILIES, GPT2
from gpt.models.checkpoints.files import CONFIG, WEIGHTS
from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer, write_json
from gpt.models.checkpoints.layouts import Hints, Layout
from gpt.models.checkpoints.options import ACTIVATIONS, FULL, SCALING, SKIPS_ROTATION, WINDOWED, read_family_options
from gpt.models.checkpoints.tokenizer_formats import CONTROL, PLACE, SETTINGS_FILES, USER_DEFINED, write_gpt2_files
from gpt.models.checkpoints.translate import add_missing, expected_shapes, half_pairs, stored_shapes, translate, whole
from gpt.models.checkpoints.untrusted import read_json
from gpt.models.checkpoints.vocabularies import FILES, TokenTable, write_vocabulary
from gpt.read_only import ordinary
from gpt.rotary import rotary_frequencies
from gpt.tokenizer import PlainIds, Tokenizer, Vocabulary, load_vocabulary

Kind = Literal["F32", "F16", "Q8_0"]
POSITIONS = "position_embd.weight"  # llama.cpp expects it in float32
OWN_HEAD = ("gptneox", "olmo2", "phi2", "stablelm")  # llama.cpp opens them only with an output matrix
NO_HEAD = ("gemma", "gemma2")  # llama.cpp always uses the embedding
N_BLOCK = 32  # numbers in a block of Q8_0
# Dropouts in transformers, besides the one in `Layout.stated`. Each family ignores those of the others.
DROPOUTS = ("attention_dropout", "attn_pdrop", "embd_pdrop", "embed_dropout", "embedding_dropout")
NORM_ERROR = 1e-6  # rounding errors of a mean of squares
# Names of the properties that replace an option of None by its default.
EFFECTIVE = {"n_ff": "ff_size", "n_kv_head": "kv_heads", "head_dim": "head_size", "attn_scale": "score_scale"}
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
        write_json(new / CONFIG, asdict(network.config))


def save_hugging_face(
    model: AnyModel,
    folder: Path | str,
    vocabulary: Vocabulary | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    overwrite: bool = False,
) -> None:
    """Write a folder that `AutoModelForCausalLM.from_pretrained` and `AutoTokenizer` from transformers can open.

    Uses the family that the model was read from if possible, otherwise the first equivalent family. Biases that the
    model lacks become zeros. A tiktoken vocabulary is written for GPT2Tokenizer. Takes the same arguments as
    `save_model` and raises the same errors. Also raises ValueError for a model that no family in transformers can
    express. transformers computes in float32, as here, even if `dtype` stores the weights in half precision.
    """
    network, tokenizer = with_tokenizer(model)
    tokenizer = vocabulary or tokenizer
    for name, options, theirs in equivalents(network.config, getattr(model, "layout", "")):
        if (state := to_weights(network, FAMILIES[name], theirs)) is not None:
            config = {"architectures": [FAMILIES[name].model_class], "dtype": "float32", **options}
            break
    else:
        values, defaults = vars(network.config), {each.name: each.default for each in fields(GPTConfig)}
        unusual = [f"{option}={value!r}" for option, value in values.items() if value != defaults[option]]
        raise GPTError("layout.no_family", options=", ".join(unusual))
    start = tokenizer.prefix_ids[0] if tokenizer.prefix_ids else tokenizer.eot_id
    config |= {"bos_token_id": start, "eos_token_id": tokenizer.eot_id, "pad_token_id": None}
    with new_folder(Path(folder), overwrite) as new:
        stored = {name: value.to(dtype).contiguous() for name, value in state.items()}
        save_file(stored, new / WEIGHTS, metadata={"format": "pt"})
        write_json(new / CONFIG, config)
        if isinstance(tokenizer, Tokenizer):
            write_gpt2_files(tokenizer, new)
            if config["model_type"] != GPT2:  # AutoTokenizer expects a different class for other model types
                write_json(new / hf.TOKENIZER_CONFIG, {"tokenizer_class": "GPT2Tokenizer"})
        else:
            write_vocabulary(tokenizer, new)
        if isinstance(tokenizer, TokenTable):
            tokenizer.as_library_vocabulary().write(new)


def convert(
    source: Path,
    target: Path,
    *,
    to: Literal["ours", "hf", "gguf"] = "ours",
    kind: Kind = "F16",
    hints: Hints | None = None,
    **given: Any,
) -> str:
    """Convert a checkpoint to our format, Hugging Face's or GGUF, and return its original layout.

    Keeps the stored data type, except in GGUF, where `kind` is the type of the matrices. target: A folder or, for GGUF,
    also a file. hints, or its fields as arguments: see `open_checkpoint`.
    """
    checkpoint = open_checkpoint(source, hints, **given)
    model, tokenizer, dtype = checkpoint.build(), checkpoint.tokenizer, checkpoint.dtype
    if to == "ours":
        save_model(target, model, tokenizer, dtype=dtype)
    elif to == "hf":
        save_hugging_face(model, target, tokenizer, dtype=dtype)
        original, written = (checkpoint.folder or target) / hf.GENERATION_CONFIG, target / hf.GENERATION_CONFIG
        if original.is_file():  # it suggests a temperature, for example
            own = read_json(written, dict) if written.is_file() else {}
            write_json(written, {**read_json(original, dict), **own})
    else:
        path = target if target.suffix == ".gguf" else target / "model.gguf"
        save_gguf(model, path, tokenizer, kind=kind, layout=checkpoint.layout)
    return checkpoint.layout


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder. Its files replace the old model if the block ends without an error."""
    if folder.is_file() or (not overwrite and any((folder / name).exists() for name in (CONFIG, WEIGHTS))):
        raise GPTError("save.exists", folder=folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as new:
        yield Path(new)
        shutil.copymode(Path(new) / CONFIG, Path(new) / WEIGHTS)  # safetensors lets only the owner read its files
        written = os.listdir(new)
        for name in written:
            os.replace(Path(new) / name, folder / name)
        for name in {*FILES, *SETTINGS_FILES} - set(written):
            (folder / name).unlink(missing_ok=True)


def equivalents(config: GPTConfig, layout: str) -> Iterator[tuple[str, dict[str, Any], GPTConfig]]:
    """Yield (model_type, options, configuration) for the families that express a configuration, `layout`'s first."""
    for name in sorted(FAMILIES, key=lambda name: FAMILIES[name].title not in layout):
        values = config_values(name, config)
        with suppress(ValueError):
            theirs = GPTConfig(**read_family_options(values))
            if is_same(config, theirs):
                yield name, values, theirs


def config_values(name: str, config: GPTConfig) -> dict[str, Any]:
    """Return options for a family, under its own names, that express a configuration as far as possible."""
    family, known = FAMILIES[name], effective(config)
    stated = {option: value for option, value in family.required.items() if value is not None}
    values: dict[str, Any] = {**family.defaults, **stated, "model_type": name}
    values |= dict.fromkeys(DROPOUTS, config.dropout)
    values |= {theirs: known[ours] for ours, theirs in family.theirs.items() if ours != "activation"}
    option = family.theirs["activation"]
    if family.activations.get(values[option], ACTIVATIONS[values[option]]) != config.activation:
        values[option] = {"gelu_tanh": "gelu_pytorch_tanh"}.get(config.activation, config.activation)
    for ours, (theirs, exponent) in family.powers.items():
        value = known[ours] ** (1 / exponent)
        values[theirs] = round(value) if math.isclose(value, round(value), rel_tol=1e-9) else value
    if "rotary_base" in family.stated:  # in the formats of transformers 4 and 5
        rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
        rope |= {"partial_rotary_factor": config.rotary_share} if "rotary_share" in family.stated else {}
        if (scaling := config.rotary_scaling) is not None:
            rope |= {theirs: getattr(scaling, ours) for theirs, ours in SCALING[scaling.kind].items()}
            rope |= {"rope_type": scaling.kind}
            rope |= {"long_factor": scaling.long_factors or scaling.factors} if scaling.kind == "longrope" else {}
            if scaling.kind == "dynamic":
                values["max_position_embeddings"] = rope.pop("max_position_embeddings")
            values["rope_scaling"] = rope
        local = {"rope_type": "default", "rope_theta": config.window_rotary_base or config.rotary_base}
        by_layer = "window_rotary_base" in family.stated
        values["rope_parameters"] = {FULL: rope, WINDOWED: local} if by_layer else rope
    return values | window_values(family, config)


def window_values(family: Layout, config: GPTConfig) -> dict[str, Any]:
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
    values |= {"use_sliding_window": window is not None} if "use_sliding_window" in family.others else {}
    rotated = [int(layer not in config.unrotated_layers) for layer in range(n_layer)]
    return values | ({"no_rope_layers": rotated} if SKIPS_ROTATION in family.others else {})


def is_same(ours: GPTConfig, theirs: GPTConfig) -> bool:
    """Return whether models with the two configurations compute the same function, apart from dropout."""
    left, right = effective(ours), effective(theirs)
    missing = {name: False for name in BIASES if right[name] and not left[name]}  # these biases are zeros
    ignored = ("dropout", "window_rotary_base")  # `rotary_angles` contain the base of each layer
    pairs = [(left[name], value) for name, value in (right | missing).items() if name not in ignored]
    return all(math.isclose(a, b) if isinstance(a, float) and isinstance(b, float) else a == b for a, b in pairs)


def effective(config: GPTConfig) -> dict[str, Any]:
    """Return the configuration with every default replaced by its effective value."""
    values = {each.name: getattr(config, EFFECTIVE.get(each.name, each.name)) for each in fields(GPTConfig)}
    values |= {f"{part}_bias": config.has_bias(part) for part in ("qkv", "proj", "mlp")}
    windows = [config.window_of(layer) for layer in range(config.n_layer)]
    values["window"] = [None if window is None or window >= config.block_size else window for window in windows]
    values |= {"full_layers": None, "window_rotary_base": config.window_rotary_base or config.rotary_base}
    values |= {"rotary_size": config.rotary_size, "rotary_share": config.rotary_size / config.head_size}
    usual = config.rotary_base, config.rotary_scaling
    local = usual if config.window_rotary_base is None else (config.window_rotary_base, None)  # without scaling
    values["rotary_angles"] = [usual if window is None else local for window in windows]
    return values if config.position == "rotary" else values | {name: None for name in values if "rotary" in name}


def to_weights(model: GPT, family: Layout, theirs: GPTConfig) -> dict[str, Tensor] | None:
    """Return the weights under the family's names, or None if one of them would need two different values.

    Empty weights are translated as if they had been read. Ours are copied into the views that this returns.
    """
    ours = {name: ordinary(value).detach().cpu().float() for name, value in model.state_dict().items()}
    theirs = replace(theirs, tie_weights=model.config.tie_weights)
    found = {name: torch.zeros(shape) for name, shape in stored_shapes(family, theirs).items()}
    translated, _ = translate(found, replace(family, n_head=theirs.n_head), norm_eps=theirs.norm_eps)
    weights = half_pairs(translated, theirs, family)
    if theirs.tie_weights:
        del ours["lm_head.weight"]
    if family.normed_embedding:  # its rows x become x / sqrt(mean(x^2) + eps), whose mean square is below 1
        embedding = ours.pop("wte.weight")
        squares = embedding.double().square().mean(dim=1, keepdim=True)
        if squares.max() > 1 + NORM_ERROR:
            return None
        scale = (theirs.norm_eps / (1 - squares).clamp(min=NORM_ERROR)).sqrt()
        found[f"{family.names['wte']}.weight"] = (embedding * scale).float()
    for name, value in ours.items():
        if family.norm_offset and value.dim() == 1 and name.endswith(".weight"):
            ours[name] = value = value - family.norm_offset
        if parts := weights.get(name):
            for part, rows in zip(parts, value.split([len(part) for part in parts]), strict=True):
                part.copy_(rows)
    weights = add_missing(weights, expected_shapes(theirs), family)  # norms without weights are not stored
    if any(not torch.equal(whole(weights[name]), value) for name, value in ours.items()):
        return None
    head = family.names["lm_head"]
    return {name if name.startswith(f"{head}.") else family.prefix + name: value for name, value in found.items()}


def save_gguf(
    model: AnyModel, path: Path | str, vocabulary: Vocabulary | None = None, *, kind: Kind = "F16", layout: str = ""
) -> None:
    """Write a GGUF file in the first architecture of llama.cpp that expresses the model.

    vocabulary: Defaults to a loaded model's tokenizer. kind: The type of the matrices; norms and biases are in float32,
    and matrices whose rows have no whole number of blocks in float16 instead of Q8_0.
    layout: The layout that the model was read from, whose family is tried first. Defaults to a loaded model's.
    Raises ValueError if the file exists, or if GGUF cannot express the model or its vocabulary.
    """
    check_choice("kind", kind, get_args(Kind))
    path = Path(path)
    require(not path.exists(), "gguf.exists", path=path)
    network, tokenizer = with_tokenizer(model)
    metadata, tensors = gguf_model(network, layout or getattr(model, "layout", ""))
    architecture = metadata.pop("general.architecture")
    metadata |= vocabulary_metadata(vocabulary or tokenizer)
    metadata["general.file_type"] = int(LlamaFileType[f"{'ALL' if kind == 'F32' else 'MOSTLY'}_{kind}"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as new:
        writer = GGUFWriter(Path(new) / path.name, architecture)
        add: dict[type, Callable[[str, Any], None]] = {str: writer.add_string, bool: writer.add_bool}
        add |= {int: writer.add_uint32, float: writer.add_float32, list: writer.add_array}
        for key, value in metadata.items():
            add[type(value)](key, value)
        for name, tensor in tensors.items():
            fits = "F16" if kind == "Q8_0" and tensor.shape[-1] % N_BLOCK else kind
            stored = GGMLQuantizationType[fits if tensor.dim() > 1 and name != POSITIONS else "F32"]
            writer.add_tensor(name, quantize(tensor.numpy(), stored), raw_dtype=stored)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        os.replace(Path(new) / path.name, path)


def gguf_model(model: GPT, layout: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the options and the weights of a model in the first architecture that expresses it."""
    config, scaling, factors = model.config, model.config.rotary_scaling, None
    has_factors = scaling is not None and scaling.kind in ("llama3", "longrope") and not scaling.long_factors
    if scaling is not None and has_factors and scaling.attention_factor == 1:  # divisors of the frequencies
        size, base = config.rotary_size, config.rotary_base
        factors = rotary_frequencies(size, base) / rotary_frequencies(size, base, scaling)
    architectures = {model_type: name for name, model_type in gguf.ARCHITECTURES.items()}
    for model_type, _, theirs in equivalents(config, layout):
        name, family = architectures.get(model_type, ""), FAMILIES[model_type]
        options = gguf_options(family, config)
        is_ignored = gguf.WINDOW in options and gguf.PATTERN not in options  # by llama.cpp
        if not name or is_ignored or (name in NO_HEAD and not config.tie_weights):
            continue
        stored = {"blk.0.attn_qkv.weight": torch.empty(0)} if gguf.FUSED in family.names else {}
        tensors = to_weights(model, gguf.gguf_family(family, stored, name), theirs)
        if tensors is None:
            continue
        tensors |= {} if factors is None else {gguf.ROPE_FACTORS[0]: factors}
        metadata = {"general.architecture": name} | {f"{name}.{key}": value for key, value in options.items()}
        with suppress(ValueError):
            stated = gguf.read_config(metadata, tensors)
            found = GPTConfig(**read_family_options(stated))
            found = found if factors is None else replace(found, rotary_scaling=scaling)  # by the factors
            if is_same(config, found):
                break
    else:
        raise GPTError("gguf.no_architecture")
    if name in OWN_HEAD and config.tie_weights:
        tensors["output.weight"] = tensors["token_embd.weight"]
    return metadata, tensors


def gguf_options(family: Layout, config: GPTConfig) -> dict[str, Any]:
    """Return the options of a model as keys of the metadata, without the architecture's name."""
    values, norm_key = effective(config), f"attention.layer_norm_{'rms_' if config.norm == 'rms' else ''}epsilon"
    found: dict[str, Any] = {"feed_forward_length": config.ff_size, "attention.head_count_kv": config.kv_heads}
    for ours, key in gguf.KEYS:
        if ours in family.stated and values[ours] is not None and (ours != "norm_eps" or key == norm_key):
            found[key] = values[ours]
    if "attention.key_length" in found:
        found["attention.value_length"] = found["attention.key_length"]
    if config.position == "rotary":
        found["rope.dimension_count"] = config.rotary_size
    if (scaling := config.rotary_scaling) is not None and scaling.kind in ("linear", "yarn"):
        found |= {gguf.SCALED: scaling.kind, gguf.SCALING: scaling.factor}
        found |= {gguf.ORIGINAL: scaling.original_context} if scaling.kind == "yarn" else {}
    windows = [config.window_of(layer) is not None for layer in range(config.n_layer)]
    if any(windows) and config.window is not None and config.window < config.block_size:
        found[gguf.WINDOW] = config.window
        found |= {gguf.PATTERN: windows} if "sliding_window_pattern" in family.others else {}
    return {key: gguf.shortest(value) if isinstance(value, float) else value for key, value in found.items()}


def vocabulary_metadata(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the metadata for a vocabulary. Raises ValueError if GGUF has no vocabulary of this kind."""
    if isinstance(vocabulary, PlainIds):
        return {f"{PLACE}.model": "none"}
    if isinstance(vocabulary, Tokenizer):
        ids, merges = tokenizer_formats.letters_and_merges(vocabulary.encoding._mergeable_ranks)
        special = [{"content": name, "id": i, "special": True} for name, i in vocabulary.special_names.items()]
        content = {**tokenizer_formats.byte_level_json(ids, merges), "added_tokens": special}
        roles = {"bos_token": vocabulary.eot_id, "eos_token": vocabulary.eot_id}
    elif isinstance(vocabulary, HuggingFaceTokenizer):
        content, ids = json.loads(vocabulary._tokenizer.to_str()), vocabulary._tokenizer.get_vocab()
        named = {role: ids[name] for role, name in vocabulary.tokens.items() if name in ids}
        roles = {"eos_token": vocabulary.eot_id, **named}
    else:
        raise GPTError("gguf.vocabulary", kind=type(vocabulary).__name__)
    found = tokens_metadata(content, vocabulary.strips_space) | {"add_bos_token": bool(vocabulary.prefix_ids)}
    places = tokenizer_formats.ROLES.items()
    found |= {f"{name}_token_id": roles[role] for role, name in places if roles.get(role) is not None}
    metadata = {f"{PLACE}.{name}": value for name, value in found.items()}
    return metadata if vocabulary.chat is None else metadata | {"tokenizer.chat_template": vocabulary.chat.source}


def tokens_metadata(content: dict[str, Any], strips_space: bool) -> dict[str, Any]:
    """Return the metadata for the contents of a tokenizer.json. Raises ValueError if it is of another kind."""
    model, pre_tokenizer = content["model"], content["pre_tokenizer"]
    require(model["type"] == "BPE", "gguf.vocabulary", kind=model["type"])
    splits = pre_tokenizer.get("pretokenizers", [pre_tokenizer]) if pre_tokenizer else []
    is_byte_level = any(each["type"] == "ByteLevel" for each in splits)
    kind = pre_tokenizer["type"] if pre_tokenizer else "BPE"
    has_bytes = is_byte_level or (model.get("byte_fallback") and kind in ("BPE", "Split", "Metaspace"))
    require(has_bytes, "gguf.vocabulary", kind=kind)
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    kinds = {each["content"]: CONTROL if each["special"] else USER_DEFINED for each in content["added_tokens"]}
    ids = {**model["vocab"], **{each["content"]: each["id"] for each in content["added_tokens"]}}
    names = {token_id: name for name, token_id in ids.items()}
    tokens = [names.get(i, f"[PAD{i}]") for i in range(max(names) + 1)]
    if not is_byte_level:
        kinds |= {token: tokenizer_formats.BYTE for token in tokens if hf.BYTE_TOKEN.fullmatch(token)}
        kinds |= {model["unk_token"]: tokenizer_formats.UNKNOWN} if model.get("unk_token") else {}
    types = [kinds.get(token, tokenizer_formats.NORMAL) for token in tokens]
    if is_byte_level:
        pre = pattern_name(content, splits)
        return {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": types, "merges": merges}
    rank = {merge.replace(" ", ""): n for n, merge in reversed([*enumerate(merges)])}  # the first merge counts
    scores = [float(-rank.get(token, len(merges))) for token in tokens]
    if len(merges) < len(tokenizer_formats.merges_of(list(zip(tokens, scores, types, strict=True)))):
        raise GPTError("gguf.vocabulary", kind="BPE")  # SentencePiece tries all pairs that make a token
    spaced = {name: name.replace(hf.SPACE, " ") for name, of in kinds.items() if of == USER_DEFINED}
    found = {"tokens": [spaced.get(token, token) for token in tokens], "scores": scores, "token_type": types}
    return {"model": "llama", "pre": "default", "add_space_prefix": strips_space, **found}


def pattern_name(content: dict[str, Any], splits: list[dict[str, Any]]) -> str:
    """Return llama.cpp's name for the way in which a byte-level vocabulary splits texts."""
    parts = [each.get("pattern", each["type"]) for each in splits if each["type"] != "ByteLevel"]
    keeps_words = bool(content["model"].get("ignore_merges"))
    for pre, (normalizer, known) in tokenizer_formats.SPLITS.items():
        theirs = [each.get("pattern", each["type"]) for each in known], normalizer
        if theirs == (parts, content["normalizer"]) and keeps_words == (pre in tokenizer_formats.STARTS_WITH_BOS):
            return pre
    raise GPTError("gguf.vocabulary", kind=f"BPE {parts}"[:80])
