"""Edits in words, and their effect: both models read the same tokens, and their predictions are compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from components.i18n import t
from components.labels import ACTIVATIONS
from components.next_tokens import at_one
from gpt import Edits, Generation, GPTConfig, LoadedModel
from gpt.analysis.patching import is_patch_of_model
from gpt.analysis.predictions import TextStatistics, float32_logits, kl_bits, kl_divergence, text_statistics
from gpt.analysis.tracing import hidden_states_from, to_float32, trace_text
from gpt.background import Progress
from gpt.sampling import keep_only

MAX_COST_TOKENS = 96  # maximum text length, because each head needs a forward pass
MAX_DESCRIBED = 6  # edits named in a summary; the rest are counted
EXPERIMENTS: dict[str, Callable[[GPTConfig], Edits]] = {  # edits that work with any model
    "attention_0": lambda config: Edits(attn_scale={0: 0.0}),
    "feed_0": lambda config: Edits(mlp_scale={0: 0.0}),
    "attention_all": lambda config: Edits(attn_scale=dict.fromkeys(range(config.n_layer), 0.0)),
    "no_positions": lambda config: Edits(drop_positions=True),
    "relu": lambda config: Edits(activation="relu"),
    "other_gelu": lambda config: Edits(activation="gelu_tanh" if config.activation == "gelu" else "gelu"),
}


@dataclass(frozen=True, eq=False)
class ReadText:
    """A text with the unedited model's states, unaffected by later changes to the document.

    ids: all tokens; the model has read the first n_read. states: final-norm states, (n_read, C). own: whether the text
    differs from the one in Write. held, prompt_held: white space typed after the text and after its prompt (see
    `gpt.tokenizer.hold_back`). turned: the concepts that are turned up, in both the unedited and the edited model.
    """

    source: Hashable
    loaded: LoadedModel
    ids: tuple[int, ...]
    n_prompt: int
    states: Tensor
    own: bool = False
    held: str = ""
    prompt_held: str = ""
    turned: Edits = field(default_factory=Edits)

    def with_turned(self, edits: Edits) -> Edits:
        return replace(edits, steering=(*self.turned.steering, *edits.steering))

    @property
    def n_read(self) -> int:
        return len(self.states)

    @property
    def config(self) -> GPTConfig:
        return self.loaded.model.config

    @property
    def following(self) -> tuple[int, ...]:
        """The token id that follows each position the model has read, if there is one."""
        return self.ids[1 : self.n_read + 1]

    @cached_property
    def statistics(self) -> TextStatistics:
        return text_statistics(self.loaded.model, self.states[: len(self.following)], self.following)


def read_document(document: Generation, source: Hashable, *, own: bool = False) -> ReadText:
    """Copy the part of a document that has been read. If it has edits besides concepts, it is reread without them."""
    states, ids, turned = document.states().clone(), tuple(document.ids), turned_in(document)
    if (document.edits or Edits()) != turned:
        states = read(document.loaded, ids[: len(states)], turned)
    n = document.n_prompt
    held = document.held, document.held_after(n - 1)
    return ReadText(source, document.loaded, ids, n, states, own, *held, turned)


def turned_in(document: Generation) -> Edits:
    return Edits() if document.edits is None else Edits(steering=document.edits.steering)


@torch.inference_mode()
def read(loaded: LoadedModel, ids: Sequence[int], edits: Edits | None = None) -> Tensor:
    """Return the final-norm states of one forward pass, (T, C)."""
    idx = torch.tensor([list(ids)], device=loaded.model.device)
    return loaded.model.hidden_states(idx, edits=edits)[0]


@dataclass(frozen=True, eq=False)
class Effect:
    """states: the edited model's states, (n_read, C). bits: Kullback-Leibler divergence between the unedited and the
    edited model's predictions, in bits, (n_read,). before, after: mean surprisal of the text under the unedited and the
    edited model, in bits; NaN for a text with only one token.
    """

    text: ReadText
    edits: Edits
    states: Tensor
    bits: np.ndarray
    before: float
    after: float

    @property
    def n_bytes(self) -> int:
        return self.text.states.nbytes + (0 if self.states is self.text.states else self.states.nbytes)

    @torch.inference_mode()
    def logits(self, position: int) -> tuple[Tensor, Tensor]:
        """Return the logits of the unedited and the edited model after a position, (vocab_size,) each."""
        held = self.text.held if position == len(self.text.ids) - 1 else ""
        model, only = self.text.loaded.model, self.text.loaded.tokenizer.ids_after(held)
        before, after = (keep_only(model.logits(each[position]), only) for each in (self.text.states, self.states))
        return before, after


def measure(text: ReadText, edits: Edits) -> Effect:
    """Measure the effect of edits with one forward pass. Raises ValueError if the model does not support them."""
    model, before = text.loaded.model, text.statistics.mean_surprisal
    if edits == Edits():
        return Effect(text, edits, text.states, np.zeros(text.n_read, dtype=np.float32), before, before)
    states = read(text.loaded, text.ids[: text.n_read], text.with_turned(edits))
    after = text_statistics(model, states[: len(text.following)], text.following).mean_surprisal
    last, bits = text.n_read - 1, kl_bits(model, text.states, states).cpu().numpy()
    effect = Effect(text, edits, states, bits, before, after)
    if text.held and last == len(text.ids) - 1:
        p, q = (at_one(logits).log() for logits in effect.logits(last))
        effect.bits[last] = kl_divergence(p, q).item()
    return effect


@dataclass(frozen=True, eq=False)
class HeadCosts:
    """Mean divergence over n_tokens tokens with one head switched off at a time, in bits, (n_layer, n_head)."""

    source: Hashable
    bits: np.ndarray
    n_tokens: int


@torch.inference_mode()
def head_costs(text: ReadText, progress: Progress) -> HeadCosts:
    """Switch off each head in turn, and measure the effect on up to MAX_COST_TOKENS tokens."""
    model, config, n = text.loaded.model, text.config, min(MAX_COST_TOKENS, text.n_read)
    bits = np.zeros((config.n_layer, config.n_head), dtype=np.float32)
    streams, weight = trace_text(model, text.ids[:n], text.turned).layers, to_float32(model.lm_head.weight)
    log_p = float32_logits(model, text.states[:n], weight).log_softmax(dim=-1)
    for number, (layer, head) in enumerate(np.ndindex(bits.shape), start=1):
        off = text.with_turned(Edits(head_scale={(layer, head): 0.0}))
        states = hidden_states_from(model, streams[layer].resid_pre, layer, off)[0]
        log_q = float32_logits(model, states, weight).log_softmax(dim=-1)
        bits[layer, head] = kl_divergence(log_p, log_q).mean().item()
        progress(number, bits.size)
    return HeadCosts(text.source, bits, n)


def fitting_edits(edits: Edits, loaded: LoadedModel) -> tuple[Edits, Edits]:
    """Split edits into those that a model supports and the rest. A patch fits only the model it was taken from."""
    kept = edits.fitting(loaded.model.config)
    kept = replace(kept, patches=tuple(patch for patch in kept.patches if is_patch_of_model(loaded.model, patch)))
    return kept, Edits(
        {at: x for at, x in edits.head_scale.items() if at not in kept.head_scale},
        {layer: x for layer, x in edits.attn_scale.items() if layer not in kept.attn_scale},
        {layer: x for layer, x in edits.mlp_scale.items() if layer not in kept.mlp_scale},
        patches=tuple(patch for patch in edits.patches if not any(patch is other for other in kept.patches)),
    )


def describe_edits(edits: Edits, config: GPTConfig | None) -> list[str]:
    """Describe each edit with a phrase such as "layer 3 head 2 off", model-wide edits first.

    Identical edits to all heads in a layer, or to all layers, share a phrase, unless the model is unknown.
    """
    n_layer, n_head, own = (0, 0, "relu") if config is None else (config.n_layer, config.n_head, config.activation)
    heads, attention, feed = dict(edits.head_scale), dict(edits.attn_scale), dict(edits.mlp_scale)
    found = []

    def scaled(key: str, factor: float, **values: int) -> str:
        end = t("change.off") if factor == 0 else t("change.times", factor=f"{factor:g}")
        return t(f"change.part.{key}", **values) + end

    if edits.activation is not None and edits.activation != own:
        found.append(t("change.swapped", old=ACTIVATIONS[own], new=ACTIVATIONS[edits.activation]))
    if edits.drop_positions:
        found.append(t("change.no_positions"))
    for patch in edits.patches:
        name = t(f"change.patch.{patch.name}")
        found.append(t("change.patched", name=name, layer=patch.layer, position=patch.position))
    for scales, key in ((attention, "attentions"), (feed, "feeds")):
        if n_layer > 1 and len(scales) == n_layer and len(set(scales.values())) == 1:
            found.append(scaled(key, scales.popitem()[1]))
            scales.clear()
    for layer in sorted({*attention, *feed, *(where for where, _ in heads)}):
        if layer in attention and attention[layer] == feed.get(layer):
            found.append(scaled("layer", attention.pop(layer), layer=layer))
            del feed[layer]
        if layer in attention:
            found.append(scaled("attention", attention[layer], layer=layer))
        of_layer = {head: factor for (where, head), factor in heads.items() if where == layer}
        if n_head > 1 and len(of_layer) == n_head and len(set(of_layer.values())) == 1:
            found.append(scaled("heads", of_layer[0], layer=layer))
        else:
            found += [scaled("head", factor, layer=layer, head=head) for head, factor in sorted(of_layer.items())]
        if layer in feed:
            found.append(scaled("feed", feed[layer], layer=layer))
    return found


def summary(edits: Edits, config: GPTConfig | None) -> str:
    found = describe_edits(edits, config)
    more = [t("change.more", n=len(found) - MAX_DESCRIBED)] if len(found) > MAX_DESCRIBED else []
    return t("change.separator").join([*found[:MAX_DESCRIBED], *more])
