"""Concepts: directions in the residual stream that are active on few tokens, found by sparse autoencoders.

A dictionary approximates the stream after one layer as a weighted sum of a few features. A feature is a direction of
length 1, and its activity is its weight in the sum, which is never negative.

Source: Bricken et al., "Towards Monosemanticity" (2023); Gao et al. (2024), arXiv 2406.04093.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import single_sequence
from gpt.edits import Steering
from gpt.errors import check_choice, check_integer, check_number
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace

WINDOW, BEFORE = 20, 13  # tokens per snippet, and tokens before the strongest one
NONE = -1  # padding in rows of ids and snippets
MAX_STRENGTH = 10.0
MAX_SHARE = 0.1  # features active on a larger share of all tokens are too common to stand for an idea
NO_ACTIVITY = -1.0  # strength that reduces the activity of a feature to 0


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The n features of one layer, with examples from a held-out text.

    encoder, decoder: (n, C); bias: (n,); center: (C,). A stream x is approximately activity @ decoder + center.
    active: maximum number of active features per token; n for a dictionary without a limit. threshold: (n,), the value
    that each feature's activity must exceed (JumpReLU, arXiv 2407.14435), or None for 0.
    share: (n,), fraction of tokens on which a feature is active.
    tokens: (n, 8), ids of the tokens on which the feature is most often strong; promotes: (n, 8), ids of the next
    tokens whose probability rises most when the feature is added. starts: (n, 12), start of each snippet in the text;
    peaks: (n, 12), highest activity in each snippet, in descending order; tints: (n, 12, WINDOW), uint8, activity on
    each token in the snippets, scaled so that the highest peak is 255. Rows are padded with NONE or 0.
    """

    encoder: Tensor
    decoder: Tensor
    bias: Tensor
    center: Tensor
    active: int
    share: Tensor
    tokens: Tensor
    promotes: Tensor
    starts: Tensor
    peaks: Tensor
    tints: Tensor
    threshold: Tensor | None = None

    def activity(self, x: Tensor) -> Tensor:
        """Compute the activity of each feature, at most `active` of them nonzero: (..., C) -> (..., n)."""
        scores = F.linear(x, self.encoder, self.bias)
        if self.threshold is not None:
            scores = scores.where(scores > self.threshold, 0)
        if self.active == len(self.bias):
            return scores.relu()
        values, features = scores.topk(self.active, dim=-1)
        return torch.zeros_like(scores).scatter(-1, features, values.relu())

    def activity_of(self, feature: int, x: Tensor) -> Tensor:
        """Compute the activity of one feature: (..., C) -> (...)."""
        return self.activity(x.to(self.encoder))[..., feature]

    def reconstruction(self, activity: Tensor) -> Tensor:
        """Reconstruct the stream from activities: (..., n) -> (..., C)."""
        return activity @ self.decoder + self.center

    @cached_property
    def strengths(self) -> Tensor:
        """Natural strength of each feature, the median of its peaks: (n,)."""
        return self.peaks.masked_fill(self.peaks == 0, torch.nan).nanmedian(dim=1).values.nan_to_num()

    def relative(self, activity: Tensor, feature: int) -> Tensor:
        """Return one feature's activity as a fraction of its natural strength, at most 1: (..., n) -> (...)."""
        return (activity[..., feature] / self.strengths[feature].clamp(min=1e-6)).clamp(0, 1)

    def without_common(self, values: Tensor) -> Tensor:
        """Zero the values (..., n) of features that are active on more than MAX_SHARE of all tokens."""
        return values.where(self.share <= MAX_SHARE, 0)

    def strongest(self, activity: Tensor, count: int) -> list[int]:
        """Return up to `count` features that are active on a token, strongest first, excluding common ones."""
        top = self.without_common(activity).topk(min(count, len(activity)))
        return top.indices[top.values > 0].tolist()


