"""Computations for the Causes tab. For long texts, they cover only a window to save time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from components.causes import Falls, causes_of
from components.concepts import shared_name
from components.state.text import Text
from components.words import words_of
from gpt import GPT, Edits, GPTConfig, LoadedModel, SamplingParams, Trace, distribution
from gpt.analysis.causes import Ablation, Causes, predict_without
from gpt.analysis.concept_graph import ConceptGraph, FeatureNode, Removed, concept_graph, logits_without
from gpt.analysis.heads import HeadRoles, head_roles, repeated_random_ids
from gpt.analysis.lens import Lens, logit_lens
from gpt.analysis.saliency import input_x_gradient
from gpt.analysis.tracing import trace_text, trace_window
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inference.threads import threads_for
from gpt.sampling import keep_only, rank_of
from gpt.tokenizer import start_ids

LENS_POSITIONS = 16  # positions in the lens
POSITIONS_AHEAD = 4  # lens positions after the selected one
MAX_CANDIDATES = 10  # tokens to choose from
FLOW_HEADS = 5
FLOW_WORDS = 6
MAX_GRADIENT_BYTES = 2**29
MAX_ROLE_BYTES = 2**26

Method = Literal["hidden", "gradient"]
METHODS: tuple[Method, ...] = ("hidden", "gradient")


@dataclass(frozen=True)
class Prediction:
    """The prediction to explain: `token` after the token at `position`.

    Attributes:
        follows: Whether `token` is the next token in the text.
        best: The most likely tokens, best first.
        previous: The tokens up to and including the position.
        logits: Logits after the position, (vocab_size,).
        held: Typed white space with which the token begins (see `gpt.tokenizer.hold_back`).
    """

    position: int
    token: int
    rank: int
    follows: bool
    best: tuple[int, ...]
    previous: tuple[int, ...]
    logits: Tensor = field(compare=False, repr=False)
    held: str = ""

    def probabilities(self, settings: SamplingParams) -> Tensor:
        """Return the probability of every token with these settings, (vocab_size,)."""
        return distribution(self.logits, settings, previous_ids=self.previous).final


@dataclass(frozen=True, eq=False)
class TracedText:
    """A window of a text. `trace` covers the positions from `first` up to but not including `end`."""

    loaded: LoadedModel
    edits: Edits | None
    text: Text
    first: int
    trace: Trace

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that the model has read."""
        return self.text.ids[: self.text.n_read]

    @property
    def end(self) -> int:
        """The position after the last traced one."""
        return self.first + self.trace.final_norm.shape[1]

    @property
    def model(self) -> GPT:
        return self.loaded.model

    def holds(self, text: Text, position: int) -> bool:
        """Return whether the trace covers a position in a text."""
        return self.text == text and self.first <= position < self.end

    @property
    def n_bytes(self) -> int:
        return self.trace.n_bytes


@dataclass(frozen=True, eq=False)
class Influence:
    """Each token's influence on a prediction, in nats, (N,)."""

    values: np.ndarray


@dataclass(frozen=True, eq=False)
class TokenPaths:
    """Probability and rank (1 = best) of N tokens in the lens, (N, 2 n_layer).

    They are measured after attention and after the feed-forward part of each layer.
    """

    tokens: tuple[int, ...]
    probability: np.ndarray
    rank: np.ndarray


def predict(text: Text, position: int, token: int | None = None) -> Prediction:
    """Return the prediction after a position. `token` defaults to the next one in the text, or else the likeliest."""
    logits = text.document.logits(position)
    ids = logits.topk(min(MAX_CANDIDATES, len(logits))).indices.tolist()
    follower = text.ids[position + 1] if position + 1 < len(text.ids) else None
    token = (ids[0] if follower is None else follower) if token is None else token
    return Prediction(
        position=position,
        token=token,
        rank=int(rank_of(logits, torch.tensor([token], device=logits.device))),
        follows=token == follower,
        best=tuple(ids),
        previous=text.ids[: position + 1],
        logits=logits,
        held=text.document.held_after(position),
    )


