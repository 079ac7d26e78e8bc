"""Goals reached by writing a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from components.labels import token_text
from components.tabs.challenges.goals.goal import Goal, Verdict, first_id, name, share
from components.tabs.challenges.reading import Reading


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def shortcut(reading: Reading, *token_ids: int, most: int = 0) -> str:
    """Return the key of the message that explains why a text is not a valid answer, or "" if it is valid.

    Merely deleting words from the initial text does not count. Each token must begin a word that occurs in the text at
    most `most` times; otherwise the model would simply repeat it.
    """
    first, text = iter(words_of(reading.start)), words_of(reading.answer.text)
    if reading.answer.text != reading.start and all(word in first for word in text):
        return "own.deleted"
    names = [token_text(reading.tokenizer, token_id) for token_id in token_ids]
    if not all(re.match(r"\W+\w", name) for name in names):
        return "own.piece"
    return "own.repeated" if any(text.count(word) > most for name in names for word in words_of(name)) else ""


@dataclass(frozen=True)
class Sure(Goal):
    """Write a new text whose most likely next word has a probability of at least `least`."""

    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        p, best = after.max(dim=-1)
        reached = p.item() >= self.least
        key = (shortcut(reading, int(best)) if reached else "") or "sure"
        return Verdict(key, {"token": name(reading, best), "p": share(p.item())}, reached and key == "sure")


@dataclass(frozen=True)
class Torn(Goal):
    """Write a new text whose two most likely next words each have a probability of at least `least`."""

    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        (p, q), (first, second) = (each.tolist() for each in after.topk(2))
        values = {
            "first": name(reading, first),
            "p": share(p),
            "second": name(reading, second),
            "q": share(q),
        }
        key = (shortcut(reading, first, second) if q >= self.least else "") or "torn"
        return Verdict(key, values | {"token": name(reading, first)}, q >= self.least and key == "torn")


@dataclass(frozen=True)
class Says(Goal):
    """Reach a probability of at least `least` for a word that occurs in the text at most once."""

    word: str
    least: float
    tool = "text"

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token = first_id(reading.tokenizer, self.word)
        p = after[token].item()
        values = {"token": name(reading, token), "p": share(p), "top": name(reading, after.argmax())}
        key = (shortcut(reading, token, most=1) if p >= self.least else "") or "says"
        return Verdict(key, values, p >= self.least and key == "says")


@dataclass(frozen=True)
class LowerLoss(Goal):
    """Bring the mean loss on the text below `below` nats per token by replacing at most `words` words."""

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
    """Return the probability of each token after the first, given the tokens before it, (T - 1,)."""
    logits = reading.loaded.model.logits(reading.trace.final_norm[0, :-1]).float().cpu()
    return logits.softmax(-1).gather(1, torch.tensor(reading.ids[1:])[:, None])[:, 0]
