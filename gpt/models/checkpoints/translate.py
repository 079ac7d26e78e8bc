"""Translate a checkpoint's weights from its layout's names and orientation to ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.models.checkpoints.families import Family
from gpt.models.checkpoints.layouts import CUSTOM, HeadsUnknown, Layout

Weights = dict[str, tuple[Tensor, ...]]  # {our name: stored tensors to concatenate along axis 0}
Place = tuple[int, int]  # position of a tensor within a weight: 0, 1, 2 for query, key, value; head number


# Names of wrapper modules from torch.compile, DDP, FSDP, activation checkpointing and training programs.
WRAPPERS = re.compile(r"(?<![^.])(_orig_mod|module|model|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")


def strip_wrappers(name: str) -> str:
    """Remove all wrappers, and GPT-2's outer module, from a name."""
    return WRAPPERS.sub("", name).removeprefix("transformer.")


@lru_cache(maxsize=256)
def pattern(ours: str, theirs: str) -> re.Pattern[str]:
    """Return the pattern for a role's stored names. Groups: n, h, and leaf unless `ours` names a single weight."""
    text = re.escape(strip_wrappers(theirs)).replace(r"\{n\}", r"(?P<n>\d+)").replace(r"\{h\}", r"(?P<h>\d+)")
    return re.compile(text + ("" if ours.endswith((".weight", ".bias")) else r"(\.(?P<leaf>weight|bias))?"))


def is_named(role: str, layout: Layout, names: Iterable[str]) -> bool:
    """Return whether one of the names has this role in the layout."""
    matches = pattern(role, layout.names[role]).fullmatch
    return any(matches(name) for name in names)


def our_name(name: str, layout: Layout) -> tuple[str, Place]:
    """Return our name for a weight, and the tensor's position within it. Names not in the layout are unchanged."""
    for ours, theirs in layout.names.items():
        if match := pattern(ours, theirs).fullmatch(name):
            groups = match.groupdict()
            if not ours.endswith((".weight", ".bias")):
                ours = f"{ours}.{groups['leaf'] or 'weight'}"
            ours = ours.replace("{n}", str(int(groups.get("n") or 0)))
            if part := re.fullmatch(r"(h\.\d+\.attn)\.([qkv])\.(weight|bias)", ours):
                return f"{part[1]}.c_attn.{part[3]}", ("qkv".index(part[2]), int(groups.get("h") or 0))
            return ours, (0, 0)
    return name, (0, 0)


def role_of(ours: str) -> str:
    """Return the role of a weight: our name with {n} instead of the block number."""
    return re.sub(r"^h\.\d+\.", "h.{n}.", ours)


def their_name(ours: str, layout: Layout, place: Place | None = None) -> str:
    """Return the layout's name for one of our weights, or `ours` if it has none."""
    role = role_of(ours)
    if not any(role.startswith(known) for known in layout.names) or place is not None:
        role = role.replace(".c_attn.", f".{'qkv'[place[0] if place else 0]}.")
    for known, theirs in layout.names.items():
        if role == known or role.startswith(f"{known}."):
            n = ours.split(".")[1]
            return theirs.replace("{n}", n).replace("{h}", str(place[1] if place else 0)) + role[len(known) :]
    return ours


def duplicate_name(name: str) -> GPTError:
    """Return the error for two weights with the same name."""
    return GPTError("layout.duplicate", "two weights are named {name}", name=name)


