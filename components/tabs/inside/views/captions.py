"""Captions of the parts of the flow: name, description, and formula with the selected token's numbers."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from components.i18n import t
from components.labels import Vocabulary, percent, quoted
from components.tabs.inside.pooling import HeadVectors
from components.tabs.inside.views.scene import Scene, number
from gpt import Generation

ACTIVATIONS = {"gelu_tanh": "GELU", "gelu": "GELU", "relu": "ReLU", "silu": "SiLU"}
EPS = 1e-5  # as in gpt.model.LayerNorm


def flow_captions(scene: Scene, vectors: HeadVectors, logits: Tensor) -> dict[str, str]:
    """Three lines for each part (components.widgets.flow.PARTS). logits: (vocab_size,)."""
    recording, config, position = scene.recording, scene.config, scene.position
    layer, head, token_id = scene.layer, scene.head, recording.ids[position]
    row = vectors.weights[position, : position + 1]
    largest = int(row.argmax())

    def lengths(name: str, place: int | None = layer) -> dict[str, str]:
        """norm, mean and std of one vector at this position."""
        pooled = recording.pooled(place, name)
        if pooled is None:
            return {"norm": "–", "mean": "–", "std": "–"}
        std = math.sqrt(pooled.std[position] ** 2 + EPS)
        return {"norm": number(pooled.norm[position]), "mean": number(pooled.mean[position]), "std": number(std)}

    def norm(vector: np.ndarray) -> str:
        return number(float(np.linalg.norm(vector)))

    def addition(before: str, added: str, after: str) -> dict[str, str]:
        names = {"before": before, "added": added, "after": after}
        return {key: lengths(name)["norm"] for key, name in names.items()}

    neurons = recording.neurons(layer)
    here = {"id": token_id, "position": position}
    activation = ACTIVATIONS[activation_of(scene.document)]
    ff = {"ff": f"{config.ff_size:,}", "width": config.n_embd, "activation": activation}
    sum_of_values = _weighted_values(scene, row)
    weight = {"weight": percent(row[largest]), "target": scene.quoted(largest)}
    strongest = {
        "active": f"{neurons.active[position]:,}",
        "neuron": int(neurons.strongest[position]),
        "pre": number(neurons.pre[position]),
        "post": number(neurons.post[position]),
    }
    values: dict[str, dict[str, object]] = {
        "tokens": {"token": scene.quoted(position), **here},
        "tok": {**here, **lengths("token_embedding", None)},
        "pos": {**here, **lengths("position_embedding", None)},
        "pre": {"layer": layer, **lengths("resid_pre")},
        "norm1": lengths("resid_pre"),
        "q": {"head": head, "norm": norm(vectors.q[position])},
        "k": {"head": head, "norm": norm(vectors.k[position])},
        "weights": {"head": head, "hs": config.head_size, **weight},
        "v": {"head": head, "norm": norm(vectors.v[position])},
        "mix": {"head": head, "sum": sum_of_values},
        "z": {"head": head, "sum": sum_of_values, "norm": norm(vectors.z[position])},
        "att": {"n_head": config.n_head, **lengths("attn_out")},
        "plus1": addition("resid_pre", "attn_out", "resid_mid"),
        "mid": lengths("resid_mid"),
        "norm2": {**ff, **lengths("resid_mid")},
        "ff": {**ff, **strongest},
        "out": lengths("mlp_out"),
        "plus2": addition("resid_mid", "mlp_out", "resid_post"),
        "post": {"layer": layer, **lengths("resid_post")},
        "fin": {"n_layer": config.n_layer, **lengths("resid_post", config.n_layer - 1)},
        "next": next_token_values(scene.document.loaded.tokenizer, logits),
    }
    return {part: t(f"flow.{part}", scene.language, **filled) for part, filled in values.items()}


def next_token_values(tokenizer: Vocabulary, logits: Tensor) -> dict[str, object]:
    """Values for the caption of the next tokens. logits: (vocab_size,)."""
    best = int(logits.argmax())
    return {
        "vocab": f"{len(logits):,}",
        "token": quoted(tokenizer, best),
        "logit": number(logits[best].item()),
        "total": number(logits.logsumexp(0).item()),
        "p": percent(logits.softmax(0)[best].item()),
    }


def activation_of(document: Generation) -> str:
    """The activation function of the document's model, including its edits."""
    swapped = None if document.edits is None else document.edits.activation
    return swapped or document.loaded.model.config.activation


def _weighted_values(scene: Scene, row: np.ndarray) -> str:
    """The largest terms of the sum of values: 0.41 v(girl) + 0.22 v(a) + ..."""
    largest = [int(i) for i in np.argsort(-row, kind="stable")[:3]]
    terms = [f"{row[i]:.2f} v({scene.quoted(i)})" for i in largest]
    return " + ".join([*terms, "…"] if len(row) > len(terms) else terms)
