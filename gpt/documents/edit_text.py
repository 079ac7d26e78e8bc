"""Edits as a short text, such as "h3.2=0,a1=0,act=relu,nopos", for a link or a command line, and back again.

h3.2=0     layer 3, head 2, times 0: off
a1=0.5     what the attention of layer 1 adds, times 0.5
f4=0       what the feed-forward part of layer 4 adds, times 0: skipped
act=relu   another activation in every layer
nopos      no positions
resid_pre2.5=17-4-99-4-21-7
           a patch: what goes into layer 2 at position 5 is taken from a pass over the tokens 17, 4, 99 ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import get_args

from gpt.analysis.patching import patch_from
from gpt.config import Activation
from gpt.edits import PATCHABLE, Edits, Patch
from gpt.errors import GPTError
from gpt.model import GPT

LARGEST = 10.0  # factor, either way: what a text from anywhere may ask for
LONGEST = 40_000  # characters: every head of the largest GPT-2 scaled fits
_SCALE = re.compile(r"(?:h(\d{1,4})\.(\d{1,4})|([af])(\d{1,4}))=(-?\d{1,4}(?:\.\d{1,20})?(?:e-\d{1,3})?)", re.ASCII)
_PATCH = re.compile(rf"({'|'.join(PATCHABLE)})(\d{{1,4}})\.(\d{{1,7}})=(\d{{1,9}}(?:-\d{{1,9}})*)", re.ASCII)
MAX_QUOTED_CHARS = 40  # of a part that an error names
MOST_PATCHES = 16  # each is a pass over its text


def format_edits(edits: Edits) -> str:
    """The text, "" for no edits; heads first, then attention, feed-forward, activation, positions, patches.

    Raises ValueError for what `parse_edits` would refuse: patches that are from no text, which are nothing but numbers,
    and factors beyond LARGEST.
    """
    parts = [f"h{layer}.{head}={_number(x)}" for (layer, head), x in sorted(edits.head_scale.items())]
    parts += [f"a{layer}={_number(x)}" for layer, x in sorted(edits.attn_scale.items())]
    parts += [f"f{layer}={_number(x)}" for layer, x in sorted(edits.mlp_scale.items())]
    parts += [f"act={edits.activation}"] if edits.activation is not None else []
    parts += ["nopos"] if edits.drop_positions else []
    parts += [f"{p.name}{p.layer}.{p.position}={'-'.join(map(str, _source(p)))}" for p in edits.patches]
    return ",".join(parts)


def parse_edits(text: str, model: GPT | None = None) -> Edits:
    """The edits of a text that anybody may have written, in any order.

    model: computes the values of patches; without one there may be none.
    Raises ValueError, naming the part, for what is no edit, a factor beyond LARGEST, the same part twice, more than
    MOST_PATCHES, or a patch that the model does not have.
    Whether a model has the other layers and heads is for `Edits.check` or `Edits.fitting` to say.
    """
    if len(text) > LONGEST:
        raise GPTError("edit_text.too_long", limit=LONGEST, n=len(text))
    heads: dict[tuple[int, int], float] = {}
    branches: dict[str, dict[int, float]] = {"a": {}, "f": {}}
    activation: Activation | None = None
    drop_positions = False
    patches: dict[tuple[str, int, int], Patch] = {}
    for part in filter(None, text.split(",")):
        quoted = part[:MAX_QUOTED_CHARS]
        scale = _SCALE.fullmatch(part)
        if scale is not None:
            layer, head, branch, branch_layer, factor = scale.groups()
            place, key = (heads, (int(layer), int(head))) if head else (branches[branch], int(branch_layer))
            if key in place:
                raise GPTError("edit_text.duplicate", part=quoted)
            place[key] = float(factor)
            if abs(place[key]) > LARGEST:
                raise GPTError("edit_text.factor", part=quoted, limit=LARGEST)
        elif model is not None and (patch := _PATCH.fullmatch(part)) is not None:
            place = patch[1], int(patch[2]), int(patch[3])
            if place in patches:
                raise GPTError("edit_text.duplicate", part=quoted)
            if len(patches) == MOST_PATCHES:
                raise GPTError("edit_text.too_many_patches", part=quoted, limit=MOST_PATCHES)
            patches[place] = patch_from(model, [int(token) for token in patch[4].split("-")], *place)
        elif part == "nopos" and not drop_positions:
            drop_positions = True
        elif part.startswith("act=") and activation is None:
            activation = part.removeprefix("act=")
            if activation not in get_args(Activation):
                choices = ", ".join(get_args(Activation))
                raise GPTError("edit_text.activation", part=quoted, choices=choices)
        else:
            raise GPTError("edit_text.unknown", part=quoted)
    return Edits(heads, branches["a"], branches["f"], activation, drop_positions, tuple(patches.values()))


def edits_as_python(edits: Edits) -> str:
    """The call that makes these edits, such as `Edits(head_scale={(3, 2): 0.0})`; patches by `patch_from`, from the
    model of `loaded`. Raises ValueError for patches that are from no text."""
    scales: dict[str, Mapping[object, float]] = {
        "head_scale": edits.head_scale,
        "attn_scale": edits.attn_scale,
        "mlp_scale": edits.mlp_scale,
    }
    parts = [f"{name}={dict(sorted(scale.items()))!r}" for name, scale in scales.items() if scale]
    parts += [f"activation={edits.activation!r}"] if edits.activation is not None else []
    parts += ["drop_positions=True"] if edits.drop_positions else []
    patches = [
        f"patch_from(loaded.model, {list(_source(p))}, {p.name!r}, layer={p.layer}, position={p.position})"
        for p in edits.patches
    ]
    parts += [f"patches=({', '.join(patches)},)"] if patches else []
    return f"Edits({', '.join(parts)})"


def _source(patch: Patch) -> tuple[int, ...]:
    """The text that a patch is from."""
    if not patch.ids:
        raise GPTError("edit_text.patch_without_text")
    return patch.ids


def _number(factor: float) -> str:
    """The shortest text that is this number again; 0, not 0.0."""
    if not math.isfinite(factor) or abs(factor) > LARGEST:
        raise GPTError("edit_text.number", factor=factor, limit=LARGEST)
    return repr(float(factor)).removesuffix(".0")
