"""Captions for the parts of the flow: name, description, and formula with the selected token's numbers."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from components.i18n import t
from components.labels import Vocabulary, percent, quoted
from components.tabs.inside.pooling import HeadVectors
from components.tabs.inside.recording import activation_of
from components.tabs.inside.views.family import scores_formula, shared_heads
from components.tabs.inside.views.scene import Scene, number
from components.widgets.flow import PARTS
from gpt import GPTConfig, Stages

Captions = dict[str, tuple[str, dict[str, object]]]  # part -> (catalogue key, placeholder values)
ACTIVATIONS = {"gelu_tanh": "GELU", "gelu": "GELU", "relu": "ReLU", "silu": "SiLU", "relu2": "ReLU²"}


def flow_captions(scene: Scene, vectors: HeadVectors, logits: Tensor, stages: Stages) -> dict[str, str]:
    """Return a caption for each part of the model (see components.widgets.flow.PARTS).

    `logits` after the selected position is (vocab_size,); `stages` is its distribution.
    """
    config, position = scene.config, scene.position
    here = {"id": scene.row_of(position), "position": position}
    last = _lengths(scene, "resid_post", config.n_layer - 1)
    captions: Captions = {
        "tokens": ("flow.tokens", {"token": scene.placed(position)}),
        "tok": (_either("flow.tok", scaled=config.embedding_scale != 1), {**here, **_embedding(scene)}),
        "pre": ("flow.pre", {"layer": scene.layer, **_lengths(scene, "resid_pre")}),
        **_attention_captions(scene, vectors),
        **_feed_forward_captions(scene),
        "post": ("flow.post", {"layer": scene.layer, **_lengths(scene, "resid_post")}),
        "fin": (_either("flow.fin", rms=config.norm == "rms"), {"n_layer": config.n_layer, **last}),
        "next": ("flow.next", next_token_values(scene.document.loaded.tokenizer, logits, stages)),
    }
    if config.position == "learned" and scene.recording.find(None, "position_embedding") is not None:
        captions["pos"] = ("flow.pos", {**here, **_lengths(scene, "position_embedding", None)})
    return {part: t(captions[part][0], **captions[part][1]) for part in PARTS if part in captions}


def _attention_captions(scene: Scene, vectors: HeadVectors) -> Captions:
    config, position, head = scene.config, scene.position, scene.head
    row = vectors.weights[position, : position + 1]
    largest = int(row.argmax())
    of_head = {"head": head, "shared": shared_heads(config, head)}
    window = config.window_of(scene.layer)
    weight = {"weight": percent(row[largest]), "target": scene.quoted(largest), "window": window}
    sums = {"head": head, "sum": _weighted_values(scene, row), "norm": _norm(vectors.z[position])}
    scores = {"scores": scores_formula(config)}
    is_rotary = config.is_rotated(scene.layer)
    captions: Captions = {
        "norm1": (_norm_key("flow.norm1", config), _lengths(scene, "resid_pre")),
        "q": (_either("flow.q", rotary=is_rotary), of_head | {"norm": _norm(vectors.q[position])}),
        "k": (_either("flow.k", rotary=is_rotary), of_head | {"norm": _norm(vectors.k[position])}),
        "weights": (_either("flow.weights", window=window is not None), of_head | scores | weight),
        "v": ("flow.v", of_head | {"norm": _norm(vectors.v[position])}),
        "mix": ("flow.mix", sums),
        "z": ("flow.z", sums),
        "att": ("flow.att", {"n_head": config.n_head, **_lengths(scene, "attn_out")}),
    }
    if config.post_norm:
        captions["after1"] = (_either("flow.after1", only=not config.pre_norm), _lengths(scene, "attn_out"))
    if not config.parallel:
        added = _norms(scene, before="resid_pre", added="attn_out", after="resid_mid")
        captions |= {"plus1": ("flow.plus1", added), "mid": ("flow.mid", _lengths(scene, "resid_mid"))}
    return captions


def _feed_forward_captions(scene: Scene) -> Captions:
    config, position = scene.config, scene.position
    neurons = scene.recording.neurons(scene.layer)
    activation = ACTIVATIONS[activation_of(scene.document)]
    ff = {"ff": f"{config.ff_size:,}", "width": config.n_embd, "activation": activation}
    strongest = ff | {
        "active": f"{neurons.active[position]:,}",
        "neuron": int(neurons.strongest[position]),
        "pre": number(neurons.pre[position]),
        "up": number(neurons.up[position]),
        "post": number(neurons.post[position]),
    }
    captions: Captions = {
        "norm2": (
            _norm_key("flow.norm2", config),
            ff | _lengths(scene, "resid_pre" if config.parallel else "resid_mid"),
        ),
        "ff": (_either("flow.ff", gated=config.gated), strongest),
        "out": ("flow.out", _lengths(scene, "mlp_out")),
    }
    if config.gated:
        captions |= {"gate": ("flow.gate", strongest), "up": ("flow.up", strongest)}
    if config.post_norm:
        captions["after2"] = (_either("flow.after2", only=not config.pre_norm), _lengths(scene, "mlp_out"))
    if config.parallel:
        sums = _norms(scene, before="resid_pre", added="attn_out", added2="mlp_out", after="resid_post")
        captions["plus2"] = ("flow.plus2.parallel", sums)
    else:
        captions["plus2"] = ("flow.plus2", _norms(scene, before="resid_mid", added="mlp_out", after="resid_post"))
    return captions


def _lengths(scene: Scene, name: str, layer: int | None = -1) -> dict[str, object]:
    """Describe one vector at the selected position: its norm, and the statistics that a norm layer computes.

    These are the mean, standard deviation and root mean square. The layer defaults to the selected one.
    """
    pooled, position = scene.recording.pooled(scene.layer if layer == -1 else layer, name), scene.position
    eps = scene.config.norm_eps
    norm, std = float(pooled.norm[position]), math.sqrt(pooled.std[position] ** 2 + eps)
    rms = math.sqrt(norm**2 / pooled.width + eps)
    return {
        "norm": number(norm),
        "mean": number(pooled.mean[position]),
        "std": number(std),
        "rms": number(rms),
        "shift": " + β" if scene.config.bias else "",
    }


def _embedding(scene: Scene) -> dict[str, object]:
    return {**_lengths(scene, "token_embedding", None), "scale": number(scene.config.embedding_scale)}


def _norms(scene: Scene, **names: str) -> dict[str, object]:
    """Return the norms of the named activations in the selected layer."""
    return {key: _lengths(scene, name)["norm"] for key, name in names.items()}


def _norm(vector: np.ndarray) -> str:
    return number(float(np.linalg.norm(vector)))


def _norm_key(key: str, config: GPTConfig) -> str:
    return _either(key, none=not config.pre_norm, rms=config.norm == "rms")


def _either(key: str, **variant: bool) -> str:
    """Return the key of the first variant that applies, or else `key`."""
    return next((f"{key}.{name}" for name, applies in variant.items() if applies), key)


def next_token_values(tokenizer: Vocabulary, logits: Tensor, stages: Stages) -> dict[str, object]:
    """Return the values for the next-token caption. `logits` is (vocab_size,)."""
    best = int(stages.final.argmax())
    return {
        "vocab": f"{len(logits):,}",
        "token": quoted(tokenizer, best),
        "logit": number(logits[best].item()),
        "total": number(logits.logsumexp(0).item()),
        "raw": percent(stages.raw[best].item()),
        "p": percent(stages.final[best].item()),
    }


def _weighted_values(scene: Scene, row: np.ndarray) -> str:
    """Format the largest terms of the weighted sum of values: 0.41 v(girl) + 0.22 v(a) + ..."""
    largest = [int(i) for i in np.argsort(-row, kind="stable")[:3]]
    terms = [f"{row[i]:.2f} v({scene.quoted(i)})" for i in largest]
    return " + ".join([*terms, "…"] if len(row) > len(terms) else terms)
