"""The vectors, scores and weights of the film, as they are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from components.tabs.inside.pooling import Pool, pool_mean, pool_strongest
from components.tabs.inside.recording import activation_of
from components.tabs.inside.results import WindowTrace
from components.tabs.inside.views.scene import Data, Scene
from gpt.layers import ACTIVATIONS, attention_scores
from gpt.trace import LayerTrace

BINS = 24  # cells of a vector of width n_embd
HEAD_BINS = 16  # of a vector of one head
NEURON_BINS = 96  # of the feed-forward part
FULL_PERCENTILE = 98  # of the magnitudes; beyond it a cell has the full colour

Cells = dict[str, list[list[float]]]


def head_weights(scene: Scene, trace: WindowTrace) -> list[np.ndarray]:
    """The attention weights of each token of the window, over all tokens up to it."""
    return [_array(each.layers[scene.layer].attn_weights[0, scene.head, 0]) for each in trace.traces]


def scores(scene: Scene, trace: WindowTrace) -> np.ndarray:
    """(n, n): the scores of the window, those with later tokens included."""
    layers = [each.layers[scene.layer] for each in trace.traces]
    q = torch.stack([layer.attn_q[0, scene.head, -1] for layer in layers]).float()
    k = torch.stack([layer.attn_k[0, scene.kv_head, -1] for layer in layers]).float()
    return _array(attention_scores(q, k, scene.config.score_scale, scene.config.attn_softcap))


def vectors(scene: Scene, trace: WindowTrace) -> Data:
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
    values = values.repeat_interleave(len(weights) // len(values), dim=0)  # (nh, S, hs)
    mixed = (weights[:, None] @ values)[:, 0]  # (nh, hs)
    later = {"base": last.resid_pre, "att": last.attn_out, "out": last.mlp_out, "post": last.resid_post}
    if scene.config.parallel:
        later |= {"added": last.attn_out, "again": last.resid_pre}
    else:
        later["mid"] = last.resid_mid
    cells = cells_of(embedded) | cells_of({name: [vector.reshape(-1)] for name, vector in later.items()})
    cells |= cells_of({"pre": [layer.resid_pre.reshape(-1) for layer in layers]})
    cells |= cells_of({"norm": [block.ln_1(layer.resid_pre).reshape(-1) for layer in layers]})
    cells |= _of_head(scene, layers)
    cells |= cells_of({"heads": list(mixed)}, HEAD_BINS) | cells_of({"z": [mixed[scene.head]]}, HEAD_BINS)
    neurons = {"ff": last.mlp_post}
    if last.mlp_up is not None:
        activation = ACTIVATIONS[activation_of(scene.document)]
        neurons |= {"gate": activation(last.mlp_pre), "up": last.mlp_up}
    for name, vector in neurons.items():
        cells |= cells_of({name: [vector.reshape(-1)]}, NEURON_BINS, pool_strongest)
    return {"vectors": cells, "turns": _turns(scene, layers)}


def _of_head(scene: Scene, layers: Sequence[LayerTrace]) -> Cells:
    """Queries, keys and values of the selected head; with rotary positions also q0 and k0, before the rotation."""
    heads = {"q": scene.head, "k": scene.kv_head, "v": scene.kv_head}
    found = {name: [getattr(layer, f"attn_{name}")[0, head, -1] for layer in layers] for name, head in heads.items()}
    if scene.config.position != "rotary":
        return {name: cells for each in found.items() for name, cells in cells_of(dict([each]), HEAD_BINS).items()}
    unrotated = [before_rotation(scene, layer) for layer in layers]
    cells: dict[str, list[list[float]]] = {}
    for i, name in enumerate("qk"):
        cells |= cells_of({name: found[name], f"{name}0": [each[i] for each in unrotated]}, HEAD_BINS)
    return cells | cells_of({"v": found["v"]}, HEAD_BINS)


def before_rotation(scene: Scene, layer: LayerTrace) -> tuple[Tensor, Tensor]:
    """Query and key of the selected head at the traced position, each (hs,), before rotary positions rotate them."""
    config, block = scene.config, scene.document.loaded.model.blocks[scene.layer]
    qkv = block.attn.c_attn(block.ln_1(layer.resid_pre))[0].unflatten(-1, (-1, config.head_size)).transpose(0, 1)
    q, k, _ = qkv.split((config.n_head, config.kv_heads, config.kv_heads))  # (heads, 1, hs) each
    if block.attn.q_norm is not None and block.attn.k_norm is not None:
        q, k = block.attn.q_norm(q), block.attn.k_norm(k)
    return q[scene.head, -1], k[scene.kv_head, -1]


def _turns(scene: Scene, layers: Sequence[LayerTrace]) -> dict[str, list[list[float]]] | None:
    """For queries and keys, the angle of the first pair of numbers of each row before and after the rotation, in
    radians; None without rotary positions."""
    if scene.config.position != "rotary":
        return None
    half = scene.config.rotary_size // 2

    def angle(vector: Tensor) -> float:
        return math.atan2(float(vector[half]), float(vector[0]))

    turns: dict[str, list[list[float]]] = {"q": [], "k": []}
    for layer in layers:
        rotated = layer.attn_q[0, scene.head, -1], layer.attn_k[0, scene.kv_head, -1]
        for name, before, after in zip("qk", before_rotation(scene, layer), rotated, strict=True):
            start = angle(before)
            turns[name].append([round(start, 3), round(start + (angle(after) - start) % (2 * math.pi), 3)])
    return turns


def cells_of(columns: dict[str, list[Tensor]], bins: int = BINS, pool: Pool = pool_mean) -> Cells:
    """The vectors of each column as at most `bins` numbers, on a common scale."""
    pooled = {}
    for name, rows in columns.items():
        values = _array(torch.stack(rows))
        pooled[name] = pool(values, min(bins, values.shape[1]))
    scale = float(np.percentile(np.abs(np.concatenate(list(pooled.values()))), FULL_PERCENTILE)) or 1.0
    return {name: np.round(np.clip(values / scale, -1, 1), 2).tolist() for name, values in pooled.items()}


def _array(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
