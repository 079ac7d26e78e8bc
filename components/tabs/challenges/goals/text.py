"""Goals that are reached by writing a text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.labels import percent
from components.tabs.challenges.goals.goal import Goal, Verdict, first_id, name
from components.tabs.challenges.reading import Reading


@dataclass(frozen=True)
class Sure(Goal):
    """The next token has at least this probability."""

    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        p, best = after.max(dim=-1)
        return Verdict("sure", {"token": name(reading, best), "p": percent(p.item())}, p.item() >= self.least)


@dataclass(frozen=True)
class Torn(Goal):
    """Two next tokens have at least this probability each."""

    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        (p, q), (first, second) = (each.tolist() for each in after.topk(2))
        values = {"first": name(reading, first), "p": percent(p), "second": name(reading, second), "q": percent(q)}
        return Verdict("torn", values, q >= self.least)


@dataclass(frozen=True)
class Says(Goal):
    """A word has at least this probability."""

    word: str
    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token = first_id(reading.tokenizer, self.word)
        p = after[token].item()
        values = {"token": name(reading, token), "p": percent(p), "top": name(reading, after.argmax())}
        return Verdict("says", values, p >= self.least)


@dataclass(frozen=True)
class LowerLoss(Goal):
    """The mean loss of the text, in nats per token, is below `below` after at most `words` words were replaced."""

    below: float
    words: int
    tool = "text"
    shows_bars = False

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        before, now = reading.start.split(), reading.answer.text.split()
        if len(before) != len(now):
            return Verdict("loss.words", {"n": len(before), "now": len(now)})
        changed = sum(a != b for a, b in zip(before, now, strict=True))
        loss = sum(-p.log().item() for p in probabilities(reading)) / max(1, len(reading.ids) - 1)
        values = {"loss": f"{loss:.2f}", "changed": changed, "words": self.words}
        return Verdict("loss", values, loss < self.below and changed <= self.words)


@torch.inference_mode()
def probabilities(reading: Reading) -> Tensor:
    """(T - 1,): the probability that each token but the first had before it was read."""
    logits = reading.loaded.model.logits(reading.trace.final_norm[0, :-1]).float().cpu()
    return logits.softmax(-1).gather(1, torch.tensor(reading.ids[1:])[:, None])[:, 0]