def translate(named: Mapping[str, Tensor], layout: Layout, n_head: int | None) -> tuple[Weights, Layout]:
    """Return the weights under our names, and the layout, with the number of heads if names or shapes determine it.

    Weights without a role keep their names. Raises ValueError if two weights have the same role, or if only some
    of the query, key and value weights exist.
    """
    found: dict[str, dict[Place, Tensor]] = {}
    for name, tensor in named.items():
        ours, place = our_name(name, layout)
        if place in found.setdefault(ours, {}):
            raise duplicate_name(name)
        found[ours][place] = tensor
    if layout.title == CUSTOM and not any(ours.startswith("h.0.") for ours in found):  # block numbers start at 1
        found = {re.sub(r"^h\.(\d+)", lambda n: f"h.{int(n[1]) - 1}", ours): parts for ours, parts in found.items()}
    query = found.get("h.0.attn.c_attn.weight", {}).get((0, 0))
    heads = [place[1] + 1 for parts in found.values() for place in parts if "{h}" in str(layout.names)]
    if heads:
        layout = replace(layout, n_head=max(heads))
    elif query is not None and query.dim() == 3:
        layout = replace(layout, n_head=len(query))
    separate = any(role.startswith("h.{n}.attn.q") for role in layout.names)
    places = list(product(range(3), range(max(heads, default=1)))) if separate else [(0, 0)]
    biased = {place for ours, parts in found.items() if ours.endswith(".attn.c_attn.bias") for place in parts}
    weights: Weights = {}
    for ours, parts in found.items():
        if layout.title == CUSTOM and ours.endswith(".attn.c_attn.bias"):  # only the key may lack a bias
            zeros = torch.zeros_like(next(iter(parts.values())))
            parts |= {place: zeros for place in places if place not in biased}
        wanted = places if ".attn.c_attn." in ours else [(0, 0)]
        if missing := [their_name(ours, layout, place) for place in wanted if place not in parts]:
            raise GPTError("layout.missing", "the weights do not fit; missing: {names}", names=", ".join(missing))
        weights[ours] = tuple(t for place in wanted for t in stored(parts[place], ours, layout, n_head, separate))
    return weights, layout


def stored(tensor: Tensor, ours: str, layout: Layout, n_head: int | None, separate: bool) -> Iterable[Tensor]:
    """Return views of a stored tensor in our orientation, to be concatenated.

    Query, key and value may have shape (nh, C, hs) with biases (nh, hs), the output projection (nh, hs, C), and
    position embeddings (1, T, C).
    """
    role = re.sub(r"\.(weight|bias)$", "", role_of(ours))
    turned = {re.sub(r"\.[qkv]$", ".c_attn", each) for each in layout.transposed}
    if ours == "wpe.weight" and tensor.dim() == 3 and 1 in tensor.shape[:2]:
        return [tensor[0] if len(tensor) == 1 else tensor[:, 0]]
    if role.endswith("attn.c_attn") and separate and tensor.dim() == 3:
        return [head.t() if head.shape[0] >= head.shape[1] else head for head in tensor]
    if role.endswith("attn.c_attn") and separate and tensor.dim() == 2 and ours.endswith(".bias"):
        return list(tensor)
    if role.endswith("attn.c_proj") and tensor.dim() == 3:
        return [tensor.flatten(0, 1).t()]
    if tensor.dim() == 2 and role in turned:
        tensor = tensor.t()
    if role.endswith("attn.c_attn") and not separate and layout.qkv_order != "qkv" and tensor.dim():
        return in_order(tensor, layout, layout.n_head or n_head)
    return [tensor]


