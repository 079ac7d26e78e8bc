"""The beats of the film."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.tabs.inside.components import Part


@dataclass(frozen=True)
class Beat:
    """One beat of the film.

    name: of its texts, "film.<name>" and "film.<name>.title". lit: the parts of the picture that it tells of, which the
    camera shows. place: the part of the tab, or the tab, where one can look around. seconds: how long it takes.
    close: the parts that the camera shows on a narrow screen. names: the tokens that stand at the left of the picture.
    """

    name: str
    lit: tuple[str, ...]
    place: Part | Literal["playground"]
    seconds: float = 5.5
    close: tuple[str, ...] = ()
    names: Literal["all", "followed", "none"] = "all"


BEATS = (
    Beat("text", ("sentence",), "playground", 4, names="none"),
    Beat("tokens", ("ids",), "playground", 5),
    Beat("embedding", ("ids", "tok"), "embeddings"),
    Beat("position", ("tok", "pos", "x"), "embeddings", 6, close=("pos", "x")),
    Beat("norm", ("pre", "norm"), "machine", 6),
    Beat("qkv", ("norm", "q", "k", "v"), "one_head", 6.5, close=("q", "k", "v")),
    Beat("scores", ("q", "k", "matrix"), "one_head", 7.5, close=("matrix",)),
    Beat("mask", ("matrix",), "one_head", 4),
    Beat("softmax", ("matrix",), "one_head", 6),
    Beat("values", ("v", "matrix", "z"), "one_head", 7, close=("v", "z")),
    Beat("residual", ("heads", "att", "base", "mid"), "stream", 6.5, close=("att", "base", "mid"), names="followed"),
    Beat("neurons", ("mid", "ff", "out", "post"), "stream", 6.5, close=("ff", "out"), names="followed"),
    Beat("layers", ("layers",), "machine", 6, names="followed"),
    Beat("logits", ("logits",), "playground", 5, names="none"),
    Beat("temperature", ("logits", "bars"), "playground", 6, names="none"),
    Beat("draw", ("bars", "line"), "playground", 6.5, close=("line",), names="none"),
)
