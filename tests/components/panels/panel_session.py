"""Panels as a page has them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from components.kit import Tab, card
from components.panels import (
    feed_forward,
    initialisation,
    kernels,
    layer_norm,
    masks,
    norm_placement,
    notebook,
    positions,
    prefill,
    shortcuts,
    skeleton,
    tokenizer,
    tying,
)
from components.state.session import Session
from tests.components.drawing import Drawn

PANELS = {
    module.panel.name: module
    for module in (
        *(feed_forward, initialisation, kernels, layer_norm, masks, norm_placement, notebook),
        *(positions, prefill, shortcuts, skeleton, tokenizer, tying),
    )
}


def drawn(session: Session, name: str) -> Drawn:
    """Return a panel on a page."""
    tab = Tab("lessons")
    tab.cards(card("panel", PANELS[name].SECTION))
    return Drawn(session, tab)


def said(views: dict[str, dict[str, Any]], view: str) -> str:
    return str(views.get(view, {}).get("text", ""))


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
