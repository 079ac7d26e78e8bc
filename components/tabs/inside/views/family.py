"""Descriptions of how a model differs from GPT-2."""

from __future__ import annotations

from components.i18n import t
from components.labels import decimal
from components.tabs.inside.views.scene import Scene
from gpt import GPTConfig


def family_sentence(scene: Scene) -> str:
    """Describe the differences from GPT-2 that a layer's picture shows; "" if there are none."""
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
    separator = t("flow.family.and")
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
