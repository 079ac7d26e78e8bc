"""Goals about the two heads that copy an earlier token to the end of the text."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from components.labels import Later
from components.tabs.challenges.goals.goal import Arc, Goal, Verdict, name, share
from components.tabs.challenges.reading import Head, Reading
from gpt import Edits


class Circuit(Goal):
    """A goal about the two heads that copy an earlier token. Its arcs show where the two heads attend."""

    has_arcs = True

    def arcs(self, reading: Reading) -> list[Arc]:
        last, source = len(reading.ids) - 1, reading.circuit.source
        back, find = reading.circuit.previous_token, reading.circuit.induction
        return [
            Arc(last, source, reading.weights(find)[last, source].item(), find[1]),
            Arc(source, source - 1, reading.weights(back)[source, source - 1].item(), back[1]),
        ]

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        token = reading.ids[reading.circuit.source]
        if int(reading.before.argmax()) == token:
            return self.judge_copy(reading, after)
        return Verdict("none", {"token": name(reading, token), "p": share(reading.before[token].item())})

    @abstractmethod
    def judge_copy(self, reading: Reading, after: Tensor) -> Verdict:
        """Judge an answer, given that the unedited model predicts the copied token."""

    def copied(self, reading: Reading, after: Tensor) -> tuple[Later, float, float]:
        """Return the name of the token to copy, and its probability before and after the edits."""
        token = reading.ids[reading.circuit.source]
        return name(reading, token), reading.before[token].item(), after[token].item()


@dataclass(frozen=True)
class Copied(Circuit):
    """Pick the token that the model writes next."""

    tool = "token"
    shows_bars = False
    has_arcs = False

    def judge_copy(self, reading: Reading, after: Tensor) -> Verdict:
        if reading.answer.token is None:
            return Verdict("token")
        token = reading.ids[reading.answer.token]
        values = {"token": name(reading, token), "p": share(after[token].item())}
        return Verdict("copied", values, token == int(after.argmax()))

    def arcs(self, reading: Reading) -> list[Arc]:
        return []


@dataclass(frozen=True)
class Meets(Circuit):
    """Pick the token where the two arcs meet."""

    tool = "token"
    shows_bars = False

    def judge_copy(self, reading: Reading, after: Tensor) -> Verdict:
        if reading.answer.token is None:
            return Verdict("token")
        second, first = (share(arc.weight) for arc in self.arcs(reading))
        values = {"token": name(reading, reading.ids[reading.answer.token]), "first": first, "second": second}
        return Verdict("meets", values, reading.answer.token == reading.circuit.source)


@dataclass(frozen=True)
class OffEach(Circuit):
    """Switch off each of the two heads on its own.

    For at least one of them, the copied token's probability must fall to at most `most` times its original value.
    """

    most: float
    tool = "switches"

    def judge_copy(self, reading: Reading, after: Tensor) -> Verdict:
        heads = reading.circuit.previous_token, reading.circuit.induction
        token, whole, now = self.copied(reading, after)
        source = reading.ids[reading.circuit.source]
        left = {head: reading.after(Edits(head_scale={head: 0.0}))[source].item() for head in heads}
        values: dict[str, Any] = {"token": token, "p": share(whole), "now": share(now)}
        values |= {"back": "{}.{}".format(*heads[0]), "find": "{}.{}".format(*heads[1])}
        values |= {"without_back": share(left[heads[0]]), "without_find": share(left[heads[1]])}
        if reading.answer.tried.issuperset(heads):
            return Verdict("off.each", values, min(left.values()) <= self.most * whole)
        return Verdict("off", values)

    def marked(self, reading: Reading) -> tuple[Head, ...]:
        return reading.circuit.previous_token, reading.circuit.induction


@dataclass(frozen=True)
class PutBack(Circuit):
    """With the previous-token head off, restore the attention output at one token and layer.

    The copied token's probability must rise to at least `least` times its original value.
    """

    least: float
    tool = "place"

    def edits(self, reading: Reading) -> Edits:
        off, token, layer = {reading.circuit.previous_token: 0.0}, reading.answer.token, reading.answer.layer
        if token is None or layer is None:
            return Edits(head_scale=off)
        return Edits(head_scale=off, patches=(reading.patch("attn_out", token, layer),))

    def judge_copy(self, reading: Reading, after: Tensor) -> Verdict:
        token, whole, now = self.copied(reading, after)
        values: dict[str, Any] = {"token": token, "p": share(whole), "now": share(now)}
        values["head"] = "{}.{}".format(*reading.circuit.previous_token)
        is_set = None not in (reading.answer.token, reading.answer.layer)
        return Verdict("back" if is_set else "place", values, is_set and now >= self.least * whole)
