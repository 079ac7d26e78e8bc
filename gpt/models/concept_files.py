"""Concept files next to a model's weights: concepts.safetensors, and concepts.json with names written by hand."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from gpt.analysis.concepts import WINDOW, Concepts, Dictionary, NamedConcept
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import open_safetensors, read_json

CONCEPTS, NAMES = "concepts.safetensors", "concepts.json"
SCALE = ".scale"  # suffix for a matrix's scales
_FIELDS = tuple(field.name for field in fields(Dictionary))
_FLOATS = ("encoder", "decoder", "bias", "center", "share", "peaks")


def save_concepts(folder: Path, concepts: Concepts) -> None:
    """Write the dictionaries: matrices in int8 with a float16 scale per row, everything else in float16."""
    tensors = {"text": concepts.text.to(torch.int32)}
    for layer, dictionary in concepts.dictionaries.items():
        for name in _FIELDS:
            key, value = f"{layer}.{name}", getattr(dictionary, name)
            if name in ("encoder", "decoder"):
                tensors[key], tensors[key + SCALE] = int8_rows(value)
            elif name == "active":
                tensors[key] = torch.tensor(value)
            else:
                tensors[key] = (value.half() if name in _FLOATS else value).contiguous()
    save_file(tensors, folder / CONCEPTS)


def int8_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a matrix to int8 (n, C) with a float16 scale per row (n,)."""
    scale = (weight.abs().amax(dim=1) / 127).half().clamp(min=torch.finfo(torch.float16).tiny)
    return (weight / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8), scale


def load_concepts(folder: Path, config: GPTConfig) -> Concepts | None:
    """Return the concepts in a model's folder, or None if it has none.

    Raises ValueError if a file cannot be read or does not fit the model.
    """
    path = folder / CONCEPTS
    if not path.is_file():
        return None
    tensors = open_safetensors(path)
    layers = sorted({int(name.split(".")[0]) for name in tensors if name.endswith(".active")})
    try:
        dictionaries = {layer: _dictionary(tensors, layer) for layer in layers}
        fits = all(_fits(each, layer, config) for layer, each in dictionaries.items())
        concepts = Concepts(dictionaries, tensors["text"], _names(folder / NAMES, dictionaries))
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
        fits = False
    if not fits or not layers:
        raise GPTError("concepts.other_model", file=path.name)
    return concepts


def _dictionary(tensors: dict[str, Tensor], layer: int) -> Dictionary:
    def read(name: str) -> Tensor:
        value = tensors[f"{layer}.{name}"]
        if name in ("encoder", "decoder"):
            return value.float() * tensors[f"{layer}.{name}{SCALE}"].float()[:, None]
        return value.float() if name in _FLOATS else value

    tables = {name: read(name) for name in _FIELDS if name != "active"}
    return Dictionary(active=int(tensors[f"{layer}.active"]), **tables)


def _fits(each: Dictionary, layer: int, config: GPTConfig) -> bool:
    n, k = len(each.bias), each.starts.shape[1]
    shapes = (each.encoder.shape, each.decoder.shape, each.center.shape, each.peaks.shape, each.tints.shape)
    known = ((n, config.n_embd), (n, config.n_embd), (config.n_embd,), (n, k), (n, k, WINDOW))
    ids = torch.cat([each.tokens.flatten(), each.promotes.flatten()])
    is_known = int(ids.max()) < config.vocab_size
    return layer < config.n_layer and tuple(map(tuple, shapes)) == known and 0 < each.active <= n and is_known


def _names(path: Path, dictionaries: dict[int, Dictionary]) -> tuple[NamedConcept, ...]:
    entries = read_json(path, list) if path.is_file() else []
    named = (NamedConcept(**entry | {"words": tuple(entry.get("words", ()))}) for entry in entries)
    return tuple(each for each in named if 0 <= each.feature < len(dictionaries[each.layer].bias))
