"""What is said of each part of the flow: its name, what it is, and its formula with the selected token's numbers."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from components.i18n import Language, t
from components.labels import Vocabulary, decimal, percent, quoted
from components.tabs.inside.record import HeadVectors, Record

ACTIVATIONS = {"gelu_tanh": "GELU", "gelu": "GELU", "relu": "ReLU", "silu": "SiLU"}
EPS = 1e-5  # as in gpt.model.LayerNorm


def part_words(
    record: Record, vectors: HeadVectors, logits: Tensor, position: int, layer: int, head: int, language: Language
) -> dict[str, str]:
    """By the part's name (components.widgets.flow.PARTS): three lines, as `inside_texts` has them."""
    config, document = record.config, record.document
    tokenizer, token_id = document.loaded.tokenizer, document.ids[position]
    row = vectors.weights[position, : position + 1]
    largest = int(row.argmax())

    def lengths(name: str, place: int | None = layer) -> dict[str, str]:
        """norm, mean and std of one vector of this position."""
        strip = record.strip(place, name)
        if strip is None:
            return {"norm": "–", "mean": "–", "std": "–"}
        std = float(np.sqrt(strip.std[position] ** 2 + EPS))
        return {"norm": number(strip.norm[position]), "mean": number(strip.mean[position]), "std": number(std)}

    def norm(vector: np.ndarray) -> str:
        return number(float(np.linalg.norm(vector)))

    def addition(before: str, added: str, after: str) -> dict[str, str]:
        names = {"before": before, "added": added, "after": after}
        return {key: lengths(name)["norm"] for key, name in names.items()}

    neurons = record.neurons(layer)
    token, here = quoted(tokenizer, token_id), {"id": token_id, "position": position}
    activation = (document.edits.activation if document.edits else None) or config.activation
    ff = {"ff": f"{config.ff_size:,}", "width": config.n_embd, "activation": ACTIVATIONS[activation]}
    shares = _shares(record, row)
    values: dict[str, tuple[str, dict[str, object]]] = {
        "tokens": ("flow.tokens", {"token": token, **here}),
        "tok": ("flow.tok", {**here, **lengths("token_embedding", None)}),
        "pos": ("flow.pos", {**here, **lengths("position_embedding", None)}),
        "pre": ("flow.pre", {"layer": layer, **lengths("resid_pre")}),
        "norm1": ("flow.norm1", lengths("resid_pre")),
        "q": ("flow.q", {"head": head, "norm": norm(vectors.q[position])}),
        "k": ("flow.k", {"head": head, "norm": norm(vectors.k[position])}),
        "weights": (
            "flow.weights",
            {
                "head": head,
                "hs": config.head_size,
                "weight": percent(row[largest]),
                "target": quoted(tokenizer, document.ids[largest]),
            },
        ),
        "v": ("flow.v", {"head": head, "norm": norm(vectors.v[position])}),
        "mix": ("flow.mix", {"head": head, "sum": shares}),
        "z": ("flow.z", {"head": head, "sum": shares, "norm": norm(vectors.z[position])}),
        "att": ("flow.att", {"n_head": config.n_head, **lengths("attn_out")}),
        "plus1": ("flow.plus1", addition("resid_pre", "attn_out", "resid_mid")),
        "mid": ("flow.mid", lengths("resid_mid")),
        "norm2": ("flow.norm2", {**ff, **lengths("resid_mid")}),
        "ff": (
            "flow.ff",
            {
                **ff,
                "active": f"{neurons.active[position]:,}",
                "neuron": int(neurons.strongest[position]),
                "pre": number(neurons.pre[position]),
                "post": number(neurons.post[position]),
            },
        ),
        "out": ("flow.out", lengths("mlp_out")),
        "plus2": ("flow.plus2", addition("resid_mid", "mlp_out", "resid_post")),
        "post": ("flow.post", {"layer": layer, **lengths("resid_post")}),
        "fin": ("flow.fin", {"n_layer": config.n_layer, **lengths("resid_post", config.n_layer - 1)}),
        "next": ("flow.next", next_words(tokenizer, logits)),
    }
    return {part: t(key, language, **filled) for part, (key, filled) in values.items()}


def next_words(tokenizer: Vocabulary, logits: Tensor) -> dict[str, object]:
    """What is said of the next tokens, from logits (vocab_size,)."""
    best = int(logits.argmax())
    return {
        "vocab": f"{len(logits):,}",
        "token": quoted(tokenizer, best),
        "logit": number(logits[best].item()),
        "total": number(logits.logsumexp(0).item()),
        "p": percent(logits.softmax(0)[best].item()),
    }


def _shares(record: Record, row: np.ndarray) -> str:
    """The largest terms of the sum of values: 0.41 v(girl) + 0.22 v(a) + ..."""
    ids, tokenizer = record.document.ids, record.document.loaded.tokenizer
    most = [int(i) for i in np.argsort(-row, kind="stable")[:3]]
    terms = [f"{row[i]:.2f} v({quoted(tokenizer, ids[i])})" for i in most]
    return " + ".join([*terms, "…"] if len(row) > len(terms) else terms)


def number(value: float) -> str:
    """Two digits after the point, none where there are three before it."""
    return decimal(value, 2 if abs(value) < 100 else 0)
