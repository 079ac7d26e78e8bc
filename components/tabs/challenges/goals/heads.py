"""Goals reached by picking a head or by switching heads off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.tabs.challenges.goals.goal import Arc, Goal, Verdict, first_id, name, share
from components.tabs.challenges.reading import Reading
from gpt.analysis.heads import head_roles

GOOD = 0.9  # minimum score, as a fraction of the best head's score


@dataclass(frozen=True)
class Looks(Goal):
    """Pick the head with the highest score for a role."""

    role: Literal["previous_token", "first_token"]
    tool = "head"
    shows_bars = False
    has_arcs = True

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        return judge_head(self.role, getattr(head_roles(reading.trace, reading.ids), self.role).cpu(), reading)

    def arcs(self, reading: Reading) -> list[Arc]:
        return head_arcs(reading)


@dataclass(frozen=True)
class Finds(Goal):
    """Pick the head with the most attention from the last token to the token after its earlier occurrence."""

    tool = "head"
    shows_bars = False
    has_arcs = True

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        source = reading.circuit.source
        weights = torch.stack([layer.attn_weights[0, :, -1, source] for layer in reading.trace.layers]).float().cpu()
        return judge_head("finds", weights, reading)

    def arcs(self, reading: Reading) -> list[Arc]:
        last = len(reading.ids) - 1
        return [arc for arc in head_arcs(reading) if arc.start == last]


def judge_head(key: str, scores: Tensor, reading: Reading) -> Verdict:
    """Judge the picked head: its score must be close to the highest in `scores`, (n_layer, n_head)."""
    best, head = scores.max().item(), reading.answer.head
    if head is None:
        return Verdict("head", {"best": share(best)})
    score = scores[head].item()
    values = {"layer": head[0], "head": head[1], "share": share(score), "best": share(best)}
    return Verdict(key, values, score >= GOOD * best)


def head_arcs(reading: Reading) -> list[Arc]:
    """Return an arc from each token to the token that the picked head attends to most."""
    head = reading.answer.head
    if head is None:
        return []
    weights, targets = reading.weights(head).max(dim=-1)
    pairs = enumerate(zip(targets.tolist(), weights.tolist(), strict=True))
    return [Arc(start, end, weight, head[1]) for start, (end, weight) in pairs if end != start]


@dataclass(frozen=True)
class Tops(Goal):
    """Make a word the most likely next word by switching off at most `most_off` heads."""

    word: str
    most_off: int
    tool = "switches"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token, best, n = first_id(reading.tokenizer, self.word), int(after.argmax()), len(reading.answer.off)
        values = {
            "token": name(reading, token),
            "p": share(after[token].item()),
            "top": name(reading, best),
            "n": n,
        }
        return Verdict("tops", values, token == best and 0 < n <= self.most_off)


@dataclass(frozen=True)
class Keeps(Goal):
    """Switch off at least `least_off` heads without changing the most likely next token."""

    least_off: int
    tool = "switches"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        best, now, n = int(reading.before.argmax()), int(after.argmax()), len(reading.answer.off)
        values = {
            "token": name(reading, best),
            "p": share(after[best].item()),
            "top": name(reading, now),
            "n": n,
        }
        done = best == now and n >= self.least_off
        return Verdict("keeps", values, done, n if done else None)
