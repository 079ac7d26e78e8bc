"""Example edits that work with any model, and descriptions of edits."""

from __future__ import annotations

from collections.abc import Callable

from components.i18n import t
from components.labels import ACTIVATIONS
from gpt import Edits, GPTConfig

EXPERIMENTS: dict[str, Callable[[GPTConfig], Edits]] = {
    "attention_0": lambda config: Edits(attn_scale={0: 0.0}),
    "feed_0": lambda config: Edits(mlp_scale={0: 0.0}),
    "attention_all": lambda config: Edits(attn_scale=dict.fromkeys(range(config.n_layer), 0.0)),
    "no_positions": lambda config: Edits(drop_positions=True),
    "relu": lambda config: Edits(activation="relu"),
    "other_gelu": lambda config: Edits(activation="gelu_tanh" if config.activation == "gelu" else "gelu"),
}
MAX_DESCRIBED = 6  # edits named in a summary; the rest are counted


def describe_edits(edits: Edits, config: GPTConfig) -> list[str]:
    """Describe each edit with a phrase such as "layer 3 head 2 off", model-wide edits first.

    Identical edits to all heads in a layer, or to all layers, share a phrase.
    """
    heads, attention, feed = dict(edits.head_scale), dict(edits.attn_scale), dict(edits.mlp_scale)
    found = []

    def scaled(key: str, factor: float, **values: int) -> str:
        end = t("change.off") if factor == 0 else t("change.times", factor=f"{factor:g}")
        return t(f"change.part.{key}", **values) + end

    if edits.activation is not None and edits.activation != config.activation:
        swap = {"new": ACTIVATIONS[edits.activation]}
        found.append(t("change.swapped", old=ACTIVATIONS[config.activation], **swap))
    if edits.drop_positions:
        found.append(t("change.no_positions"))
    for patch in edits.patches:
        name = t(f"change.patch.{patch.name}")
        found.append(t("change.patched", name=name, layer=patch.layer, position=patch.position))
    for scales, key in ((attention, "attentions"), (feed, "feeds")):
        if config.n_layer > 1 and len(scales) == config.n_layer and len(set(scales.values())) == 1:
            found.append(scaled(key, scales.popitem()[1]))
            scales.clear()
    for layer in sorted({*attention, *feed, *(where for where, _ in heads)}):
        if layer in attention and attention[layer] == feed.get(layer):
            found.append(scaled("layer", attention.pop(layer), layer=layer))
            del feed[layer]
        if layer in attention:
            found.append(scaled("attention", attention[layer], layer=layer))
        of_layer = {head: factor for (where, head), factor in heads.items() if where == layer}
        if config.n_head > 1 and len(of_layer) == config.n_head and len(set(of_layer.values())) == 1:
            found.append(scaled("heads", of_layer[0], layer=layer))
        else:
            found += [scaled("head", factor, layer=layer, head=head) for head, factor in sorted(of_layer.items())]
        if layer in feed:
            found.append(scaled("feed", feed[layer], layer=layer))
    return found


def summary(edits: Edits, config: GPTConfig) -> str:
    """Return one phrase that describes all edits; "" if there are none."""
    found = describe_edits(edits, config)
    more = [t("change.more", n=len(found) - MAX_DESCRIBED)] if len(found) > MAX_DESCRIBED else []
    return t("change.separator").join([*found[:MAX_DESCRIBED], *more])
