"""What the Inside tab shows of a document: values for its two widgets, no components."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from components.i18n import Language, t
from components.labels import percent, quoted, token_text, visible
from components.state.selection import Selection
from components.tabs.inside.record import HeadVectors, Record, Strip, pooled
from components.tabs.inside.words import number, part_words
from components.widgets.flow import flow_value, packed

ROWS = 64  # tokens that the flow shows at once
AFTER = 8  # of these stand after the selected one, where the text goes on
SILENT = {"ff": 0.5}  # what counts as little: the dip of GELU, -0.17, must not look like a strong neuron
THIN = 4  # pixels of a vector in a layer that is not opened
TOP = 8  # next tokens
FULL = 98  # the percentile of |value| that gets the full colour, so that one outlier does not pale the rest


def shown_head(look: Selection) -> int:
    """The flow follows one head: the selected one, the first where the average of all is selected."""
    return look.head or 0


def window(length: int, position: int) -> tuple[int, int]:
    """The first position of the flow and the one after its last: all of a short text, else what is around."""
    end = min(length, max(position + 1 + AFTER, ROWS))
    return max(0, end - ROWS), end


def flow(record: Record, look: Selection, language: Language) -> str:
    """Everything that the flow draws and says for the selected position, layer and head."""
    config, document = record.config, record.document
    position, layer, head = min(look.at(document), record.length - 1), look.layer, shown_head(look)
    content, rows = shown_rows(record, position)
    vectors = record.head(layer, head)
    logits = document.logits(position)
    best, strips = next_tokens(logits), _strips(record, layer, vectors)
    content |= {
        "layer": layer,
        "head": head,
        "strips": {
            name: strip_content(strip, rows, SILENT.get(name, 0.0))
            for name, strip in strips.items()
            if strip is not None
        },
        "stack": [strip_content(record.strip(i, "resid_post"), rows, bins=THIN) for i in range(config.n_layer)],
        "norms": [number(record.strip(i, "resid_post").norm[position]) for i in range(config.n_layer)],
        "weights": packed(vectors.weights[rows, rows], 1.0, signed=False),
        "row": [float(f"{w:.4g}") for w in vectors.weights[position, rows]],
        "scores": [float(f"{s:.4g}") for s in vectors.scores[position, rows]],
        "words": part_words(record, vectors, logits, position, layer, head, language),
        "text": _says(record, vectors, best[0], position, layer, head, language),
    }
    if len(content["tokens"]) < record.length:
        share = percent(max(0.0, 1 - float(vectors.weights[position, rows.start : position + 1].sum())))
        content["text"] += t("flow.window", language, start=rows.start, end=rows.stop - 1, share=share)
    return flow_value(content | chosen_bars(record, position, best))


def shown_rows(record: Record, position: int) -> tuple[dict[str, Any], slice]:
    """The rows of the flow around a position, and what is said of them whatever the model does with them."""
    config, document = record.config, record.document
    start, end = window(record.length, position)
    content = {
        "doc": str(document.key),
        "start": start,
        "total": record.length,
        "selected": position,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "head_size": config.head_size,
        "tokens": [visible(token_text(document.loaded.tokenizer, i)) for i in document.ids[start:end]],
    }
    return content, slice(start, end)


def chosen_bars(record: Record, position: int, best: list[tuple[int, float, float]]) -> dict[str, Any]:
    """The bars of `next_tokens`, and which of them is the token that the text goes on with."""
    document = record.document
    follower = document.ids[position + 1] if position + 1 < len(document.ids) else None
    return {
        "next": [[visible(token_text(document.loaded.tokenizer, i)), float(f"{p:.4g}")] for i, p, _ in best],
        "chosen": next((n for n, (i, _, _) in enumerate(best) if i == follower), -1),
    }


def _strips(record: Record, layer: int, vectors: HeadVectors) -> dict[str, Strip | None]:
    """The columns of the picture by their short names, all positions."""
    names = {"tok": (None, "token_embedding"), "pos": (None, "position_embedding"), "fin": (None, "final_norm")}
    inner = {"pre": "resid_pre", "att": "attn_out", "mid": "resid_mid", "ff": "mlp_post", "out": "mlp_out"}
    names |= {short: (layer, name) for short, name in {**inner, "post": "resid_post"}.items()}
    strips = {short: record.strip(*place) for short, place in names.items()}
    return strips | {name: Strip.of(getattr(vectors, name)) for name in "qkvz"}


def strip_content(strip: Strip, rows: slice, least: float = 0.0, *, bins: int | None = None) -> dict[str, Any]:
    """Some rows of a column as they travel. least: the smallest scale; bins: fewer pixels than the strip has."""
    values = strip.values[rows]
    if bins is not None:
        values = pooled(values, min(bins, values.shape[1]))
    scale = float(f"{max(least, np.percentile(np.abs(values), FULL)):.3g}") or 1.0  # as it is said
    return {"bins": values.shape[1], "width": strip.width, "scale": f"{scale:g}", "data": packed(values, scale)}


def next_tokens(logits: torch.Tensor) -> list[tuple[int, float, float]]:
    """(id, probability, logit) of the most probable next tokens."""
    best = logits.topk(min(TOP, len(logits)))
    return list(zip(best.indices.tolist(), logits.softmax(0)[best.indices].tolist(), best.values.tolist(), strict=True))


def _says(
    record: Record,
    vectors: HeadVectors,
    best: tuple[int, float, float],
    position: int,
    layer: int,
    head: int,
    language: Language,
) -> str:
    ids, tokenizer = record.document.ids, record.document.loaded.tokenizer
    row = vectors.weights[position, : position + 1]
    most = np.argsort(-row, kind="stable")[:2]
    return t(
        "flow.says",
        language,
        token=quoted(tokenizer, ids[position]),
        position=position,
        n=record.length,
        layer=layer,
        head=head,
        targets=", ".join(f"{quoted(tokenizer, ids[i])} ({percent(row[i])})" for i in most),
        before=number(record.strip(layer, "resid_pre").norm[position]),
        added=number(record.strip(layer, "attn_out").norm[position]),
        added2=number(record.strip(layer, "mlp_out").norm[position]),
        best=f"{quoted(tokenizer, best[0])} ({percent(best[1])})",
    )
