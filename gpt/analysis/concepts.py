"""Concepts: directions of the residual stream that are active on few tokens each, found by sparse autoencoders.

A dictionary reads the stream after one layer as a sum of a few of its features, each a direction of length 1 with an
activity of 0 or more, so an activity is the length of what the feature adds. Turning a concept up adds its direction
at every position; turning it down takes away from its activity where it is active.

Source: Bricken et al., "Towards Monosemanticity" (2023); Gao et al. (2024), arXiv 2406.04093.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import single_sequence
from gpt.checks import check_choice, check_integer, check_number
from gpt.edits import Steering
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace

WINDOW, BEFORE = 20, 13  # tokens of a snippet, and those of them before the strongest
NONE = -1  # in a row of ids or snippets that is shorter than the others
MAX_STRENGTH = 10.0
NO_ACTIVITY = -1.0  # strength that leaves a feature no activity


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The features of one layer, n of them, and the evidence for each from a held-back text.

    encoder, decoder: (n, C); bias: (n,); center: (C,), so that a stream x is about activity @ decoder + center.
    active: how many features are active on a token, at most. share: (n,), of the tokens on which each is active.
    tokens: (n, 8), ids of the tokens on which it is strong most often; promotes: (n, 8), ids of the next tokens
    whose probability rises most when it is added. starts: (n, 12), where its snippets begin in the text; peaks:
    (n, 12), its activity on their strongest tokens, highest first; tints: (n, 12, WINDOW), uint8, its activity on their
    tokens, of which 255 is the highest peak. Rows are filled with NONE, or 0.
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

    def activity(self, x: Tensor) -> Tensor:
        """Activity of each feature: (..., C) -> (..., n), of which at most `active` are not 0."""
        values, features = F.linear(x, self.encoder, self.bias).topk(self.active, dim=-1)
        return torch.zeros(*x.shape[:-1], len(self.bias), device=x.device).scatter(-1, features, values.relu())

    def activity_of(self, feature: int, x: Tensor) -> Tensor:
        """Activity of one feature: (..., C) -> (...)."""
        return self.activity(x.to(self.encoder))[..., feature]

    def reconstruction(self, activity: Tensor) -> Tensor:
        """The stream that activities (..., n) stand for, (..., C)."""
        return activity @ self.decoder + self.center

    @cached_property
    def strengths(self) -> Tensor:
        """(n,): the natural strength of each feature, the median of its peaks."""
        return self.peaks.masked_fill(self.peaks == 0, torch.nan).nanmedian(dim=1).values.nan_to_num()


@dataclass(frozen=True)
class NamedConcept:
    """A feature that a person has named.

    names: by language, as in {"en": "dog", "zh": "狗"}. strength: by which it is turned up unless told, a multiple of
    its natural strength; None where turning it up does not do what the name says. words: beginnings of words that
    mention it.
    """

    layer: int
    feature: int
    names: Mapping[str, str]
    strength: float | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Snippet:
    """Tokens of the held-back text around a strongest token. tint: activity at each, 0 to 1 of the highest peak."""

    ids: tuple[int, ...]
    tint: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Concepts:
    """The dictionaries of a model, by layer.

    text: ids of the held-back text. named: the features with a name; those with a strength are offered, best first.
    """

    dictionaries: Mapping[int, Dictionary]
    text: Tensor
    named: tuple[NamedConcept, ...] = ()
    _by_place: dict[tuple[int, int], NamedConcept] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_place", {(each.layer, each.feature): each for each in self.named})

    @property
    def offered(self) -> tuple[NamedConcept, ...]:
        """The concepts that can be turned up with the effect that their name says."""
        return tuple(each for each in self.named if each.strength is not None)

    def of(self, layer: int, feature: int) -> NamedConcept | None:
        """The name of a feature, None without one."""
        return self._by_place.get((layer, feature))

    def steering(self, layer: int, feature: int, strength: float) -> Steering:
        """Turn a feature up at every position, by a multiple of its natural strength.

        Below 0, it is turned down: that share of its activity is taken away at each position, at NO_ACTIVITY and below
        all of it; where the feature is not active, nothing changes.
        Raises ValueError for a feature that does not exist, and a strength beyond MAX_STRENGTH.
        """
        check_choice("layer", layer, sorted(self.dictionaries))
        dictionary = self.dictionaries[layer]
        check_integer("feature", feature, 0, len(dictionary.bias) - 1)
        check_number("strength", strength, -MAX_STRENGTH, MAX_STRENGTH)
        strength, direction = max(float(strength), NO_ACTIVITY), dictionary.decoder[feature]
        if strength >= 0:
            return Steering(layer, strength * dictionary.strengths[feature] * direction, (feature, strength))
        # Each step along the direction changes the activity by less than its length, as others share what they read.
        value = strength * direction / (dictionary.encoder[feature] @ direction)
        return Steering(layer, value, (feature, strength), partial(dictionary.activity_of, feature))

    def snippets(self, layer: int, feature: int, tokenizer: Vocabulary) -> list[Snippet]:
        """Where a feature is strongest in the held-back text, at most one place of a story, strongest first."""
        dictionary, found = self.dictionaries[layer], []
        for start, tint in zip(dictionary.starts[feature].tolist(), dictionary.tints[feature].tolist(), strict=True):
            if start == NONE:
                continue
            ids = self.text[start : start + WINDOW].tolist()
            if tokenizer.eot_id in ids[1:]:  # the story ends
                ids = ids[: ids.index(tokenizer.eot_id, 1)]
            found.append(Snippet(tuple(ids), tuple(value / 255 for value in tint[: len(ids)])))
        return found

    def search(self, tokenizer: Vocabulary, query: str, limit: int = 20) -> list[tuple[int, int]]:
        """The features (layer, feature) of a word: named so first, then those that are strongest on it, then those that
        promote it, the most often active first."""
        wanted = query.strip().lower()
        if not wanted:
            return []
        named = [
            (each.layer, each.feature)
            for each in self.named
            if any(wanted in name.lower() for name in (*each.names.values(), *each.words))
        ]
        texts = (tokenizer.token_bytes(i).decode("utf-8", "replace").strip().lower() for i in range(tokenizer.n_vocab))
        ids = torch.tensor([i for i, text in enumerate(texts) if text.startswith(wanted)], dtype=torch.long)
        found = [*named]
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
    """Activity of each feature of a layer at each token of a trace, (T, n).

    first: position of the first token that was traced. The first token of a text has none: its stream is unlike all
    others, and no dictionary is trained on it.
    """
    check_choice("layer", layer, sorted(concepts.dictionaries))
    dictionary = concepts.dictionaries[layer]
    activity = dictionary.activity(single_sequence(trace.layers[layer].resid_post).to(dictionary.encoder))
    if first == 0:
        activity[0] = 0
    return activity