def in_order(tensor: Tensor, layout: Layout, n_head: int | None) -> list[Tensor]:
    """Split a fused matrix or bias into query, key and value, and return them in our order."""
    if layout.qkv_order != "heads":
        parts = tensor.chunk(3)
        return [parts[layout.qkv_order.index(letter)] for letter in "qkv"]
    if n_head is None or len(tensor) % (3 * n_head):
        raise HeadsUnknown(len(tensor) // 3, layout.activation)
    heads = tensor.unflatten(0, (n_head, 3, -1))
    return [heads[head, part] for part in range(3) for head in range(n_head)]


def with_half_pairs(weights: Weights, config: GPTConfig) -> Weights:
    """Reorder the query and key rows of a model that rotates adjacent dimensions as pairs.

    `gpt.rotary` pairs each dimension with the one half a head later, so the even rows of a head come first, followed by
    the odd rows. All parts are views of the stored tensors.
    """
    turned = dict(weights)
    heads = (config.n_head, config.kv_heads, config.kv_heads)
    for name, stored_parts in ((name, part) for name, part in weights.items() if ".attn.c_attn." in name):
        rows = [n * config.head_size for n in heads]
        q, k, v = stored_parts if len(stored_parts) == 3 else torch.cat(stored_parts).split(rows)
        parts: list[Tensor] = []
        for matrix, n_head in ((q, config.n_head), (k, config.kv_heads)):
            for head in matrix.unflatten(0, (n_head, config.head_size)):
                rotated, rest = head[: config.rotary_size], head[config.rotary_size :]
                parts += [rotated[0::2], rotated[1::2], rest]
        turned[name] = (*parts, v)
    return turned


def is_written_by_transformers(named: Mapping[str, Tensor], family: Family) -> bool:
    """Return whether weights have the family's names and are stored in the orientation that transformers uses.

    Other projects also use GPT-2's names, but only transformers stores the matrices as (in, out).
    """
    if not family.layout.transposed:
        return True
    qkv = named.get("h.0.attn.c_attn.weight")
    return qkv is not None and qkv.dim() == 2 and qkv.shape[1] == 3 * qkv.shape[0]


def translate_family(named: Mapping[str, Tensor], family: Family, stated: Mapping[str, Any]) -> tuple[Weights, Layout]:
    """Return the weights of a model in FAMILIES under our names, and their layout.

    All weights are views of the stored tensors, except for norms that have no stored weights.

    Args:
        named: Stored weights by name, without wrapper prefixes.
        stated: Options from config.json, under GPTConfig's names.
    """
    layout = replace(family.layout, n_head=stated["n_head"])
    prefix = strip_wrappers(family.prefix)
    named = split({name.removeprefix(prefix): tensor for name, tensor in named.items()}, family.split)
    weights, layout = translate(named, layout, None)
    for role, n_rows in family.skip_rows.items():
        if (name := f"{role}.weight") in weights:
            weights[name] = tuple(tensor[n_rows:] if tensor.dim() else tensor for tensor in weights[name])
    if family.plain_norms:
        add_plain_norms(weights, stated)
    return share(weights, layout), layout


def split(named: Mapping[str, Tensor], parts: Mapping[str, tuple[str, ...]]) -> dict[str, Tensor]:
    """Split the weights that stack several matrices, and return all weights."""
    found = dict(named)
    for fused, names in parts.items():
        for name in (name for name, tensor in named.items() if f".{fused}." in name and tensor.dim()):
            rows = found.pop(name).chunk(len(names))
            found |= {name.replace(fused, part): tensor for part, tensor in zip(names, rows, strict=False)}
    return found


def add_plain_norms(weights: Weights, stated: Mapping[str, Any]) -> None:
    """Add weights of 1, and biases of 0 if the model has biases, to norms that have no weights."""
    blocks = {name.rpartition(".attn.")[0] for name in weights if ".attn." in name}
    dtype = next(iter(weights.values()))[0].dtype
    for norm in (*(f"{block}.{each}" for block in blocks for each in ("ln_1", "ln_2")), "ln_f"):
        weights.setdefault(f"{norm}.weight", (torch.ones(stated["n_embd"], dtype=dtype),))
        if stated.get("bias", True):
            weights.setdefault(f"{norm}.bias", (torch.zeros(stated["n_embd"], dtype=dtype),))


def share(weights: Weights, layout: Layout) -> Weights:
    """Add weights for roles that share the stored name of another role, and return all weights."""
    first: dict[str, str] = {}
    copies = {role: first.setdefault(theirs, role) for role, theirs in layout.names.items()}
    found = dict(weights)
    for role, source in copies.items():
        if role != source:
            named = {name: part for name, part in weights.items() if role_of(name).startswith(f"{source}.")}
            found |= {name.replace(last(source), last(role)): part for name, part in named.items()}
    return found


def last(role: str) -> str:
    """Return the part of a role after the block number."""
    return role.rpartition("{n}")[2]
