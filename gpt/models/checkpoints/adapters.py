"""Merge LoRA adapters, as saved by PEFT, into their base models."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.contents import Contents, Deferred, numbers_of
from gpt.models.checkpoints.files import ADAPTER_CONFIG, open_weights
from gpt.models.checkpoints.translate import strip_wrappers
from gpt.models.checkpoints.untrusted import existing, read_json

ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
PART = re.compile(r"(.*)\.lora_(embedding_)?([AB])(\.weight)?")
EMBEDDINGS = ("wte", "embed_tokens", "embed_in")
HEADS = ("lm_head", "embed_out")
TIED = ("tie_word_embeddings", "tie_weights")  # in transformers' config.json and in ours


def is_adapter(path: Path) -> bool:
    """Return whether a path is an adapter's folder or one of its files."""
    return (path if path.is_dir() else path.parent).joinpath(ADAPTER_CONFIG).is_file() and (
        path.is_dir() or path.name in (ADAPTER_CONFIG, *ADAPTER_WEIGHTS)
    )


def base_of(adapter: Path, base: Path | str | None) -> Path | str:
    """Return the adapter's base model: the given one, the one in the same folder, or the name in its configuration."""
    folder = adapter if adapter.is_dir() else adapter.parent
    if base is not None:
        return base
    if (folder / "config.json").is_file():
        return folder
    stated = str(read_json(folder / ADAPTER_CONFIG, dict).get("base_model_name_or_path") or "")
    return next((each for each in (folder / stated, Path(stated)) if stated and each.exists()), stated)


def no_base(base: object) -> GPTError:
    """Return the error for an adapter whose base model is missing."""
    return GPTError("adapter.base", base=base)


def merged(base: Contents, adapter: Path) -> Contents:
    """Return the contents of a base model with an adapter added to its weights.

    A weight W becomes W + alpha / r * B A. A tied head or embedding that the adapter changes is no longer tied.
    Raises ValueError for other kinds of adapters, and for one that does not fit.
    """
    folder = adapter if adapter.is_dir() else adapter.parent
    options = read_json(folder / ADAPTER_CONFIG, dict)
    check_kind(options)
    file = existing(
        next((folder / name for name in ADAPTER_WEIGHTS if (folder / name).is_file()), folder / ADAPTER_WEIGHTS[0])
    )
    stored, _ = open_weights(file)
    own = base.config is not None and "tie_weights" in base.config
    names = {bare(name): name for name in base.tensors}
    tensors, parts = dict(base.tensors), dict[str, dict[str, Tensor]]()
    config = {} if base.config is None else dict(base.config)
    for name, tensor in stored.items():
        module = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
        if match := PART.fullmatch(module):
            parts.setdefault(match[1], {})[match[3]] = tensor
        else:  # a weight that was trained as a whole, or a bias
            tensors[their_name(bare(module), names, tensors, config)] = tensor
    for module, pair in parts.items():
        if pair.keys() != {"A", "B"}:
            raise misfit(file, module)
        name = their_name(f"{bare(module)}.weight", names, tensors, config)
        if name not in tensors:
            raise misfit(file, module)
        in_first = bool(options.get("fan_in_fan_out")) and not own and not module.endswith((*EMBEDDINGS, *HEADS))
        turned = in_first or module.endswith(EMBEDDINGS)
        tensors[name] = added(tensors[name], pair["A"], pair["B"], scale_of(module, pair["A"], options), turned, file)
    return replace(base, tensors=tensors, config=config or None, folder=folder)


def bare(name: str) -> str:
    """Return a weight's name without prefixes that depend on how the model was saved."""
    return strip_wrappers(name).removeprefix("gpt_neox.")


def their_name(name: str, names: Mapping[str, str], tensors: dict[str, Tensor], config: dict[str, Any]) -> str:
    """Return the base model's name for a weight. Unties head and embedding if it is one of the two.

    The output head of a tied model gets a copy of the embedding.
    """
    module = name.removesuffix(".weight")
    if not module.endswith((*EMBEDDINGS, *HEADS)):
        return names.get(name, name)
    embedding = next((names[each] for each in names if each.removesuffix(".weight").endswith(EMBEDDINGS)), None)
    head = next((names[each] for each in names if each.removesuffix(".weight").endswith(HEADS)), "lm_head.weight")
    if embedding is not None:
        tensors.setdefault(head, tensors[embedding])
    for option in TIED:
        if option in config or (option == TIED[0] and "model_type" in config):
            config[option] = False
    return embedding if module.endswith(EMBEDDINGS) and embedding is not None else head


def check_kind(options: Mapping[str, Any]) -> None:
    """Raise ValueError for an adapter other than plain LoRA."""
    kind = str(options.get("peft_type"))
    more = [name for name in ("use_dora", "use_qalora", "alora_invocation_tokens") if options.get(name)]
    more += [key for key in options.get("alpha_pattern") or {} if not re.fullmatch(r"[\w.]+", key)]
    if kind != "LORA" or more:
        raise GPTError("adapter.kind", kind=", ".join([kind, *more]))


def scale_of(module: str, A: Tensor, options: Mapping[str, Any]) -> float:
    """Return the factor of an adapted module: alpha / r, or alpha / sqrt(r) with rsLoRA."""
    patterns = options.get("alpha_pattern") or {}
    alpha = next(
        (alpha for key, alpha in patterns.items() if f".{module}".endswith(f".{key}")), options.get("lora_alpha", 8)
    )
    return alpha / (math.sqrt(len(A)) if options.get("use_rslora") else len(A))


def added(weight: Tensor, A: Tensor, B: Tensor, scale: float, turned: bool, file: Path) -> Tensor:
    """Return weight + scale * B A, computed when it is needed. turned: whether the weight is stored as (in, out)."""
    shape = (A.shape[1], B.shape[0]) if turned else (B.shape[0], A.shape[1])
    if A.dim() != 2 or B.dim() != 2 or A.shape[0] != B.shape[1] or tuple(weight.shape) != shape:
        raise misfit(file, f"{tuple(weight.shape)} / {shape}")

    def read(dtype: torch.dtype) -> Tensor:
        change = scale * (B.float() @ A.float())
        return numbers_of([weight])[0].float() + (change.t() if turned else change)

    return Deferred(read, torch.empty(weight.shape, device="meta"))


def misfit(file: Path, name: str) -> GPTError:
    """Return the error for an adapter that does not belong to the base model. name: what does not fit."""
    return GPTError("adapter.misfit", file=file.name, name=name)
