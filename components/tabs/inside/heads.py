"""The pictures of heads: thumbnails of all heads, which grow with the text, and one head in stages."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from components.i18n import t
from components.labels import percent
from components.parts import Lines
from components.state.reads import Pending
from components.tabs.inside.machine import group_of, is_usual_scale
from components.tabs.inside.recording import HeadVectors, Recording
from components.tabs.inside.scene import Scene, is_of_document, recording_at, scene_of, tab
from components.text_views import most_attended
from components.widgets.heads import heads_data, largest_side, max_pooled
from components.widgets.widget import to_base64, widget
from gpt import Generation

# One head in stages. Raises `.select` with one of {"layer"}, {"head"}, {"position"}, {"position", "key"}.
stages = partial(
    widget,
    "stages",
    template="""<figure class="gb-stages">
<div class="gb-picks-row"><div class="gb-picks gb-picks-layer" role="group"></div>
<div class="gb-picks gb-picks-heads" role="group"></div></div>
<div class="gb-stages-row" role="group"></div>
<div class="gb-stages-body">
<div class="gb-stages-picture">
<p class="gb-stages-what"></p>
<div class="gb-stages-large" tabindex="0" role="application"><canvas aria-hidden="true"></canvas></div>
<div class="gb-stages-legend"><span></span><span class="gb-stages-ramp"></span><span></span></div>
</div>
<div class="gb-stages-side">
<ol class="gb-stages-sum" aria-live="polite"></ol>
<div class="gb-stages-map" hidden><p class="gb-note"></p><canvas tabindex="0" role="application"></canvas></div>
</div>
</div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
<div class="gb-tip gb-stages-tip" role="tooltip" hidden></div>
</figure>""",
    latest=True,
)


def shorts(vectors: np.ndarray) -> dict[str, Any]:
    """Encode vectors as int16 in base64, with the value that 32767 represents."""
    scale = float(np.abs(vectors).max(initial=0)) or 1.0
    levels = np.round(vectors / scale * 32767).astype("<i2")
    return {"scale": scale, "data": to_base64(levels)}


BLOCK = 64  # positions computed at once
OVERVIEW_SECONDS = 0.2  # until a partial overview is shown
SIDE, STEP = 64, 32  # maximum number of queries and keys shown, and by how many their window moves
MAP_SIDE = 96  # maximum number of pixels per side in the thumbnail of a longer text


@dataclass(frozen=True, eq=False)
class HeadOverview:
    """Thumbnails of all heads. Each pixel is the maximum weight among `factor` x `factor` token pairs.

    ids: the tokens included so far. rows: rows of pixels without masked keys, each (n_layer, n_head, row + 1) in uint8,
    where 255 means a weight of 1. sums: from which `shares` is computed, (n_layer, n_head, 3).
    """

    document: Generation
    ids: tuple[int, ...]
    factor: int
    rows: tuple[np.ndarray, ...] = field(repr=False)
    sums: np.ndarray = field(repr=False)

    @classmethod
    def empty(cls, document: Generation) -> HeadOverview:
        config = document.loaded.model.config
        return cls(document, (), 1, (), np.zeros((config.n_layer, config.n_head, 3)))

    @property
    def shares(self) -> np.ndarray:
        """Each head's mean weights on the first token, the previous token and the token itself, (n_layer, n_head, 3).

        The first two are averaged over all positions except the first.
        """
        n = len(self.ids)
        return self.sums / np.array([max(1, n - 1), max(1, n - 1), max(1, n)])

    def is_prefix_of(self, recording: Recording) -> bool:
        return self.document is recording.document and recording.ids[: len(self.ids)] == self.ids

    def extended(self, recording: Recording) -> HeadOverview:
        """Return the overview, extended by blocks of positions for about OVERVIEW_SECONDS. Another text starts anew."""
        overview, began, end = self, time.perf_counter(), recording.length
        if not self.is_prefix_of(recording):
            overview = self.empty(recording.document)
        n_layer, n_head, _ = overview.sums.shape
        factor = overview.factor
        while math.ceil(end / factor) > largest_side(n_layer, n_head):
            factor *= 2
        if factor != overview.factor:  # at half the resolution, from the beginning
            overview = replace(self.empty(recording.document), factor=factor)
        while (start := len(overview.ids)) < end:
            overview = overview._with_block(recording, start, min(end, start // BLOCK * BLOCK + BLOCK))
            if time.perf_counter() - began > OVERVIEW_SECONDS:
                break
        return overview

    @torch.inference_mode()
    def _with_block(self, recording: Recording, start: int, end: int) -> HeadOverview:
        sums, blocks, factor = self.sums.copy(), [], self.factor
        first = start // factor * factor  # where the last row of pixels begins, which may be incomplete
        positions = torch.arange(start, end)
        queries = positions[positions > 0]
        for layer in range(len(sums)):
            weights = recording.attn_weights(layer, first, end)  # (n_head, end - first, end)
            sums[layer, :, 2] += weights[:, positions - first, positions].sum(dim=1).numpy()
            sums[layer, :, 1] += weights[:, queries - first, queries - 1].sum(dim=1).numpy()
            sums[layer, :, 0] += weights[:, queries - first, 0].sum(dim=1).numpy()
            levels = weights.mul_(255).round_().byte().numpy()
            for axis in (1, 2):
                levels = np.maximum.reduceat(levels, np.arange(0, levels.shape[axis], factor), axis=axis)
            blocks.append(levels)
        new, done = np.stack(blocks), first // factor  # (n_layer, n_head, rows, pixels)
        rows = [new[:, :, i, : done + i + 1] for i in range(new.shape[2])]
        return replace(self, ids=recording.ids[:end], rows=(*self.rows[:done], *rows), sums=sums)


@tab.computed(while_writing=True, is_usable=is_of_document)
def overview(s: Any) -> Generator[HeadOverview, None, HeadOverview]:
    """Extend the overview to the whole recording; while a text is being written, only a part at a time."""
    recording, _ = recording_at(s)
    extended = overview.latest(s.snapshot) or HeadOverview.empty(recording.document)
    while True:
        extended = extended.extended(recording)
        if s.generating or extended.ids == recording.ids:
            return extended
        yield extended


def draw_heads(s: Any) -> dict[str, Any]:
    scene, shown = s.cached(scene_of), s[overview]
    if not shown.ids or not shown.is_prefix_of(scene.recording):
        raise Pending
    text = _overview_sentence(shown, scene)
    data = heads_data(shown.rows, shown.shares, {"layer": scene.layer, "head": scene.head, "text": text})
    return data | {"rows": Lines(data["rows"])}


def _overview_sentence(overview: HeadOverview, scene: Scene) -> str:
    config, shares = scene.config, overview.shares[:, :, 1]
    layer, head = (int(i) for i in np.unravel_index(shares.argmax(), shares.shape))
    most = {"layer": layer, "head": head, "share": percent(shares[layer, head])}
    text = t("heads.says", n=config.n_layer * config.n_head, tokens=len(overview.ids), **most)
    if len(overview.ids) < scene.recording.length:
        text += t("heads.more", total=f"{scene.recording.length:,}")
    return text


def draw_stages(s: Any) -> dict[str, Any]:
    scene = s.cached(scene_of)
    recording, config, position = scene.recording, scene.config, scene.position
    layer = scene.of_layer()
    queries = shown_window(recording.length, position)
    keys = queries if scene.key is None else shown_window(recording.length, scene.key)
    vectors, key = recording.head(scene.layer, scene.head), scene.key
    scaled = vectors.q[queries] @ vectors.k[keys].T * config.score_scale  # before the soft cap
    strongest = range(queries.start, queries.stop), vectors.weights[queries].argmax(axis=1)
    shared = group_of(config, scene.head)
    variants = {  # differences from GPT-2, as endings of the keys of the stages' texts
        "factor": not is_usual_scale(config),
        "capped": config.attn_softcap is not None,
        "rotary": config.is_rotated(scene.layer),
        "window": layer["window"] is not None,
        "ahead": layer["ahead"],
    }
    if key is None:
        key = keys.start + int(vectors.weights[position, keys].argmax())
    return layer | {
        "head_size": config.head_size,
        "scale": config.score_scale,
        "cap": config.attn_softcap,
        "queries": {"start": queries.start, "tokens": scene.tokens(queries)},
        "keys": {"start": keys.start, "tokens": scene.tokens(keys)},
        "query": position,
        "key": key,
        "q": shorts(vectors.q[queries]),
        "k": shorts(vectors.k[keys]),
        "v": shorts(vectors.v[keys]),
        "z": shorts(vectors.z[queries]),
        "scaled": to_base64(scaled.astype(np.float32)),
        "weights": to_base64(vectors.weights[queries, keys].astype(np.float32)),
        "sums": to_base64((vectors.scores[strongest] - np.log(vectors.weights[strongest])).astype(np.float32)),
        "map": _map(vectors) if recording.length > SIDE else None,
        "text": _stages_sentence(scene, vectors, queries, keys),
        "variants": [variant for variant, is_different in variants.items() if is_different],
        "shared": {"first": shared[0], "last": shared[-1]} if len(shared) > 1 else None,
    }


def shown_window(length: int, position: int) -> slice:
    """Return the positions shown along one axis, which stay in place while the selection moves a little."""
    start = max(0, min(position // STEP * STEP - STEP // 2, length - SIDE))
    return slice(start, min(length, start + SIDE))


def _map(vectors: HeadVectors) -> dict[str, Any]:
    """Return a thumbnail of all weights for a long text. Each pixel is the maximum of a group of weights."""
    length = len(vectors.weights)
    pixels = -(-length // -(-length // MAP_SIDE))
    levels = np.round(255 * max_pooled(vectors.weights, pixels)).astype(np.uint8)
    return {"side": pixels, "levels": to_base64(levels)}


def _stages_sentence(scene: Scene, vectors: HeadVectors, queries: slice, keys: slice) -> str:
    position = scene.position
    seen = None if scene.recording.looks_ahead(scene.layer) else position + 1
    row = vectors.weights[position, :seen]
    targets = most_attended(scene.tokenizer, scene.recording.ids, row)
    text = t("flow.says", token=scene.placed(position), layer=scene.layer, head=scene.head, targets=targets)
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
