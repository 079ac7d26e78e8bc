"""The film: one token followed through the model, as beats with the numbers of the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from components.labels import alone, decimal, percent, token_text
from components.next_tokens import best
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.inside.results import WindowTrace
from components.tabs.inside.state import InsideState
from components.tabs.inside.views.film_beats import beats_of
from components.tabs.inside.views.film_vectors import cells_of, head_weights, scores, vectors
from components.tabs.inside.views.film_words import film_labels
from components.tabs.inside.views.scene import Data, Scene, scene_of
from gpt import SamplingParams, distribution
from gpt.analysis.lens import lens_top_tokens
from gpt.analysis.sampling_stages import cumulative_draw
from gpt.sampling import uniform_draw

LAYER_BINS = 16  # cells of the vector after a layer
MAX_LAYERS = 12  # shown
MAX_NEXT = 6  # most probable tokens shown


def film(s: Snapshot) -> Data:
    """The beats and the numbers of their picture; no beats without an open film."""
    trace, scene = s.state(InsideState).window_trace, s.cached(scene_of)
    if s.film is None or scene is None:
        return {"beats": []}
    if trace is None or not trace.is_at(scene.recording, scene.position):
        return {}  # still being computed: what is shown stays
    beats = beats_of(scene.config)
    with torch.inference_mode():
        shown = _next(s, scene)
        return {
            **_attention(scene, trace),
            **vectors(scene, trace),
            **shown,
            "beat": min(s.film, len(beats)),
            "layers": _layers(scene, trace),
            "labels": film_labels(scene, trace, shown, beats),
            "beats": [
                {
                    "name": beat.name,
                    "lit": beat.lit,
                    "close": beat.close or beat.lit,
                    "seconds": beat.seconds,
                    "names": beat.names,
                }
                for beat in beats
            ],
        }


def _attention(scene: Scene, trace: WindowTrace) -> Data:
    """The tokens, and the scores and weights of the selected head among them."""
    rows = slice(trace.start, scene.position + 1)
    weights = head_weights(scene, trace)
    shown = np.zeros((len(weights), len(weights)))
    for row, each in enumerate(weights):
        shown[row, : row + 1] = each[trace.start :]
    ids = scene.recording.ids[rows]
    return {
        "tokens": [[text, token_id] for text, token_id in zip(scene.tokens(rows), ids, strict=True)],
        "earlier": trace.start,
        "layer": scene.layer,
        "head": scene.head,
        "window": scene.config.window_of(scene.layer),
        "scores": np.round(scores(scene, trace), 2).tolist(),
        "weights": np.round(shown, 4).tolist(),
    }


def _layers(scene: Scene, trace: WindowTrace) -> list[Data]:
    """For some layers, the last included: the vector of the selected token after it, and what the head of the model
    would predict from it."""
    model, last = scene.document.loaded.model, trace.traces[-1]
    n = scene.config.n_layer
    chosen = sorted({round(i) for i in np.linspace(0, n - 1, min(n, MAX_LAYERS))})
    found = []
    for layer in chosen:
        top = lens_top_tokens(model, last, layer, "resid_post", 0, 1)
        token = alone(token_text(scene.document.loaded.tokenizer, int(top.token[0])))
        cells = cells_of({"post": [last.layers[layer].resid_post.reshape(-1)]}, LAYER_BINS)["post"][0]
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
            "token": alone(token_text(tokenizer, i)),
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


def _inputs(s: Snapshot) -> Any:
    settings = None if s.film is None else (s.settings.sampling(), s.throughput and s.throughput.seed)
    return s.film, s.cached(scene_of), s.state(InsideState).window_trace, settings, s.language


VIEWS = (View("film", _inputs, film),)
