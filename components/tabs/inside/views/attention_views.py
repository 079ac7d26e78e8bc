"""Attention between tokens: the weights of a layer's heads, or an aggregate from the literature."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from components.i18n import Language, t
from components.labels import percent
from components.state.snapshot import Snapshot
from components.tabs.inside.results import Rollout
from components.tabs.inside.state import InsideState
from components.tabs.inside.views.flow import top_targets
from components.tabs.inside.views.head_stages import SIDE, shown_windows, side
from components.tabs.inside.views.scene import Data, Scene, part_view
from components.widgets.lines import lines_data
from gpt.analysis.heads import mean_weights, normalize_rows, value_weighted, without_first_token

_LABELS = ("name", "head", "heads", "all", "only", "least", "from", "to", "cells", "cells.one", "later", "hint", "keys")


def description(s: Snapshot, scene: Scene) -> Data:
    """Define the view and cite its paper."""
    return {"text": t(f"lines.what.{s.state(InsideState).attention_view}", s.language)}


@torch.inference_mode()
def attention_lines(s: Snapshot, scene: Scene) -> Data:
    """Return the data for the selected layer's attention lines."""
    state, config = s.state(InsideState), scene.config
    if state.attention_view == "rollout" and rollout_of(s, scene) is None:
        return {}
    queries, keys = shown_windows(s, scene)
    weights = attention_view(s, scene, queries)
    own = weights[scene.head if len(weights) > 1 else 0][scene.position - queries.start]
    content = {
        "layer": scene.layer,
        "head": scene.head,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "pictures": len(weights),
        "queries": side(scene, queries),
        "keys": side(scene, keys),
        "query": scene.position,
        "key": -1 if scene.key is None else scene.key,
        "text": _sentence(s, scene, own, keys),
    }
    n_later = max(0, keys.stop - queries.stop)  # keys after all of these queries
    shown = np.pad(weights, ((0, 0), (0, 0), (0, n_later)))[..., keys]
    return lines_data(shown, content) | {"labels": lines_labels(s.language)}


def attention_view(s: Snapshot, scene: Scene, queries: slice) -> np.ndarray:
    """Return the chosen view of the selected layer's attention, (n_head or 1, queries, queries.stop).

    Rows sum to 1, or to 0 if no weight is left. The mean covers all layers; the rollout covers the layers computed so
    far.
    """
    view, layer = s.state(InsideState).attention_view, scene.layer
    if view == "rollout":
        rollout = rollout_of(s, scene)
        assert rollout is not None
        shown = rollout.flow[None, queries, : queries.stop]
        return shown.float().cpu().numpy()
    trace = scene.recording.attention_trace(queries.start, queries.stop)
    if view == "values":
        shown = normalize_rows(value_weighted(scene.document.loaded.model, trace, layer))
    elif view == "without_first":
        shown = without_first_token(trace.layers[layer].attn_weights[0])
    elif view == "layer_mean":
        shown = mean_weights(trace, layer)[None]
    elif view == "mean":
        shown = mean_weights(trace)[None]
    else:
        shown = trace.layers[layer].attn_weights[0]
    return shown.float().cpu().numpy()


def rollout_of(s: Snapshot, scene: Scene) -> Rollout | None:
    """Return the rollout of the recorded text through the layers computed so far."""
    rollout = s.state(InsideState).rollout
    return rollout if rollout is not None and rollout.recording is scene.recording else None


def lines_labels(language: Language) -> dict[str, str]:
    """Return the labels for the attention lines."""
    return {name: t(f"lines.{name}", language) for name in _LABELS}


def _sentence(s: Snapshot, scene: Scene, own: np.ndarray, keys: slice) -> str:
    """Describe the attention from the selected position; `own` is its row, (queries.stop,)."""
    view, language, position = s.state(InsideState).attention_view, scene.language, scene.position
    row = own[: position + 1]
    named: dict[str, Any] = {"token": scene.placed(position)}
    if row.any():
        named |= {"targets": top_targets(scene, row, 3), "layer": scene.layer, "head": scene.head}
        text = t(f"lines.says.{view}", language, **named)
    else:
        text = t("lines.nothing", language, **named)
    if scene.recording.looks_ahead(scene.layer):
        text += t("lines.ahead", language)
    rollout = rollout_of(s, scene)
    if view == "rollout" and rollout is not None and not rollout.is_complete:
        text += t("lines.more", language, layers=rollout.n_layers, n=scene.config.n_layer)
    if scene.recording.length > SIDE:
        share = percent(max(0.0, float(row.sum() - own[keys].sum())))
        text += t("lines.window", language, first=keys.start, last=keys.stop - 1, share=share)
    return text


VIEWS = (
    part_view(
        "lines-what",
        "one_head",
        description,
        {"text": ""},
    ),
    part_view("lines", "one_head", attention_lines, {"n_head": 0, "text": ""}),
)
