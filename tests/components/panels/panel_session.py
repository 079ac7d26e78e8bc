"""The views of a session's panels."""

from __future__ import annotations

import base64
from importlib import import_module
from typing import Any

import numpy as np

from components.state.session import Session
from tests.components.drawing import in_its_language

PANELS = {
    "layer_norm": "norm",
    "shortcuts": "shortcuts",
    "tokenizer": "bpe",
    "masks": "masks",
    "initialisation": "start",
    "tying": "tying",
    "kernels": "kernels",
    "prefill": "prefill",
    "positions": "positions",
    "norm_placement": "placement",
    "skeleton": "skeleton",
    "feed_forward": "ff",
}


@in_its_language
def shown(session: Session, name: str) -> dict[str, Any]:
    """Return the views of a panel once its analysis is complete."""
    module = import_module(f"components.panels.{name}")
    analysis = getattr(module, "ANALYSIS", None)
    if analysis is not None:
        list(analysis.run(session))
        assert analysis.wanted(session.snapshot()) is None
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in module.VIEWS}


def notice(found: dict[str, Any], name: str) -> str:
    return found[f"{PANELS[name]}-notice"]["text"]


def answer(found: dict[str, Any], name: str) -> str:
    return found[f"{PANELS[name]}-answer"]["text"]


def colours(node: Any, meant: bool = False) -> set[str]:
    if isinstance(node, str):
        return {node} if meant and node.startswith("#") else set()
    if isinstance(node, dict):
        return {c for key, value in node.items() for c in colours(value, "color" in key)}
    return {c for item in node for c in colours(item, meant)} if isinstance(node, list | tuple) else set()


def values(curve: dict[str, Any], axis: str = "y") -> np.ndarray:
    """Return the numbers of a trace. Arrays are sent as base64."""
    numbers = curve[axis]
    if isinstance(numbers, dict):
        return np.frombuffer(base64.b64decode(numbers["bdata"]), numbers["dtype"])
    return np.asarray(numbers)


def y_of(picture: dict[str, Any]) -> list[np.ndarray]:
    return [values(curve) for curve in picture["figure"]["data"]]
