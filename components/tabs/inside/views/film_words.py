"""The words of the film, with the numbers of the text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from components.i18n import t
from components.i18n.catalogue import CATALOGUES
from components.labels import decimal, percent
from components.tabs.inside.recording import activation_of
from components.tabs.inside.results import WindowTrace
from components.tabs.inside.views.captions import ACTIVATIONS
from components.tabs.inside.views.family import group_of, is_usual_scale
from components.tabs.inside.views.film_beats import BEATS, GATE, SUM, Beat
from components.tabs.inside.views.film_vectors import head_weights
from components.tabs.inside.views.scene import Data, Scene
from gpt.rotary import rotary_angles

ALL_BEATS = {beat.name for beat in (*BEATS, GATE, SUM)}
Variant = tuple[bool, str]  # whether it is told, and the end of its key


def film_labels(scene: Scene, trace: WindowTrace, shown: Data, beats: Sequence[Beat]) -> dict[str, str]:
    """The texts of the film; those of the beats with the numbers of the text. shown: the next tokens and the draw."""
    language = scene.language
    labels = {
        key.removeprefix("film."): t(key, language)
        for key in CATALOGUES["en"]
        if key.startswith("film.") and key.removeprefix("film.").split(".")[0] not in ALL_BEATS
    }
    config = scene.config
    if config.kv_heads < config.n_head:
        heads = group_of(config, scene.head)
        for name in "kv":
            labels[f"part.{name}"] = t(f"film.part.{name}.shared", language, first=heads[0], last=heads[-1])
    if config.post_norm:
        labels |= {name: labels[f"{name}.normed"] for name in ("part.att", "part.out")}
    if not config.pre_norm:
        labels["part.norm"] = labels["part.norm.none"]
    values = {**_values(scene, trace), **_next_values(shown)}
    for beat in beats:
        keys = _keys(beat, scene, trace, values["temperature"] == "0")
        labels[beat.name] = "".join(t(key, language, **values) for key in keys)
        labels[f"{beat.name}.title"] = t(_title(beat, scene), language)
    return labels


def _title(beat: Beat, scene: Scene) -> str:
    config, key = scene.config, f"film.{beat.name}.title"
    has_own = {
        "position": config.position == "rotary" and "rotary",
        "norm": "none" if not config.pre_norm else config.norm == "rms" and "rms",
        "residual": config.parallel and "parallel",
    }
    variant = has_own.get(beat.name)
    return f"{key}.{variant}" if variant else key


def _keys(beat: Beat, scene: Scene, trace: WindowTrace, is_greedy: bool) -> list[str]:
    """The keys of the sentences of a beat: one of its texts, then what this model adds to it."""
    config, key = scene.config, f"film.{beat.name}"
    is_rotary, is_dropped = config.position == "rotary", _drops_positions(scene)
    turns = config.is_rotated(scene.layer) and not is_dropped
    has_window = config.window_of(scene.layer) is not None
    instead: dict[str, list[Variant]] = {
        "position": [(is_dropped, "dropped"), (turns, "rotary"), (is_rotary, "unrotated")],
        "norm": [
            (not config.pre_norm, "none"),
            (config.norm == "rms" and scene.layer == 0, "rms.first"),
            (config.norm == "rms", "rms"),
            (scene.layer == 0, "first"),
        ],
        "scores": [(not is_usual_scale(config), "factor")],
        "softmax": [(trace.start > 0, "window")],
        "residual": [(config.parallel, "parallel")],
        "neurons": [(config.gated, "gated")],
        "draw": [(is_greedy, "greedy")],
    }
    first_of_feed_forward = beat.name == ("gate" if config.gated else "neurons")
    more: dict[str, list[Variant]] = {
        "embedding": [(config.embedding_scale != 1, "scaled")],
        "position": [
            (turns and config.rotary_share < 1, "share"),
            (turns and config.qk_norm is True, "qk_norm"),
            (turns and config.qk_norm == "full", "qk_norm.full"),
        ],
        "qkv": [(config.kv_heads < config.n_head, "shared")],
        "scores": [(config.attn_softcap is not None, "capped")],
        "mask": [(has_window, "window"), (config.window is not None and not has_window, "no_window")],
        "residual": [(config.post_norm, "post_norm")],
        "neurons": [(not config.parallel, "added"), (config.post_norm, "post_norm")],
        "logits": [(config.logit_softcap is not None, "capped")],
    }
    variant = next((f".{name}" for applies, name in instead.get(beat.name, []) if applies), "")
    keys = [key + variant, *(f"{key}.{name}" for applies, name in more.get(beat.name, []) if applies)]
    if config.parallel and first_of_feed_forward:
        keys.append("film.neurons.parallel")
    return keys


def _drops_positions(scene: Scene) -> bool:
    edits = scene.document.edits
    return edits is not None and edits.drop_positions


def _values(scene: Scene, trace: WindowTrace) -> dict[str, Any]:
    config, tokenizer, position = scene.config, scene.document.loaded.tokenizer, scene.position
    last, row = trace.traces[-1].layers[scene.layer], head_weights(scene, trace)[-1]
    x, neurons = last.resid_pre.reshape(-1).float(), last.mlp_post.reshape(-1).float()
    strongest, heads = int(row.argmax()), group_of(config, scene.head)
    return {
        "token": scene.quoted(position),
        "id": scene.recording.ids[position],
        "n": len(trace.traces),
        "vocabulary": f"{tokenizer.n_vocab:,}",
        "width": config.n_embd,
        "scale": decimal(config.embedding_scale),
        "position": position,
        "degrees": decimal(_degrees_per_position(scene), 0),
        "rotated": config.rotary_size,
        "mean": decimal(float(x.mean())),
        "deviation": decimal(float(x.std(unbiased=False))),
        "rms": decimal(float(x.square().mean().sqrt())),
        "layer": scene.layer,
        "head": scene.head,
        "first": heads[0],
        "last": heads[-1],
        "head_size": config.head_size,
        "n_head": config.n_head,
        "n_layer": config.n_layer,
        "root": decimal(config.head_size**0.5, 1),
        "factor": decimal(config.score_scale, 4),
        "attn_softcap": f"{config.attn_softcap or 0:g}",
        "logit_softcap": f"{config.logit_softcap or 0:g}",
        "window": config.window_of(scene.layer) or config.window,
        "target": scene.quoted(strongest),
        "share": percent(float(row[strongest])),
        "earlier": percent(float(row[: trace.start].sum())),
        "before": decimal(float(x.norm()), 1),
        "added": decimal(float(last.attn_out.float().norm()), 1),
        "added2": decimal(float(last.mlp_out.float().norm()), 1),
        "activation": ACTIVATIONS[activation_of(scene.document)],
        "n_ff": f"{len(neurons):,}",
        "active": f"{int((neurons > 0).sum()):,}",
        "open": f"{int((last.mlp_pre > 0).sum()):,}",
    }


def _degrees_per_position(scene: Scene) -> float:
    """By how much the first pair of numbers turns from one position to the next."""
    config = scene.config
    base, scaling = config.rotary_base, config.rotary_scaling
    if config.position != "rotary":
        return 0.0
    if config.window_of(scene.layer) is not None and config.window_rotary_base is not None:
        base, scaling = config.window_rotary_base, None
    cos, sin = rotary_angles(torch.tensor([1]), config.rotary_size, base, scaling)
    return math.degrees(math.atan2(float(sin[0, 0]), float(cos[0, 0])))


def _next_values(shown: Data) -> dict[str, Any]:
    """The most probable token, and the drawn one."""
    first, chosen = shown["next"][0], shown["next"][shown["chosen"]]
    start, end = shown["bounds"]
    return {
        "best": f"“{first['token']}”",
        "logit": first["logit"],
        "raw": percent(first["raw"]),
        "final": percent(first["final"]),
        "temperature": f"{shown['temperature']:g}",
        "seed": shown["seed"],
        "number": "" if shown["number"] is None else f"{shown['number']:.2f}",
        "chosen": f"“{chosen['token']}”",
        "start": f"{start:.2f}",
        "end": f"{end:.2f}",
    }
