"""Translates the weights of a model of FAMILIES to our names, as its row of the table says.

All weights stay views of what is stored, except those of norms that store none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gpt.models.checkpoints.families import Family
from gpt.models.checkpoints.layouts import Layout
from gpt.models.checkpoints.translate import Weights, role_of, translate


def is_written_by_transformers(named: Mapping[str, Tensor], family: Family) -> bool:
    """Return whether weights have the family's names and the orientation in which transformers stores them.

    Other projects use GPT-2's names as well, but only transformers stores its matrices as (in, out).
    """
    if not family.layout.transposed:
        return True
    qkv = named.get("h.0.attn.c_attn.weight")
    return qkv is not None and qkv.dim() == 2 and qkv.shape[1] == 3 * qkv.shape[0]


def translate_family(named: Mapping[str, Tensor], family: Family, stated: Mapping[str, Any]) -> tuple[Weights, Layout]:
    """Return the weights by our names, and their layout.

    Args:
        named: Stored weights by their names without wrappers.
        stated: Options from config.json, by the names of GPTConfig.
    """
    layout = replace(family.layout, n_head=stated["n_head"])
    named = split({name.removeprefix(family.prefix): tensor for name, tensor in named.items()}, family.split)
    weights, layout = translate(named, layout, None)
    for role, n_rows in family.skip_rows.items():
        if (name := f"{role}.weight") in weights:
            weights[name] = tuple(tensor[n_rows:] if tensor.dim() else tensor for tensor in weights[name])
    if family.interleaved:
        size = int(stated["n_embd"] // stated["n_head"] * stated["rotary_share"])
        for name in (name for name in weights if role_of(name).startswith("h.{n}.attn.c_attn.")):
            *rotated, v = weights[name]  # query and key
            weights[name] = (*(rows for each in rotated for rows in in_halves(each, stated["n_head"], size)), v)
    if family.plain_norms:
        add_plain_norms(weights, stated)
    return share(weights, layout), layout


def split(named: Mapping[str, Tensor], parts: Mapping[str, tuple[str, ...]]) -> dict[str, Tensor]:
    """Return the weights with those that contain several others, one below the other, taken apart."""
    found = dict(named)
    for fused, names in parts.items():
        for name in (name for name, tensor in named.items() if f".{fused}." in name and tensor.dim()):
            rows = found.pop(name).chunk(len(names))
            found |= {name.replace(fused, part): tensor for part, tensor in zip(names, rows, strict=False)}
    return found


def in_halves(tensor: Tensor, n_head: int, size: int) -> tuple[Tensor, ...]:
    """Return the rows of a query or key with the first numbers of each pair before the second ones.

    A rotation of numbers i and i + size / 2 then does what one of neighbours does to the stored rows; the products of
    query and key stay the same.
    """
    if tensor.numel() == 0 or tensor.dim() == 0 or len(tensor) % n_head:
        return (tensor,)  # not a weight of this model, which is found later
    heads = tensor.unflatten(0, (n_head, -1))
    return tuple(rows for head in heads for rows in (head[0:size:2], head[1:size:2], head[size:]))


def add_plain_norms(weights: Weights, stated: Mapping[str, Any]) -> None:
    """Add ones, and zeros where the model has biases, for norms without weights."""
    blocks = {name.rpartition(".attn.")[0] for name in weights if ".attn." in name}
    halves = {part[0].dtype for part in weights.values()} & {torch.float16, torch.bfloat16}
    dtype = halves.pop() if len(halves) == 1 else torch.float32  # that of the other weights
    ones, zeros = (torch.full((stated["n_embd"],), value, dtype=dtype) for value in (1.0, 0.0))
    for norm in (*(f"{block}.{each}" for block in blocks for each in ("ln_1", "ln_2")), "ln_f"):
        weights.setdefault(f"{norm}.weight", (ones,))
        if stated.get("bias", True):
            weights.setdefault(f"{norm}.bias", (zeros,))


def share(weights: Weights, layout: Layout) -> Weights:
    """Return the weights with those of roles that have the stored name of another role."""
    first: dict[str, str] = {}
    copies = {role: first.setdefault(theirs, role) for role, theirs in layout.names.items()}
    found = dict(weights)
    for role, source in copies.items():
        if role != source:
            named = {name: part for name, part in weights.items() if role_of(name).startswith(f"{source}.")}
            found |= {name.replace(last(source), last(role)): part for name, part in named.items()}
    return found


def last(role: str) -> str:
    """Return the part of a role after the number of the block."""
    return role.rpartition("{n}")[2]