def trace_around(text: Text, position: int, before: TracedText | None = None) -> TracedText:
    """Trace a window around a position. Returns `before` if it contains the position."""
    if before is not None and before.holds(text, position):
        return before
    ids, edits = text.ids[: text.n_read], text.document.edits
    first = max(0, min(position + 1 + POSITIONS_AHEAD, len(ids)) - LENS_POSITIONS)
    trace = trace_window(text.loaded.model, ids, first, min(len(ids), first + LENS_POSITIONS), edits)
    return TracedText(text.loaded, edits, text, first, trace)


@torch.inference_mode()
def lens(traced: TracedText, prediction: Prediction) -> Lens:
    """Return each layer's prediction at the traced positions."""
    found, place = logit_lens(traced.model, traced.trace), prediction.position - traced.first
    if prediction.held:
        only = traced.loaded.tokenizer.ids_after(prediction.held)
        here = logit_lens(traced.model, traced.trace, positions=[place], only=only)
        for name in ("token", "probability", "entropy"):
            getattr(found, name)[..., place] = getattr(here, name)[..., 0]
    return found


def token_paths(traced: TracedText, prediction: Prediction, tokens: Sequence[int]) -> TokenPaths:
    """Return the probability and rank of tokens in the lens at the prediction's position."""
    places, only = (
        [prediction.position - traced.first] * len(tokens),
        traced.loaded.tokenizer.ids_after(prediction.held),
    )
    lens = logit_lens(traced.model, traced.trace, positions=places, chosen=tokens, only=only)
    assert lens.chosen_probability is not None
    assert lens.chosen_rank is not None
    p, rank = (values.flatten(0, 1).T.cpu().numpy() for values in (lens.chosen_probability, lens.chosen_rank))
    return TokenPaths(tuple(tokens), p, rank)


def longest_gradient(config: GPTConfig) -> int:
    """Return the largest number of tokens for which a backward pass fits into memory."""
    heads, neurons = config.n_head * config.head_size, (5 if config.gated else 3) * config.ff_size
    per_token = 4 * config.n_layer * (8 * config.n_embd + 4 * heads + neurons)
    return MAX_GRADIENT_BYTES // per_token


def gradient(traced: TracedText, prediction: Prediction) -> Influence | None:
    """Return input x gradient for each token up to the position, or None if the text is too long."""
    ids = traced.ids[: prediction.position + 1]
    if len(ids) > longest_gradient(traced.model.config):
        return None
    return Influence(input_x_gradient(traced.model, ids, prediction.token).float().cpu().numpy())


def causes(traced: TracedText, prediction: Prediction) -> Causes:
    """Return the words and heads that the prediction depends on."""
    tokenizer, held = traced.loaded.tokenizer, prediction.held
    return causes_of(traced.model, tokenizer, prediction.previous, prediction.token, traced.edits, held=held)


@dataclass(frozen=True, eq=False)
class CauseFlow:
    """Heads and words that a prediction depends on.

    Attributes:
        heads: The heads, each with the probability without it.
        words: Each word's positions, in text order, with the probability without the word.
        weights: Each head's attention from the last token, (heads, words).
    """

    heads: tuple[tuple[tuple[int, int], float], ...]
    words: tuple[tuple[range, float], ...]
    weights: np.ndarray

    def word_at(self, position: int) -> range | None:
        """Return the shown word that begins at a position."""
        return next((word for word, _ in self.words if word.start == position), None)


