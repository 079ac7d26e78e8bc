"""Who looks at whom: the weights of a layer's heads, or one of the views that people read instead of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from components.i18n import t
from components.labels import percent, quoted, token_text, visible
from components.tabs.inside.part import Scene
from components.tabs.inside.rollout import Rollout
from components.tabs.inside.stages import SIDE, shown_windows
from components.tabs.inside.views import shown_head
from components.widgets.lines import lines_value
from gpt.analysis.heads import mean_weights, normalize_rows, value_weighted, without_first_token

VIEWS = ("weights", "values", "without_first", "layer_mean", "mean", "rollout")
SECONDS = 0.3  # for a rollout, at each look
OF_HEADS = VIEWS[:3]  # one picture for each head; the others are one for all of them


def shares(scene: Scene, view: str, start: int = 0, stop: int | None = None) -> np.ndarray:
    """(n_head or 1, stop - start, stop): who looks at whom in the selected layer, the queries from `start` to before
    `stop`, by default all; each row sums to 1, or to 0 where nothing is left.

    view: one of VIEWS; see `gpt.analysis.heads`. The mean and the rollout are over all layers, up to the last; the
    rollout goes on from where it stopped at the look before, and scene.kept["more"] says that it is not there yet.
    """
    record, layer = scene.record, scene.look.layer
    stop = record.length if stop is None else stop
    trace = record.trace(start, stop)
    if view == "values":
        made = normalize_rows(value_weighted(record.document.loaded.model, trace, layer))
    elif view == "without_first":
        made = without_first_token(trace.layers[layer].attn_weights[0])
    elif view == "layer_mean":
        made = mean_weights(trace, layer)[None]
    elif view == "mean":
        made = mean_weights(trace)[None]
    elif view == "rollout":
        made = _rollout(scene).flow[None, start:stop, :stop]
    else:
        made = trace.layers[layer].attn_weights[0]
    return made.float().cpu().numpy()


def _rollout(scene: Scene) -> Rollout:
    made = scene.kept.get("rollout")
    if made is None or not made.holds(scene.record):
        made = scene.kept["rollout"] = Rollout(scene.record)
    scene.kept["more"] = not made.extend(SECONDS)
    return made


@torch.inference_mode()
def looks(scene: Scene, view: str) -> str:
    """Everything that the widget draws of the selected layer, and the sentence that says it."""
    record, layer, head = scene.record, scene.look.layer, shown_head(scene.look)
    config, document = record.config, record.document
    queries, keys = shown_windows(scene)
    scene.kept["more"] = False
    weights = shares(scene, view, queries.start, queries.stop)
    own = weights[head if len(weights) > 1 else 0]
    labels = [visible(token_text(document.loaded.tokenizer, i)) for i in document.ids[: record.length]]
    content: dict[str, Any] = {
        "layer": layer,
        "head": head,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "pictures": len(weights),
        "queries": {"start": queries.start, "tokens": labels[queries]},
        "keys": {"start": keys.start, "tokens": labels[keys]},
        "query": scene.position,
        "key": -1 if scene.key is None else scene.key,
        "text": _says(scene, view, own[scene.position - queries.start], keys),
    }
    room = max(0, keys.stop - queries.stop)  # keys that are later than all of these queries
    return lines_value(np.pad(weights, ((0, 0), (0, 0), (0, room)))[..., keys], content)


def _says(scene: Scene, view: str, own: np.ndarray, keys: slice) -> str:
    language, position = scene.language, scene.position
    ids, tokenizer = scene.record.document.ids, scene.record.document.loaded.tokenizer
    row = own[: position + 1]
    token = quoted(tokenizer, ids[position])
    if not row.any():
        text = t("lines.nothing", language, token=token, position=position)
    else:
        most = [int(i) for i in np.argsort(-row, kind="stable")[:3] if row[i] > 0]
        targets = ", ".join(f"{quoted(tokenizer, ids[i])} ({percent(row[i])})" for i in most)
        place = {"layer": scene.look.layer, "head": shown_head(scene.look)}
        text = t(f"lines.says.{view}", language, token=token, position=position, targets=targets, **place)
    if scene.kept["more"]:
        text += t("lines.more", language, layers=scene.kept["rollout"].layers, n=scene.record.config.n_layer)
    if scene.record.length > SIDE:
        share = percent(max(0.0, float(row.sum() - own[keys].sum())))
        text += t("lines.window", language, first=keys.start, last=keys.stop - 1, share=share)
    return text
