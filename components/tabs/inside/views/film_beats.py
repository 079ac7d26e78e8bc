"""The beats of the film: those of GPT-2, and what other models have besides or instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from components.tabs.inside.state import Part
from gpt import GPTConfig


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

ROTATION = Beat("position", ("q", "k"), "one_head", 7.5)
GATE = Beat("gate", ("mid", "gate", "up", "ff"), "stream", 7, close=("gate", "up", "ff"), names="followed")
SUM = Beat("sum", ("out", "added", "again", "post"), "stream", 6.5, close=("added", "again", "post"), names="followed")


def beats_of(config: GPTConfig) -> tuple[Beat, ...]:
    """The beats of a model.

    Rotary positions are told after the queries and keys that they rotate. Gated neurons have a beat for the gate.
    Parallel branches are added together, after the neurons.
    """
    beats = list(BEATS)

    def at(name: str) -> int:
        return next(i for i, beat in enumerate(beats) if beat.name == name)

    if config.position == "rotary":
        del beats[at("position")]
        beats.insert(at("qkv") + 1, ROTATION)
    if config.gated:
        beats[at("neurons")] = replace(beats[at("neurons")], lit=("ff", "out", "post"))
        beats.insert(at("neurons"), GATE)
    if config.parallel:
        beats[at("residual")] = replace(beats[at("residual")], lit=("heads", "att"), close=("heads", "att"))
        for i, beat in enumerate(beats):
            if beat.name in ("gate", "neurons"):
                lit = tuple("base" if part == "mid" else part for part in beat.lit if part != "post")
                beats[i] = replace(beat, lit=lit)
        beats.insert(at("neurons") + 1, SUM)
    return tuple(beats)
