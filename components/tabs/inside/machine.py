"""The picture of the machine: the whole model for the selected position, layer and head, with captions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from components.i18n import is_exact, t
from components.labels import decimal, percent, quoted, token_text, visible
from components.next_tokens import best
from components.state.session import Session
from components.tabs.inside.recording import BINS, HeadVectors, Recording, activation_of, pool_mean
from components.tabs.inside.scene import FLOW_ROWS, Chosen, Scene, number, scene_of, select
from components.text_views import most_attended
from components.widgets.flow import PARTS, packed
from gpt import Generation, GPTConfig, LoadedModel, SamplingParams, Stages

Data = dict[str, Any]
ACTIVATIONS = {"gelu_tanh": "GELU", "gelu": "GELU", "relu": "ReLU", "silu": "SiLU", "relu2": "ReLU²"}
EXAMPLE_ROWS = 24  # tokens shown of an example
ROWS_AFTER = 8  # maximum number of rows after the selected one
MIN_SCALE = 0.5  # of neurons; keeps GELU's and SiLU's smallest values (-0.17 for GELU) pale
STACK_BINS = 4  # pixels for a vector in a layer that is not open
MAX_NEXT = 8  # next tokens listed
FULL_PERCENTILE = 98  # percentile of |value| at the top of the colour scale; outliers would make the rest pale

OUTSIDE = {"tok": "token_embedding", "pos": "position_embedding", "fin": "final_norm"}  # activations by column
IN_LAYER = {
    "pre": "resid_pre",
    "att": "attn_out",
    "mid": "resid_mid",
    "ff": "mlp_post",
    "gate": "mlp_gate",
    "up": "mlp_up",
    "out": "mlp_out",
    "post": "resid_post",
}


def lead(s: Any) -> str:
    scene = s.cached(scene_of)
    final = scene.stages(scene.document.logits(scene.position)).final
    token = int(final.argmax())
    likeliest = f"{quoted(scene.tokenizer, token)} ({percent(final[token].item())})"
    return t("inside.predicted", token=scene.placed(scene.position), best=likeliest)


def draw_flow(s: Any) -> Data:
    scene, chosen = s.cached(scene_of), s[Chosen]
    length = scene.recording.length
    rows = window(length, scene.position, chosen.flow_rows)
    offered = next(n for n in FLOW_ROWS if n != chosen.flow_rows) if length > FLOW_ROWS[0] else None
    return flow(scene, rows) | {"offered_rows": offered}


def select_in_flow(session: Session, sent: dict[str, Any]) -> None:
    if sent.get("rows") in FLOW_ROWS:
        session.change(Chosen, flow_rows=sent["rows"])
    select(session, sent)


def flow(scene: Scene, rows: slice) -> Data:
    recording, config, position = scene.recording, scene.config, scene.position
    vectors, logits = recording.head(scene.layer, scene.head), scene.document.logits(position)
    stages, ids = scene.stages(logits), scene.document.ids
    final = stages.final.numpy()
    next_ids = best(final, stages.raw.numpy(), MAX_NEXT).tolist()
    follower = ids[position + 1] if position + 1 < len(ids) else None
    after_layer = [recording.pooled(layer, "resid_post") for layer in range(config.n_layer)]
    return scene.of_layer() | {
        "start": rows.start,
        "selected": position,
        "scores_are": scores_formula(config),
        "is_rotary": config.is_rotated(scene.layer),
        "is_parallel": config.parallel,
        "has_pre_norm": config.pre_norm,
        "has_post_norm": config.post_norm,
        "tokens": scene.tokens(rows),
        "strips": strips_of(scene, vectors, rows),
        "stack": [strip(pool_mean(each.values[rows], STACK_BINS), each.width) for each in after_layer],
        "norms": [number(each.norm[position]) for each in after_layer],
        "weights": packed(vectors.weights[rows, rows], 1.0, signed=False),
        "row": [float(f"{weight:.4g}") for weight in vectors.weights[position, rows]],
        "scores": [float(f"{score:.4g}") for score in vectors.scores[position, rows]],
        "words": flow_captions(scene, vectors, logits, stages),
        "text": _sentence(scene, vectors, rows),
        "next": [[visible(token_text(scene.tokenizer, i)), float(f"{final[i]:.4g}")] for i in next_ids],
        "chosen": next_ids.index(follower) if follower in next_ids else -1,
    }


def window(length: int, position: int, rows: int) -> slice:
    """Return at most `rows` positions: all positions of a short text, or a window around the selected position."""
    end = min(length, max(position + 1 + min(ROWS_AFTER, rows // 4), rows))
    return slice(max(0, end - rows), end)


def strip(values: np.ndarray, width: int, min_scale: float = 0.0) -> Data:
    """Return a column's rows for the browser. values: (rows, bins), pooled from vectors of this width."""
    scale = float(f"{max(min_scale, np.percentile(np.abs(values), FULL_PERCENTILE)):.3g}") or 1.0  # as displayed
    return {"bins": values.shape[1], "width": width, "scale": f"{scale:g}", "data": packed(values, scale)}