def cause_flow(traced: TracedText, prediction: Prediction, falls: Falls) -> CauseFlow | None:
    """Return the heads and words whose removal lowers the probability the most, or None if there are no heads."""
    if not falls.heads:
        return None
    heads = tuple(((fall.place[0], fall.place[1]), fall.probability) for fall in falls.heads[:FLOW_HEADS])
    words = sorted(
        ((range(fall.place[0], fall.place[-1] + 1), fall.probability) for fall in falls.words[:FLOW_WORDS]),
        key=lambda word: word[0].start,
    )
    place, n = prediction.position - traced.first, prediction.position + 1
    rows = [traced.trace.layers[layer].attn_weights[0, head, place, :n] for (layer, head), _ in heads]
    weights = torch.stack(rows).float().cpu().numpy()
    of_words = [weights[:, word.start : word.stop].sum(axis=1) for word, _ in words]
    return CauseFlow(heads, tuple(words), np.stack(of_words, axis=1) if words else weights[:, :0])


ERROR = "error"  # key of the reconstruction error in the later layer


def word_key(word: Sequence[int]) -> str:
    """Return the key of a word in the concept graph."""
    return f"word {word[0]}"


def node_key(node: FeatureNode) -> str:
    """Return the key of a feature node in the concept graph."""
    feature, position = node.places[0]
    return f"{node.layer}.{feature} {position}"


def graph(traced: TracedText, prediction: Prediction) -> ConceptGraph | None:
    """Return the concept graph, or None if the model has no concepts or the text is too long for a gradient."""
    loaded, ids = traced.loaded, prediction.previous
    if loaded.concepts is None or not 1 < len(ids) <= longest_gradient(traced.model.config):
        return None
    words = words_of(loaded.tokenizer, ids)
    name = partial(shared_name, loaded)
    return concept_graph(traced.model, loaded.concepts, ids, prediction.token, words, name, traced.edits)


def without_parts(traced: TracedText, prediction: Prediction, graph: ConceptGraph, off: frozenset[str]) -> Tensor:
    """Return the logits without parts of the graph, (vocab_size,). `off` contains their keys."""
    assert traced.loaded.concepts is not None
    off_nodes = (node for node in (*graph.early, *graph.late) if node_key(node) in off)
    nodes = {(node.layer, *place) for node in off_nodes for place in node.places}
    words = {position for word in graph.words if word_key(word) in off for position in word}
    removed = Removed(frozenset(words), frozenset(nodes), ERROR in off)
    ids = prediction.previous
    with threads_for(len(ids) * multiplications_per_token(traced.model)):
        logits = logits_without(traced.model, traced.loaded.concepts, ids, removed, traced.edits)
    return keep_only(logits, traced.loaded.tokenizer.ids_after(prediction.held))


def without(traced: TracedText, prediction: Prediction, ablation: Ablation) -> Tensor:
    """Return the logits without some tokens, heads and inputs to heads, (vocab_size,)."""
    with threads_for(len(prediction.previous) * multiplications_per_token(traced.model)):
        logits = predict_without(traced.model, prediction.previous, ablation, traced.edits)
    return keep_only(logits, traced.loaded.tokenizer.ids_after(prediction.held))


def roles_of_text(traced: TracedText) -> tuple[HeadRoles, int]:
    """Return all heads' roles on the text, or on the beginning of a long text, and the number of tokens used."""
    ids = traced.ids[: longest_roles(traced.model.config)]
    return head_roles(trace_text(traced.model, ids, traced.edits), ids), len(ids)


def roles_of_noise(traced: TracedText) -> tuple[HeadRoles, int]:
    """Return all heads' roles on a fixed sequence of random tokens, repeated once, and the number of tokens used."""
    config, start = traced.model.config, next(iter(start_ids(traced.loaded.tokenizer)), None)
    length = min(50, longest_roles(config) // 2)
    ids = repeated_random_ids(config, torch.Generator().manual_seed(0), length=length, start=start)
    return head_roles(trace_text(traced.model, ids, traced.edits), ids), len(ids)


def longest_roles(config: GPTConfig) -> int:
    """Return the largest number of tokens for which all attention weights fit into memory."""
    return max(2, int((MAX_ROLE_BYTES / (4 * config.n_layer * config.n_head)) ** 0.5))
