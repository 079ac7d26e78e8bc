"""The flow diagram: the whole model for the selected position, layer and head."""

from __future__ import annotations

import numpy as np

from components.i18n import is_exact, t
from components.labels import listed, percent, quoted, token_text, visible
from components.next_tokens import best
from components.tabs.inside.pooling import HeadVectors, PooledVectors, pool_mean
from components.tabs.inside.recording import BINS
from components.tabs.inside.views.captions import flow_captions
from components.tabs.inside.views.family import scores_formula
from components.tabs.inside.views.scene import Data, Scene, number
from components.widgets.flow import packed
from gpt import Stages

ROWS_AFTER = 8  # maximum number of rows after the selected one
MIN_SCALES = {"ff": 0.5}  # keeps GELU's and SiLU's smallest values (-0.17 for GELU) pale
STACK_BINS = 4  # pixels for a vector in a layer that is not open
MAX_NEXT = 8  # next tokens listed
FULL_PERCENTILE = 98  # percentile of |value| at the top of the colour scale; outliers would make the rest pale


def flow(scene: Scene, rows: slice) -> Data:
    """Return the flow data. `rows` are the positions that the flow shows."""
    recording, position = scene.recording, scene.position
    vectors = recording.head(scene.layer, scene.head)
    logits = scene.document.logits(position)
    stages = scene.stages(logits)
    min_scales = MIN_SCALES if not scene.config.gated else {"gate": MIN_SCALES["ff"]}
    after_layer = [recording.pooled(layer, "resid_post") for layer in range(scene.config.n_layer)]
    return {
        **row_fields(scene, rows),
        "strips": {
            name: strip(pooled, rows, min_scales.get(name, 0.0))
            for name, pooled in _columns(scene, vectors).items()
            if pooled is not None
        },
        "stack": [strip(pooled, rows, bins=STACK_BINS) for pooled in after_layer],
        "norms": [number(pooled.norm[position]) for pooled in after_layer],
        "weights": packed(vectors.weights[rows, rows], 1.0, signed=False),
        "row": [float(f"{weight:.4g}") for weight in vectors.weights[position, rows]],
        "scores": [float(f"{score:.4g}") for score in vectors.scores[position, rows]],
        "words": flow_captions(scene, vectors, logits, stages),
        "text": _sentence(scene, vectors, rows),
        **next_fields(scene, stages),
        "ahead": recording.looks_ahead(scene.layer),
    }


def window(length: int, position: int, rows: int) -> slice:
    """Return at most `rows` positions: all positions of a short text, or a window around the selected position."""
    end = min(length, max(position + 1 + min(ROWS_AFTER, rows // 4), rows))
    return slice(max(0, end - rows), end)


def row_fields(scene: Scene, rows: slice) -> Data:
    """Return the rows, and the fields for the whole model."""
    config = scene.config
    return {
        "doc": str(scene.document.key),
        "start": rows.start,
        "total": scene.recording.length,
        "selected": scene.position,
        "layer": scene.layer,
        "head": scene.head,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "kv_heads": config.kv_heads,
        "scores_are": scores_formula(config),
        "is_rotary": config.is_rotated(scene.layer),
        "is_parallel": config.parallel,
        "has_pre_norm": config.pre_norm,
        "has_post_norm": config.post_norm,
        "window": config.window_of(scene.layer),
        "tokens": scene.tokens(rows),
    }


def next_fields(scene: Scene, stages: Stages) -> Data:
    """Return the most probable next tokens, and the index of the text's next token."""
    ids, final = scene.document.ids, stages.final.numpy()
    shown = best(final, stages.raw.numpy(), MAX_NEXT).tolist()
    follower = ids[scene.position + 1] if scene.position + 1 < len(ids) else None
    return {
        "next": [[visible(token_text(scene.tokenizer, i)), float(f"{final[i]:.4g}")] for i in shown],
        "chosen": shown.index(follower) if follower in shown else -1,
    }


def top_token(scene: Scene, stages: Stages) -> str:
    """Name the most probable token with its probability."""
    token = int(stages.final.argmax())
    return f"{quoted(scene.tokenizer, token)} ({percent(stages.final[token].item())})"


def strip(pooled: PooledVectors, rows: slice, min_scale: float = 0.0, *, bins: int | None = None) -> Data:
    """Return a column's rows for the browser.

    Args:
        min_scale: Minimum value for the top of the colour scale.
        bins: Maximum number of pixels; None for all pooled values.
    """
    values = pooled.values[rows]
    if bins is not None:
        values = pool_mean(values, min(bins, values.shape[1]))
    scale = float(f"{max(min_scale, np.percentile(np.abs(values), FULL_PERCENTILE)):.3g}") or 1.0  # as displayed
    return {"bins": values.shape[1], "width": pooled.width, "scale": f"{scale:g}", "data": packed(values, scale)}


def _columns(scene: Scene, vectors: HeadVectors) -> dict[str, PooledVectors | None]:
    """Return the columns for all positions, keyed by short name; None for parts that the model lacks."""
    recording, layer = scene.recording, scene.layer
    outside = {"tok": "token_embedding", "pos": "position_embedding", "fin": "final_norm"}
    inner = {
        "pre": "resid_pre",
        "att": "attn_out",
        "mid": "resid_mid",
        "ff": "mlp_post",
        "gate": "mlp_gate",
        "up": "mlp_up",
        "out": "mlp_out",
        "post": "resid_post",
    }
    if scene.config.parallel:
        del inner["mid"]  # not used by the widget
    found = {short: recording.find(None, name) for short, name in outside.items()}
    found |= {short: recording.find(layer, name) for short, name in inner.items()}
    return found | {name: PooledVectors.of(getattr(vectors, name), BINS) for name in "qkvz"}


def _sentence(scene: Scene, vectors: HeadVectors, rows: slice) -> str:
    recording, position, layer = scene.recording, scene.position, scene.layer
    row = vectors.weights[position, : position + 1]
    text = t(
        "flow.says",
        token=scene.placed(position),
        layer=layer,
        head=scene.head,
        targets=top_targets(scene, row, 2),
    )
    if is_exact():
        text += t(
            "flow.says.lengths",
            before=number(recording.pooled(layer, "resid_pre").norm[position]),
            added=number(recording.pooled(layer, "attn_out").norm[position]),
            added2=number(recording.pooled(layer, "mlp_out").norm[position]),
        )
    if rows.stop - rows.start < recording.length:
        share = percent(max(0.0, 1 - float(row[rows.start :].sum())))
        text += t("flow.window", start=rows.start, end=rows.stop - 1, share=share)
    return text


def prediction_sentence(scene: Scene) -> str:
    """Name the most probable token after the selected one."""
    predicted = top_token(scene, scene.stages(scene.document.logits(scene.position)))
    return t("inside.predicted", token=scene.placed(scene.position), best=predicted)


def top_targets(scene: Scene, row: np.ndarray, count: int) -> str:
    """Name the tokens with the largest positive weights in `row`, (position + 1,), and state the weights."""
    largest = [int(i) for i in np.argsort(-row, kind="stable")[:count] if row[i] > 0]
    return listed(f"{scene.quoted(i)} ({percent(row[i])})" for i in largest)
