"""The stages of one head: queries and keys, scores, scaling, mask, softmax, values, output."""

from __future__ import annotations

import math

import numpy as np

from components.i18n import t
from components.labels import percent
from components.state.snapshot import Snapshot
from components.tabs.inside.pooling import HeadVectors
from components.tabs.inside.state import InsideState
from components.tabs.inside.views import flow
from components.tabs.inside.views.family import group_of, is_usual_scale
from components.tabs.inside.views.scene import Data, Scene, part_view
from components.widgets.encoding import to_base64
from components.widgets.heads import max_pooled
from components.widgets.stages import floats, shorts

SIDE = 64  # maximum number of queries and keys shown
MAP_SIDE = 96  # maximum number of pixels per side in the thumbnail of a longer text


def head_stages(s: Snapshot, scene: Scene) -> Data:
    """Return the widget's data for the selected head."""
    recording, config, position = scene.recording, scene.config, scene.position
    ahead = recording.looks_ahead(scene.layer)
    queries, keys = shown_windows(s, scene)
    vectors, key = recording.head(scene.layer, scene.head), scene.key
    scaled = vectors.q[queries] @ vectors.k[keys].T * config.score_scale  # before the soft cap
    if key is None:
        key = keys.start + int(vectors.weights[position, keys].argmax())
    return {
        "layer": scene.layer,
        "head": scene.head,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "kv_heads": config.kv_heads,
        "head_size": config.head_size,
        "scale": config.score_scale,
        "cap": config.attn_softcap,
        "window": config.window_of(scene.layer),
        "ahead": ahead,
        "total": recording.length,
        "queries": side(scene, queries),
        "keys": side(scene, keys),
        "query": position,
        "key": key,
        "q": shorts(vectors.q[queries]),
        "k": shorts(vectors.k[keys]),
        "v": shorts(vectors.v[keys]),
        "z": shorts(vectors.z[queries]),
        "scaled": floats(scaled),
        "weights": floats(vectors.weights[queries, keys]),
        "sums": floats(log_sums(vectors.scores, queries, config.window_of(scene.layer), ahead=ahead)),
        "map": _map(vectors) if recording.length > SIDE else None,
        "text": _sentence(scene, vectors, queries, keys),
        "variants": variants(scene),
        "shared": _shared(scene),
    }


def window_starts(length: int, position: int, key: int | None, before: tuple[int, int] | None) -> tuple[int, int]:
    """Return the first query and key to show, keeping each value from `before` if its window contains the selection."""
    n = min(length, SIDE)
    query_start, key_start = before or (-1, -1)
    if not (0 <= query_start <= position < query_start + n <= length):
        query_start = flow.window(length, position, SIDE).start
        key_start = query_start if key is None else key_start
    if key is not None and not (0 <= key_start <= key < key_start + n <= length):
        key_start = max(0, min(key - n // 2, length - n))
    return query_start, min(max(0, key_start), length - n)


def shown_windows(s: Snapshot, scene: Scene) -> tuple[slice, slice]:
    """Return the visible queries and keys. These windows stay in place while they contain the selection."""
    length = scene.recording.length
    starts = window_starts(length, scene.position, scene.key, s.state(InsideState).windows)
    queries, keys = (slice(start, min(length, start + SIDE)) for start in starts)
    return queries, keys


def side(scene: Scene, rows: slice) -> Data:
    """Return the tokens along one axis."""
    return {"start": rows.start, "tokens": scene.tokens(rows)}


def log_sums(scores: np.ndarray, queries: slice, window: int | None = None, *, ahead: bool = False) -> np.ndarray:
    """Return the log-sum-exp of each query's scores over its visible keys, (n,); weight = exp(score - log_sum).

    Args:
        scores: Attention scores, (T, T).
        window: The layer's attention window (see `GPTConfig.window_of`).
        ahead: Whether queries can attend to later keys.
    """
    scores = scores[queries].astype(np.float64)
    ends, keys = np.arange(queries.start, queries.start + len(scores))[:, None], np.arange(scores.shape[1])
    seen = (ahead | (keys <= ends)) & (keys > (-1 if window is None else ends - window))
    scores = np.where(seen, scores, -math.inf)
    largest = scores.max(axis=1)
    return (largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))).astype(np.float32)


def variants(scene: Scene) -> list[str]:
    """Return what this model computes differently from GPT-2, as endings of the keys of the stages' texts."""
    config = scene.config
    differs = {
        "factor": not is_usual_scale(config),
        "capped": config.attn_softcap is not None,
        "rotary": config.is_rotated(scene.layer),
        "window": config.window_of(scene.layer) is not None,
        "ahead": scene.recording.looks_ahead(scene.layer),
    }
    return [variant for variant, is_different in differs.items() if is_different]


def _shared(scene: Scene) -> dict[str, int] | None:
    """Return the first and last of the heads that share the selected head's keys and values, if any do."""
    config, heads = scene.config, group_of(scene.config, scene.head)
    return {"first": heads[0], "last": heads[-1]} if config.kv_heads < config.n_head else None


def _map(vectors: HeadVectors) -> Data:
    """Return a thumbnail of all weights for a long text. Each pixel is the maximum of a group of weights."""
    length = len(vectors.weights)
    pixels = -(-length // -(-length // MAP_SIDE))
    levels = np.round(255 * max_pooled(vectors.weights, pixels)).astype(np.uint8)
    return {"side": pixels, "levels": to_base64(levels)}


def _sentence(scene: Scene, vectors: HeadVectors, queries: slice, keys: slice) -> str:
    position = scene.position
    seen = None if scene.recording.looks_ahead(scene.layer) else position + 1
    row = vectors.weights[position, :seen]
    text = t(
        "stages.says",
        token=scene.placed(position),
        layer=scene.layer,
        head=scene.head,
        targets=flow.top_targets(scene, row, 2),
    )
    if scene.recording.length > SIDE:
        text += t(
            "stages.window",
            first=queries.start,
            last=queries.stop - 1,
            first_key=keys.start,
            last_key=keys.stop - 1,
            share=percent(max(0.0, 1 - float(vectors.weights[position, keys].sum()))),
        )
    return text


VIEWS = (part_view("stages", "one_head", head_stages, {"n_head": 0, "text": ""}),)