@dataclass(frozen=True)
class NamedConcept:
    """A feature with names by language, such as {"en": "dog", "zh": "狗"}.

    strength: default strength for turning the feature up, as a multiple of its natural strength; None if turning it up
    does not have the effect that its name suggests. words: prefixes of words that mention the concept.
    """

    layer: int
    feature: int
    names: Mapping[str, str]
    strength: float | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Snippet:
    """Tokens around a strong activation in the held-out text. tint: their activity, relative to the highest peak."""

    ids: tuple[int, ...]
    tint: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Concepts:
    """The dictionaries of a model, by layer.

    text: ids of the held-out text. named: named features, best first.
    """

    dictionaries: Mapping[int, Dictionary]
    text: Tensor
    named: tuple[NamedConcept, ...] = ()

    @cached_property
    def by_place(self) -> dict[tuple[int, int], NamedConcept]:
        return {(each.layer, each.feature): each for each in self.named}

    @property
    def offered(self) -> tuple[NamedConcept, ...]:
        """Concepts whose names describe the effect of turning them up."""
        return tuple(each for each in self.named if each.strength is not None)

    def steering(self, layer: int, feature: int, strength: float) -> Steering:
        """Return the edit that turns a feature up at every position, by a multiple of its natural strength.

        A negative strength turns the feature down: it removes that fraction of the activity at each position, and all
        of it at NO_ACTIVITY or below. Positions where the feature is inactive do not change. Raises ValueError for an
        unknown layer or feature, or a strength beyond MAX_STRENGTH.
        """
        check_choice("layer", layer, sorted(self.dictionaries))
        dictionary = self.dictionaries[layer]
        check_integer("feature", feature, 0, len(dictionary.bias) - 1)
        check_number("strength", strength, -MAX_STRENGTH, MAX_STRENGTH)
        strength, direction = max(float(strength), NO_ACTIVITY), dictionary.decoder[feature]
        if strength >= 0:
            return Steering(layer, strength * dictionary.strengths[feature] * direction, (feature, strength))
        # A step along the direction changes the activity by less than its length, because encoder and decoder differ.
        value = strength * direction / (dictionary.encoder[feature] @ direction)
        return Steering(layer, value, (feature, strength), partial(dictionary.activity_of, feature))  # can be pickled

    def snippets(self, layer: int, feature: int, tokenizer: Vocabulary) -> list[Snippet]:
        """Return the snippets in which a feature is strongest, in descending order, with at most one per story."""
        dictionary, found = self.dictionaries[layer], []
        starts = dictionary.starts[feature][dictionary.starts[feature] != NONE].tolist()
        for start, tint in zip(starts, dictionary.tints[feature].tolist(), strict=False):
            ids = self.text[start : start + WINDOW].tolist()
            if tokenizer.eot_id in ids[1:]:  # the story ends
                ids = ids[: ids.index(tokenizer.eot_id, 1)]
            found.append(Snippet(tuple(ids), tuple(value / 255 for value in tint[: len(ids)])))
        return found

    def search(self, tokenizer: Vocabulary, query: str, limit: int = 20) -> list[tuple[int, int]]:
        """Return the (layer, feature) pairs of features related to a word.

        Features with a matching name come first, in the order of `named`. Features that are strong on the word come
        next, then those that promote it, each in descending order of share."""
        wanted = query.strip().lower()
        if not wanted:
            return []
        found = [
            (each.layer, each.feature)
            for each in self.named
            if any(wanted in name.lower() for name in (*each.names.values(), *each.words))
        ]
        texts = (tokenizer.token_bytes(i).decode("utf-8", "replace").strip().lower() for i in range(tokenizer.n_vocab))
        ids = torch.tensor([i for i, text in enumerate(texts) if text.startswith(wanted)], dtype=torch.long)
        for rows in ("tokens", "promotes"):
            hits = []
            for layer, dictionary in self.dictionaries.items():
                table = getattr(dictionary, rows)[:, :3]
                for feature in torch.isin(table, ids.to(table.dtype)).any(dim=1).nonzero()[:, 0].tolist():
                    hits.append((float(dictionary.share[feature]), (layer, feature)))
            found += [place for _, place in sorted(hits, reverse=True)]
        return list(dict.fromkeys(found))[:limit]


@torch.inference_mode()
def trace_activity(concepts: Concepts, trace: Trace, layer: int, *, first: int = 0) -> Tensor:
    """Return the activity of all of a layer's features on each token in a trace: (T, n).

    first: position of the first traced token. The activity on the first token of a text is 0: its stream differs from
    all others, so dictionaries are not trained on it.
    """
    check_choice("layer", layer, sorted(concepts.dictionaries))
    dictionary = concepts.dictionaries[layer]
    activity = dictionary.activity(single_sequence(trace.layers[layer].resid_post).to(dictionary.encoder))
    if first == 0:
        activity[0] = 0
    return activity
