"""Loss against parameters, tokens and compute, from recorded runs of small models with two architectures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCALING = Path(__file__).parent.parent / "assets" / "scaling.json"  # results shown on the page


@dataclass(frozen=True)
class ScalingPoint:
    """One point on a training curve: tokens seen, FLOPs, loss in nats per token, and bits per byte."""

    tokens: int
    flops: float
    loss: float
    bits_per_byte: float


@dataclass(frozen=True)
class ScalingCurve:
    """Training curve of one model. block_parameters: number of parameters, excluding embeddings and head."""

    name: str
    parameters: int
    block_parameters: int
    points: tuple[ScalingPoint, ...]


@dataclass(frozen=True)
class Scaling:
    """The results of a run.

    command: command that started the run. curves: smallest model first, the bundled model last. llama: curves for the
    Llama architecture, in the same order."""

    command: str
    curves: tuple[ScalingCurve, ...]
    llama: tuple[ScalingCurve, ...]


def load_scaling() -> Scaling:
    """Load the results that `python -m tools.scaling` writes."""

    def curve(points: list[dict[str, float]], **numbers: Any) -> ScalingCurve:
        return ScalingCurve(points=tuple(ScalingPoint(**point) for point in points), **numbers)  # type: ignore[arg-type]

    found = json.loads(SCALING.read_text(encoding="utf-8"))
    curves, llama = (tuple(curve(**each) for each in found[key]) for key in ("curves", "llama"))
    return Scaling(found["command"], curves, llama)