def strips_of(scene: Scene, vectors: HeadVectors, rows: slice | list[int]) -> dict[str, Data]:
    """Return the columns that the model has, by short name."""
    recording, config = scene.recording, scene.config
    columns = {short: recording.find(None, name) for short, name in OUTSIDE.items()}
    columns |= {short: recording.find(scene.layer, name) for short, name in IN_LAYER.items()}
    if config.parallel:
        columns["mid"] = None
    scales = {"gate" if config.gated else "ff": MIN_SCALE}
    found = {name: each for name, each in columns.items() if each is not None}
    strips = {name: strip(each.values[rows], each.width, scales.get(name, 0.0)) for name, each in found.items()}
    return strips | {name: strip(pool_mean(getattr(vectors, name)[rows], BINS), config.head_size) for name in "qkvz"}


def _sentence(scene: Scene, vectors: HeadVectors, rows: slice) -> str:
    recording, position = scene.recording, scene.position
    row = vectors.weights[position, : position + 1]
    targets = most_attended(scene.tokenizer, recording.ids, row)
    text = t("flow.says", token=scene.placed(position), layer=scene.layer, head=scene.head, targets=targets)
    if is_exact():
        text += t("flow.says.lengths", **_norms(scene, before="resid_pre", added="attn_out", added2="mlp_out"))
    if rows.stop - rows.start < recording.length:
        share = percent(max(0.0, 1 - float(row[rows.start :].sum())))
        text += t("flow.window", start=rows.start, end=rows.stop - 1, share=share)
    return text


def flow_captions(scene: Scene, vectors: HeadVectors, logits: Tensor, stages: Stages) -> dict[str, str]:
    """Return a caption for each part of the model. logits, stages: the prediction after the selected position."""
    config, recording, layer, position = scene.config, scene.recording, scene.layer, scene.position
    row, likeliest = vectors.weights[position, : position + 1], int(stages.final.argmax())
    window, target, neurons = config.window_of(layer), int(row.argmax()), recording.neurons(layer, position)
    values = {
        "id": str(recording.ids[position]) if is_exact() else scene.quoted(position),  # in wte[...]
        "position": position,
        "scale": number(config.embedding_scale),
        "shift": " + β" if config.bias else "",
        "layer": layer,
        "n_layer": config.n_layer,
        "head": scene.head,
        "n_head": config.n_head,
        "shared": shared_heads(config, scene.head),
        "scores": scores_formula(config),
        "window": window,
        "weight": percent(row[target]),
        "target": scene.quoted(target),
        "sum": _weighted_values(scene, row),
        "width": config.n_embd,
        "ff": f"{config.ff_size:,}",
        "activation": ACTIVATIONS[activation_of(scene.document)],
        "active": f"{neurons['active']:,.0f}",
        "neuron": f"{neurons['strongest']:.0f}",
        **{name: number(neurons[name]) for name in ("pre", "up", "post")},
        "vocab": f"{len(logits):,}",
        "logit": number(logits[likeliest].item()),
        "total": number(logits.logsumexp(0).item()),
        "raw": percent(stages.raw[likeliest].item()),
        "p": percent(stages.final[likeliest].item()),
    }
    norm = ".rms" if config.norm == "rms" else ""
    pre_norm = norm if config.pre_norm else ".none"
    post_norm = "" if config.pre_norm else ".only"
    rotary = ".rotary" if config.is_rotated(layer) else ""
    endings = {
        "tok": "" if config.embedding_scale == 1 else ".scaled",
        **{"norm1": pre_norm, "norm2": pre_norm, "after1": post_norm, "after2": post_norm, "fin": norm},
        **{"q": rotary, "k": rotary, "weights": "" if window is None else ".window"},
        "ff": ".gated" if config.gated else "",
        "plus2": ".parallel" if config.parallel else "",
    }  # of the keys of captions, where the model differs from GPT-2
    before_mlp = "resid_pre" if config.parallel else "resid_mid"
    activations = {
        **{"pre": "resid_pre", "norm1": "resid_pre", "att": "attn_out", "after1": "attn_out", "mid": "resid_mid"},
        **{"norm2": before_mlp, "out": "mlp_out", "after2": "mlp_out", "post": "resid_post"},
    }
    own: dict[str, dict[str, object]] = {part: _lengths(scene, name, layer) for part, name in activations.items()}
    own |= {
        "tokens": {"token": scene.placed(position)},
        "tok": _lengths(scene, "token_embedding", None),
        **{name: {"norm": number(float(np.linalg.norm(getattr(vectors, name)[position])))} for name in "qkvz"},
        "plus1": _norms(scene, before="resid_pre", added="attn_out", after="resid_mid"),
        "plus2": _norms(scene, before=before_mlp, added="mlp_out", after="resid_post"),
        "fin": _lengths(scene, "resid_post", config.n_layer - 1),
        "next": {"token": quoted(scene.tokenizer, likeliest)},
    }
    if config.parallel:
        own["plus2"] |= _norms(scene, added="attn_out", added2="mlp_out")
    missing = {"stack", *(() if config.gated else ("gate", "up")), *(() if config.post_norm else ("after1", "after2"))}
    missing |= {"plus1", "mid"} if config.parallel else set()
    if recording.find(None, "position_embedding") is None:
        missing.add("pos")
    else:
        own["pos"] = _lengths(scene, "position_embedding", None)
    shown = [part for part in PARTS if part not in missing]
    return {part: t(f"flow.{part}{endings.get(part, '')}", **values | own.get(part, {})) for part in shown}


