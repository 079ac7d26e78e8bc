"""The film: one token followed through the model, as beats with the numbers of the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.i18n import t
from components.i18n.catalogue import CATALOGUES
from components.labels import decimal, percent, token_text, visible
from components.next_tokens import best
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.inside.components import InsideState
from components.tabs.inside.pooling import Pool, pool_mean, pool_strongest
from components.tabs.inside.results import WindowTrace
from components.tabs.inside.views.film_beats import BEATS
from components.tabs.inside.views.scene import Data, Scene, scene_of
from gpt import SamplingParams, distribution
from gpt.analysis.lens import lens_top_tokens
from gpt.analysis.sampling_stages import cumulative_draw
from gpt.sampling import uniform_draw

BINS = 24  # cells of a vector of width n_embd
HEAD_BINS = 16  # of a vector of one head
LAYER_BINS = 16  # of the vector after a layer
NEURON_BINS = 96  # of the feed-forward part
MAX_LAYERS = 12  # shown
MAX_NEXT = 6  # most probable tokens shown
FULL_PERCENTILE = 98  # of the magnitudes; beyond it a cell has the full colour


def film(s: Snapshot) -> Data:
    """The beats and the numbers of their picture; no beats without an open film."""
    trace, scene = s.state(InsideState).window_trace, s.cached(scene_of)
    if s.film is None or scene is None:
        return {"beats": []}
    if trace is None or not trace.is_at(scene.recording, scene.position):
        return {}  # still being computed: what is shown stays
    with torch.inference_mode():
        return {
            **_attention(scene, trace),
            **_vectors(scene, trace),
            **_next(s, scene),
            "beat": min(s.film, len(BEATS)),
            "layers": _layers(scene, trace),
            "labels": _labels(s, scene, trace),
            "beats": [
                {
                    "name": beat.name,
                    "lit": beat.lit,
                    "close": beat.close or beat.lit,
                    "seconds": beat.seconds,
                    "names": beat.names,
                }
                for beat in BEATS
            ],
        }


def _attention(scene: Scene, trace: WindowTrace) -> Data:
    """The tokens, and the scores and weights of the selected head among them."""
    rows = slice(trace.start, scene.position + 1)
    weights = _head_weights(scene, trace)
    shown = np.zeros((len(weights), len(weights)))
    for row, each in enumerate(weights):
        shown[row, : row + 1] = each[trace.start :]
    ids = scene.recording.ids[rows]
    return {
        "tokens": [[text, token_id] for text, token_id in zip(scene.tokens(rows), ids, strict=True)],
        "earlier": trace.start,
        "layer": scene.layer,
        "head": scene.head,
        "scores": np.round(_scores(scene, trace), 2).tolist(),
        "weights": np.round(shown, 4).tolist(),
    }


def _head_weights(scene: Scene, trace: WindowTrace) -> list[np.ndarray]:
    """The attention weights of each token of the window, over all tokens up to it."""
    return [_array(each.layers[scene.layer].attn_weights[0, scene.head, 0]) for each in trace.traces]


def _scores(scene: Scene, trace: WindowTrace) -> np.ndarray:
    """(n, n): the scaled products of queries and keys in the window, those with later tokens included."""
    layers = [each.layers[scene.layer] for each in trace.traces]
    q = torch.stack([layer.attn_q[0, scene.head, -1] for layer in layers]).float()
    k = torch.stack([layer.attn_k[0, scene.head, -1] for layer in layers]).float()
    return _array(q @ k.T / q.shape[-1] ** 0.5)


def _vectors(scene: Scene, trace: WindowTrace) -> Data:
    """The vectors as cells from -1 to 1, a row for each token; of the later ones only the selected token's.

    What is added to each other has one scale.
    """
    block = scene.document.loaded.model.blocks[scene.layer]
    layers = [each.layers[scene.layer] for each in trace.traces]
    embedded: dict[str, list[Tensor]] = {"tok": [each.token_embedding.reshape(-1) for each in trace.traces]}
    places = [each.position_embedding for each in trace.traces if each.position_embedding is not None]
    if places:
        embedded["pos"] = [place.reshape(-1) for place in places]
        embedded["x"] = [token + place for token, place in zip(embedded["tok"], embedded["pos"], strict=True)]
    last = layers[-1]
    weights, values = last.attn_weights[0, :, 0], last.attn_v[0]
    mixed = (weights[:, None] @ values)[:, 0]  # (nh, hs)
    later = {"base": last.resid_pre, "att": last.attn_out, "mid": last.resid_mid, "out": last.mlp_out}
    later["post"] = last.resid_post
    cells = _cells(embedded) | _cells({name: [vector.reshape(-1)] for name, vector in later.items()})
    cells |= _cells({"pre": [layer.resid_pre.reshape(-1) for layer in layers]})
    cells |= _cells({"norm": [block.ln_1(layer.resid_pre).reshape(-1) for layer in layers]})
    for name in "qkv":
        cells |= _cells({name: [getattr(layer, f"attn_{name}")[0, scene.head, -1] for layer in layers]}, HEAD_BINS)
    cells |= _cells({"heads": list(mixed)}, HEAD_BINS) | _cells({"z": [mixed[scene.head]]}, HEAD_BINS)
    return {"vectors": cells | _cells({"ff": [last.mlp_post.reshape(-1)]}, NEURON_BINS, pool_strongest)}


def _cells(columns: dict[str, list[Tensor]], bins: int = BINS, pool: Pool = pool_mean) -> dict[str, list[list[float]]]:
    """The vectors of each column as at most `bins` numbers, on a common scale."""
    pooled = {}
    for name, rows in columns.items():
        values = _array(torch.stack(rows))
        pooled[name] = pool(values, min(bins, values.shape[1]))
    scale = float(np.percentile(np.abs(np.concatenate(list(pooled.values()))), FULL_PERCENTILE)) or 1.0
    return {name: np.round(np.clip(values / scale, -1, 1), 2).tolist() for name, values in pooled.items()}


def _layers(scene: Scene, trace: WindowTrace) -> list[Data]:
    """For some layers, the last included: the vector of the selected token after it, and what the head of the model
    would predict from it."""
    model, last = scene.document.loaded.model, trace.traces[-1]
    n = scene.config.n_layer
    chosen = sorted({round(i) for i in np.linspace(0, n - 1, min(n, MAX_LAYERS))})
    found = []
    for layer in chosen:
        top = lens_top_tokens(model, last, layer, "resid_post", 0, 1)
        token = visible(token_text(scene.document.loaded.tokenizer, int(top.token[0])))
        cells = _cells({"post": [last.layers[layer].resid_post.reshape(-1)]}, LAYER_BINS)["post"][0]
        found.append({"layer": layer, "cells": cells, "token": token, "p": percent(float(top.probability[0]))})
    return found


def _next(s: Snapshot, scene: Scene) -> Data:
    """The most probable next tokens, before and after the temperature, and the draw."""
    document, tokenizer = scene.document, scene.document.loaded.tokenizer
    params, number, seed = _draw(s, scene)
    logits = document.logits(scene.position)
    stages = distribution(logits, params, previous_ids=document.ids[: scene.position + 1])
    raw, final = stages.raw.cpu().numpy(), stages.final.cpu().numpy()
    drawn = cumulative_draw(stages.final, number)
    ends = dict(zip(drawn.ids.tolist(), drawn.ends.tolist(), strict=True))
    token = drawn.token_id
    ids = best(final, raw, MAX_NEXT).tolist()
    if token not in ids:
        ids[-1] = token
    listed = [
        {
            "token": visible(token_text(tokenizer, i)),
            "logit": decimal(float(logits[i])),
            "raw": float(f"{raw[i]:.4g}"),
            "final": float(f"{final[i]:.4g}"),
            "end": float(f"{ends.get(i, 1.0):.6g}"),
        }
        for i in ids
    ]
    return {
        "next": listed,
        "chosen": ids.index(token),
        "bounds": drawn.bounds,
        "number": None if params.temperature == 0 else number,
        "temperature": params.temperature,
        "seed": seed,
    }


def _draw(s: Snapshot, scene: Scene) -> tuple[SamplingParams, float, int]:
    """The settings, the number and the seed that the next token was sampled with; or those of a draw now."""
    document, after = scene.document, scene.position + 1
    if after < len(document.ids) and (number := document.draw(after)) is not None:
        params = document.origin(after).params
        if params is not None and params.seed is not None:
            return params, number, params.seed
    params = s.settings.sampling()
    seed = (s.throughput.seed if s.throughput else None) or 0
    return params, uniform_draw(seed, len(document.dropped) + after), seed


def _labels(s: Snapshot, scene: Scene, trace: WindowTrace) -> dict[str, str]:
    """The texts of the film; those of the beats with the numbers of the text."""
    labels = {
        key.removeprefix("film."): t(key, s.language)
        for key in CATALOGUES["en"]
        if key.startswith("film.") and key.removeprefix("film.").split(".")[0] not in {beat.name for beat in BEATS}
    }
    values = _values(s, scene, trace)
    for beat in BEATS:
        key = f"film.{beat.name}"
        if beat.name == "position" and trace.traces[0].position_embedding is None:
            key += ".rotary"
        if beat.name == "norm" and scene.layer == 0:
            key += ".first"
        if beat.name == "softmax" and trace.start:
            key += ".window"
        if beat.name == "draw" and values["temperature"] == "0":
            key += ".greedy"
        labels[beat.name] = t(key, s.language, **values)
        labels[f"{beat.name}.title"] = t(f"film.{beat.name}.title", s.language)
    return labels


def _values(s: Snapshot, scene: Scene, trace: WindowTrace) -> dict[str, Any]:
    config, tokenizer, position = scene.config, scene.document.loaded.tokenizer, scene.position
    last, row = trace.traces[-1].layers[scene.layer], _head_weights(scene, trace)[-1]
    x = last.resid_pre.reshape(-1).float()
    neurons = last.mlp_post.reshape(-1).float()
    strongest = int(row.argmax())
    shown = _next(s, scene)
    chosen = shown["next"][shown["chosen"]]
    start, end = shown["bounds"]
    return {
        "token": scene.quoted(position),
        "id": scene.recording.ids[position],
        "n": len(trace.traces),
        "vocabulary": f"{tokenizer.n_vocab:,}",
        "width": config.n_embd,
        "position": position,
        "mean": decimal(float(x.mean())),
        "deviation": decimal(float(x.std(unbiased=False))),
        "layer": scene.layer,
        "head": scene.head,
        "head_size": config.head_size,
        "n_head": config.n_head,
        "n_layer": config.n_layer,
        "root": decimal(config.head_size**0.5, 1),
        "target": scene.quoted(strongest),
        "share": percent(float(row[strongest])),
        "earlier": percent(float(row[: trace.start].sum())),
        "before": decimal(float(x.norm()), 1),
        "added": decimal(float(last.attn_out.float().norm()), 1),
        "n_ff": f"{len(neurons):,}",
        "active": f"{int((neurons > 0).sum()):,}",
        "best": f"“{shown['next'][0]['token']}”",
        "logit": shown["next"][0]["logit"],
        "raw": percent(shown["next"][0]["raw"]),
        "final": percent(shown["next"][0]["final"]),
        "temperature": f"{shown['temperature']:g}",
        "seed": shown["seed"],
        "number": "" if shown["number"] is None else f"{shown['number']:.2f}",
        "chosen": f"“{chosen['token']}”",
        "start": f"{start:.2f}",
        "end": f"{end:.2f}",
    }


def _array(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()  # type: ignore[no-any-return]


def _inputs(s: Snapshot) -> Any:
    settings = None if s.film is None else (s.settings.sampling(), s.throughput and s.throughput.seed)
    return s.film, s.cached(scene_of), s.state(InsideState).window_trace, settings, s.language


VIEWS = (View("film", _inputs, film),)
