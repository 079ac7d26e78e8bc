"""Edits as a short text, such as "h3.2=0,a1=0,act=relu,nopos", for a link or a command line, and back again.

h3.2=0     layer 3, head 2, times 0: off
a1=0.5     what the attention of layer 1 adds, times 0.5
f4=0       what the feed-forward part of layer 4 adds, times 0: skipped
act=relu   another activation in every layer
nopos      no positions
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import get_args

from gpt.config import Activation
from gpt.edits import Edits

LARGEST = 10.0  # factor, either way: what a text from anywhere may ask for
LONGEST = 40_000  # characters: every head of the largest GPT-2 scaled fits
_SCALE = re.compile(r"(?:h(\d{1,4})\.(\d{1,4})|([af])(\d{1,4}))=(-?\d{1,4}(?:\.\d{1,20})?(?:e-\d{1,3})?)", re.ASCII)


def format_edits(edits: Edits) -> str:
    """The text, "" for no edits; heads first, then attention, feed-forward, activation, positions.

    Raises ValueError for patches, whose values do not fit a text, and factors that `parse_edits` would refuse.
    """
    if edits.patches:
        raise ValueError("a patched activation is a vector of numbers and has no short text")
    parts = [f"h{layer}.{head}={_number(x)}" for (layer, head), x in sorted(edits.head_scale.items())]
    parts += [f"a{layer}={_number(x)}" for layer, x in sorted(edits.attn_scale.items())]
    parts += [f"f{layer}={_number(x)}" for layer, x in sorted(edits.mlp_scale.items())]
    parts += [f"act={edits.activation}"] if edits.activation is not None else []
    parts += ["nopos"] if edits.drop_positions else []
    return ",".join(parts)


def parse_edits(text: str) -> Edits:
    """The edits of a text that anybody may have written, in any order.

    Raises ValueError, naming the part, for what is no edit, a factor beyond LARGEST, or the same part twice.
    Whether a model has these layers and heads is for `Edits.check` or `Edits.fitting` to say.
    """
    if len(text) > LONGEST:
        raise ValueError(f"a text of edits has at most {LONGEST:,} characters, not {len(text):,}")
    heads: dict[tuple[int, int], float] = {}
    branches: dict[str, dict[int, float]] = {"a": {}, "f": {}}
    activation: Activation | None = None
    drop_positions = False
    for part in filter(None, text.split(",")):
        scale = _SCALE.fullmatch(part)
        if scale is not None:
            layer, head, branch, branch_layer, factor = scale.groups()
            place, key = (heads, (int(layer), int(head))) if head else (branches[branch], int(branch_layer))
            if key in place:
                raise _refused(part, "is there twice")
            place[key] = float(factor)
            if abs(place[key]) > LARGEST:
                raise _refused(part, f"has a factor beyond {LARGEST:g}")
        elif part == "nopos" and not drop_positions:
            drop_positions = True
        elif part.startswith("act=") and activation is None:
            activation = part.removeprefix("act=")
            if activation not in get_args(Activation):
                raise _refused(part, f"is not one of {', '.join(get_args(Activation))}")
        else:
            raise _refused(part, "is no edit, or is there twice")
    return Edits(heads, branches["a"], branches["f"], activation, drop_positions)


def edits_as_python(edits: Edits) -> str:
    """The call that makes these edits, such as `Edits(head_scale={(3, 2): 0.0})`. Raises ValueError for patches."""
    if edits.patches:
        raise ValueError("a patched activation is a vector of numbers: tell where it comes from instead")
    scales: dict[str, Mapping[object, float]] = {
        "head_scale": edits.head_scale,
        "attn_scale": edits.attn_scale,
        "mlp_scale": edits.mlp_scale,
    }
    parts = [f"{name}={dict(sorted(scale.items()))!r}" for name, scale in scales.items() if scale]
    parts += [f"activation={edits.activation!r}"] if edits.activation is not None else []
    parts += ["drop_positions=True"] if edits.drop_positions else []
    return f"Edits({', '.join(parts)})"


def _number(factor: float) -> str:
    """The shortest text that is this number again; 0, not 0.0."""
    if not math.isfinite(factor) or abs(factor) > LARGEST:
        raise ValueError(f"a factor of {factor} has no place in a text: at most {LARGEST:g}, either way")
    return repr(float(factor)).removesuffix(".0")


def _refused(part: str, why: str) -> ValueError:
    return ValueError(f"{part[:40]!r} {why}")