def _lengths(scene: Scene, name: str, layer: int | None) -> dict[str, object]:
    """Return the norm of one vector at the selected position, and the statistics that a norm layer computes."""
    pooled, position, eps = scene.recording.pooled(layer, name), scene.position, scene.config.norm_eps
    norm = float(pooled.norm[position])
    return {
        "norm": number(norm),
        "mean": number(pooled.mean[position]),
        "std": number(math.sqrt(pooled.std[position] ** 2 + eps)),
        "rms": number(math.sqrt(norm**2 / pooled.width + eps)),
    }


def _norms(scene: Scene, **names: str) -> dict[str, object]:
    return {key: number(scene.recording.pooled(scene.layer, name).norm[scene.position]) for key, name in names.items()}


def _weighted_values(scene: Scene, row: np.ndarray) -> str:
    """Format the largest terms of the weighted sum of values: 0.41 v(girl) + 0.22 v(a) + ..."""
    largest = [int(i) for i in np.argsort(-row, kind="stable")[:3]]
    terms = [f"{row[i]:.2f} v({scene.quoted(i)})" for i in largest]
    return " + ".join([*terms, "…"] if len(row) > len(terms) else terms)


def family(s: Any) -> str:
    """Describe the differences from GPT-2 that the selected layer's picture shows; "" if there are none."""
    scene = s.cached(scene_of)
    config, layer = scene.config, scene.layer
    window = config.window_of(layer)
    found = {
        "ahead": scene.recording.looks_ahead(layer),
        "rotary": config.is_rotated(layer),
        "unrotated": layer in config.unrotated_layers and config.position == "rotary",
        "rms": config.norm == "rms",
        "grouped": config.kv_heads < config.n_head,
        "qk_norm": bool(config.qk_norm),
        "gated": config.gated,
        "parallel": config.parallel,
        "post_norm": config.post_norm,
        "no_pre_norm": not config.pre_norm,
        "window": window is not None,
        "no_window": config.window is not None and window is None,
        "attn_softcap": config.attn_softcap is not None,
        "logit_softcap": config.logit_softcap is not None,
    }
    caps = {name: f"{getattr(config, name) or 0:g}" for name in ("attn_softcap", "logit_softcap")}
    values = caps | {"n_head": config.n_head, "kv_heads": config.kv_heads, "window": window, "layer": layer}
    parts = [t(f"flow.family.{name}", **values) for name, is_there in found.items() if is_there]
    separator = t("change.separator")
    return t("flow.family", parts=separator.join(parts)) if parts else ""


def group_of(config: GPTConfig, head: int) -> range:
    """Return the query heads that share a head's keys and values, including that head."""
    size = config.n_head // config.kv_heads
    return range(head // size * size, head // size * size + size)


def shared_heads(config: GPTConfig, head: int) -> str:
    """Name the heads that share a head's keys and values, as a suffix to its number; "" if no others do."""
    heads = group_of(config, head)
    if len(heads) == 1:
        return ""
    return t("flow.shared", first=heads[0], last=heads[-1])


def scores_formula(config: GPTConfig) -> str:
    """Return the formula for a score, such as "q · k / √64", with the model's own scaling factor and soft cap."""
    factor = f"/ √{config.head_size}" if is_usual_scale(config) else f"× {decimal(config.score_scale, 4)}"
    if config.attn_softcap is None:
        return f"q · k {factor}"
    return f"{config.attn_softcap:g} · tanh(q · k {factor} / {config.attn_softcap:g})"


def is_usual_scale(config: GPTConfig) -> bool:
    """Return whether scores are divided by the square root of the head size."""
    return abs(config.score_scale * config.head_size**0.5 - 1) < 1e-6


class ExamplePass:
    """A model's forward pass over token ids, truncated to its context."""

    def __init__(self, loaded: LoadedModel, ids: Sequence[int]) -> None:
        document = Generation(loaded, ids)
        document.read()
        self.recording = Recording.empty(document).extended(tuple(ids))

    def draw(self, position: int, layer: int, head: int, settings: SamplingParams) -> Data:
        scene = Scene(self.recording, position, None, layer, head, settings)
        return flow(scene, window(self.recording.length, position, EXAMPLE_ROWS)) | {"offered_rows": None}
