"""One head in stages: queries and keys, their products scaled, masked and made into weights, values, the output."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from components.i18n import t
from components.labels import percent, quoted, token_text, visible
from components.tabs.inside.part import Scene
from components.tabs.inside.record import HeadVectors
from components.tabs.inside.views import shown_head, window
from components.widgets.encoding import to_base64
from components.widgets.heads import max_pooled
from components.widgets.stages import floats, shorts, stages_value

SIDE = 64  # queries, and keys, that are shown at once
MAP = 96  # pixels of the small map of a text that is longer


def starts(length: int, position: int, key: int | None, before: tuple[int, int] | None) -> tuple[int, int]:
    """The first query and the first key that are shown: the same as before where that holds the selection."""
    n = min(length, SIDE)
    query_start, key_start = before or (-1, -1)
    if not (0 <= query_start <= position < query_start + n <= length):
        query_start = window(length, position)[0]
        key_start = query_start if key is None else key_start
    if key is not None and not (0 <= key_start <= key < key_start + n <= length):
        key_start = max(0, min(key - n // 2, length - n))
    return query_start, min(max(0, key_start), length - n)


def shown_windows(scene: Scene) -> tuple[slice, slice]:
    """The queries and the keys that are shown; remembered, so that a click inside does not move them."""
    length = scene.record.length
    scene.kept["starts"] = found = starts(length, scene.position, scene.key, scene.kept.get("starts"))
    queries, keys = (slice(start, min(length, start + SIDE)) for start in found)
    return queries, keys


def stages(scene: Scene) -> str:
    """Everything that the widget draws of the selected head, and the sentence that says it."""
    record, position = scene.record, scene.position
    config, document = record.config, record.document
    layer, head, hs = scene.look.layer, shown_head(scene.look), config.head_size
    queries, keys = shown_windows(scene)
    vectors = record.head(layer, head)
    key = scene.key
    if key is None:
        key = keys.start + int(vectors.weights[position, keys].argmax())
    labels = [visible(token_text(document.loaded.tokenizer, i)) for i in document.ids[: record.length]]
    content: dict[str, Any] = {
        "layer": layer,
        "head": head,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "head_size": hs,
        "total": record.length,
        "queries": {"start": queries.start, "tokens": labels[queries]},
        "keys": {"start": keys.start, "tokens": labels[keys]},
        "query": position,
        "key": key,
        "q": shorts(vectors.q[queries]),
        "k": shorts(vectors.k[keys]),
        "v": shorts(vectors.v[keys]),
        "z": shorts(vectors.z[queries]),
        "scores": floats(vectors.scores[queries, keys]),
        "weights": floats(vectors.weights[queries, keys]),
        "sums": floats(log_sums(vectors, queries)),
        "text": _says(scene, vectors, queries, keys),
    }
    if record.length > SIDE:
        side = -(-record.length // -(-record.length // MAP))
        small = np.round(255 * max_pooled(vectors.weights, side))
        content["map"] = {"side": side, "levels": to_base64(small.astype(np.uint8))}
    return stages_value(content)


def log_sums(vectors: HeadVectors, queries: slice) -> np.ndarray:
    """(n,): log of the sum of exp(score) over what a query may look at; weight = exp(score - that)."""
    scores = vectors.scores[queries].astype(np.float64)
    seen = np.arange(scores.shape[1]) <= np.arange(queries.start, queries.start + len(scores))[:, None]
    scores = np.where(seen, scores, -math.inf)
    largest = scores.max(axis=1)
    return (largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))).astype(np.float32)


def _says(scene: Scene, vectors: HeadVectors, queries: slice, keys: slice) -> str:
    ids, tokenizer = scene.record.document.ids, scene.record.document.loaded.tokenizer
    row = vectors.weights[scene.position, : scene.position + 1]
    most = [int(i) for i in np.argsort(-row, kind="stable")[:2]]
    text = t(
        "stages.says",
        scene.language,
        token=quoted(tokenizer, ids[scene.position]),
        position=scene.position,
        layer=scene.look.layer,
        head=shown_head(scene.look),
        targets=", ".join(f"{quoted(tokenizer, ids[i])} ({percent(row[i])})" for i in most),
    )
    if scene.record.length > SIDE:
        text += t(
            "stages.window",
            scene.language,
            first=queries.start,
            last=queries.stop - 1,
            first_key=keys.start,
            last_key=keys.stop - 1,
            share=percent(max(0.0, 1 - float(vectors.weights[scene.position, keys].sum()))),
        )
    return text
