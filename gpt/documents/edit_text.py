"""Edits as a short string, such as "h3.2=0,a1=0,act=relu,nopos", for links and the command line.

h3.2=0     head_scale of layer 3, head 2
a1=0.5     attn_scale of layer 1
f4=0       mlp_scale of layer 4
act=relu   activation
nopos      drop_positions
resid_pre2.5=17-4-99-4-21-7
           patch resid_pre of layer 2 at position 5 from a pass over the tokens 17, 4, 99 ...
head_out2.5.1=17-4
           patch the output of head 1 in layer 2 at position 5
c2.174=3   turn up concept 174 of layer 2 by 3 times its natural strength; -1 removes all its activity
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, get_args

from gpt.analysis.concepts import Concepts
from gpt.analysis.patching import patch_from
from gpt.config import Activation
from gpt.edits import PATCHABLE, Edits, Patch
from gpt.errors import MAX_QUOTED_CHARS, GPTError, require
from gpt.model import GPT

MAX_FACTOR = 10.0  # maximum absolute value of a factor
MAX_TEXT_CHARS = 40_000  # enough for one factor per head of the largest GPT-2
_NUMBER = r"(-?\d{1,4}(?:\.\d{1,20})?(?:e-\d{1,3})?)"
_SCALE = re.compile(rf"(?:(h)|([af]))(\d{{1,4}})(?(1)\.(\d{{1,4}}))={_NUMBER}", re.ASCII)
_CONCEPT = re.compile(rf"c(\d{{1,4}})\.(\d{{1,7}})={_NUMBER}", re.ASCII)
_PLACE = rf"(?:({'|'.join(PATCHABLE)})|(head_out))(\d{{1,4}})\.(\d{{1,7}})(?(2)\.(\d{{1,4}}))"
_PATCH = re.compile(rf"{_PLACE}=(\d{{1,9}}(?:-\d{{1,9}})*)", re.ASCII)
MAX_PATCHES = 16  # each needs a forward pass
MAX_CONCEPTS = 16
_SCALES = {"h": "head_scale", "a": "attn_scale", "f": "mlp_scale"}


def format_edits(edits: Edits) -> str:
    """Format edits as a short string; "" for no edits.

    Raises ValueError for hooks, a patch without ids, steering without a concept, and a factor beyond MAX_FACTOR.
    """
    patches, concepts = _sources(edits)
    parts = [f"h{layer}.{head}={_number(x)}" for (layer, head), x in sorted(edits.head_scale.items())]
    parts += [f"a{layer}={_number(x)}" for layer, x in sorted(edits.attn_scale.items())]
    parts += [f"f{layer}={_number(x)}" for layer, x in sorted(edits.mlp_scale.items())]
    parts += [f"act={edits.activation}"] if edits.activation is not None else []
    parts += ["nopos"] if edits.drop_positions else []
    for p, ids in patches:
        head = "" if p.head is None else f".{p.head}"
        parts.append(f"{p.name}{p.layer}.{p.position}{head}={'-'.join(map(str, ids))}")
    parts += [f"c{layer}.{feature}={_number(strength)}" for layer, feature, strength in concepts]
    return ",".join(parts)


def parse_edits(text: str, model: GPT | None = None, concepts: Concepts | None = None) -> Edits:
    """Parse edits, in any order, from an untrusted string.

    model: computes the values for patches; if None, patches are rejected. concepts: the model's concepts; if None,
    edits with concepts are rejected.
    Raises ValueError, quoting the invalid part, for anything that is not an edit, a factor beyond MAX_FACTOR,
    duplicates, more than MAX_PATCHES or MAX_CONCEPTS, a patch whose location or tokens do not exist in the model, and
    an unknown concept. Does not check other layers and heads; see `Edits.check` and `Edits.fitting`.
    """
    require(len(text) <= MAX_TEXT_CHARS, "edit_text.too_long", limit=MAX_TEXT_CHARS, n=len(text))
    found: dict[str, dict[Any, Any]] = {each.name: {} for each in fields(Edits)}  # values by place
    for part in filter(None, text.split(",")):
        quoted = part[:MAX_QUOTED_CHARS]
        place: Any = None
        make: Callable[[], Any]
        if scale := _SCALE.fullmatch(part):
            kind, layer, factor = scale[1] or scale[2], int(scale[3]), float(scale[5])
            field, place = _SCALES[kind], (layer, int(scale[4])) if kind == "h" else layer
            require(abs(factor) <= MAX_FACTOR, "edit_text.factor", part=quoted, limit=MAX_FACTOR)
            make = partial(float, factor)
        elif model is not None and (patch := _PATCH.fullmatch(part)):
            field, ids = "patches", [int(token) for token in patch[6].split("-")]
            place = patch[1] or patch[2], int(patch[3]), int(patch[4]), int(patch[5]) if patch[2] else None
            make = partial(patch_from, model, ids, *place)
        elif concepts is not None and (concept := _CONCEPT.fullmatch(part)):
            field, place = "steering", (int(concept[1]), int(concept[2]))
            make = partial(concepts.steering, int(concept[1]), int(concept[2]), float(concept[3]))
        elif part == "nopos":
            field, make = "drop_positions", partial(bool, True)
        elif part.startswith("act="):
            name, names = part.removeprefix("act="), get_args(Activation)
            require(name in names, "edit_text.activation", part=quoted, choices=", ".join(names))
            field, make = "activation", partial(str, name)
        else:
            raise GPTError("edit_text.unknown", part=quoted)
        n = len(found[field])
        require(place not in found[field], "edit_text.duplicate", part=quoted)
        require(field != "patches" or n < MAX_PATCHES, "edit_text.too_many_patches", part=quoted, limit=MAX_PATCHES)
        require(field != "steering" or n < MAX_CONCEPTS, "edit_text.too_many_concepts", part=quoted, limit=MAX_CONCEPTS)
        found[field][place] = make()
    scales: dict[str, Any] = {name: found[name] for name in _SCALES.values()}
    patches, steering = (tuple(found[name].values()) for name in ("patches", "steering"))
    activation, drops_positions = found["activation"].get(None), bool(found["drop_positions"])
    return Edits(**scales, activation=activation, drop_positions=drops_positions, patches=patches, steering=steering)


def edits_as_python(edits: Edits) -> str:
    """Format edits as Python code, such as `Edits(head_scale={(3, 2): 0.0})`.

    Patches become calls to `patch_from(loaded.model, ...)`, and concepts calls to `loaded.concepts.steering(...)`.
    Raises ValueError for hooks, a patch without ids, and steering without a concept.
    """
    patches, concepts = _sources(edits)
    scales = ((name, getattr(edits, name)) for name in _SCALES.values())
    parts = [f"{name}={dict(sorted(scale.items()))!r}" for name, scale in scales if scale]
    parts += [f"activation={edits.activation!r}"] if edits.activation is not None else []
    parts += ["drop_positions=True"] if edits.drop_positions else []
    calls = []
    for p, ids in patches:
        place = f"layer={p.layer}, position={p.position}" + ("" if p.head is None else f", head={p.head}")
        calls.append(f"patch_from(loaded.model, {[*ids]}, {p.name!r}, {place})")
    parts += [f"patches=({', '.join(calls)},)"] if calls else []
    calls = [f"loaded.concepts.steering{concept!r}" for concept in concepts]
    parts += [f"steering=({', '.join(calls)},)"] if calls else []
    return f"Edits({', '.join(parts)})"


def _sources(edits: Edits) -> tuple[list[tuple[Patch, tuple[int, ...]]], list[tuple[int, int, float]]]:
    """Return the patches with their ids, and the layer, feature and strength of each concept.

    Raises ValueError if another process could not make the same edits.
    """
    if edits.hooks:
        raise GPTError("edits.hooks_stay", name=edits.hooks[0].name)
    patches = [(patch, patch.ids) for patch in edits.patches if patch.ids]
    concepts = [(each.layer, *each.concept) for each in edits.steering if each.concept is not None]
    require(len(patches) == len(edits.patches), "edit_text.patch_without_text")
    require(len(concepts) == len(edits.steering), "edit_text.steering_without_concept")
    return patches, concepts


def _number(factor: float) -> str:
    require(math.isfinite(factor) and abs(factor) <= MAX_FACTOR, "edit_text.number", factor=factor, limit=MAX_FACTOR)
    return repr(float(factor)).removesuffix(".0")
