"""Goals reached by turning concepts up or by choosing a feature."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from components.concepts import quoted_concept
from components.errors import PageError
from components.labels import Later, marked
from components.tabs.challenges.goals.goal import Goal, Verdict
from components.tabs.challenges.reading import Reading
from gpt import Edits
from gpt.analysis.concepts import Concepts, Snippet, trace_activity

WRITTEN = 24  # tokens to generate
N_LISTED = 4  # features per layer


def concepts_of(reading: Reading) -> Concepts:
    """Return the model's concepts. Raises ValueError if the model has none."""
    if reading.loaded.concepts is None:
        raise PageError("error.no_concepts", model=reading.loaded.name)
    return reading.loaded.concepts


@dataclass(frozen=True)
class TurnsUp(Goal):
    """Turn up concepts so that the continuation contains one of these words.

    The continuation must remain plausible: the unsteered model's loss on it must be below `most_loss` nats per token.
    """

    words: tuple[str, ...]
    most_loss: float
    tool = "concepts"

    def edits(self, reading: Reading) -> Edits:
        concepts = concepts_of(reading)
        return Edits(steering=tuple(concepts.steering(*place, by) for place, by in reading.answer.turned if by))

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        written = goes_on(reading, self.edits(reading))
        text = reading.tokenizer.decode(written)
        loss = loss_of(reading, written)
        mentions = re.search(rf"\b({'|'.join(self.words)})", text, re.IGNORECASE) is not None
        key = "turned" if not mentions else "turned.torn" if loss >= self.most_loss else "turned.done"
        return Verdict(key, {"text": marked(text).strip()}, key == "turned.done")


@torch.inference_mode()
def goes_on(reading: Reading, edits: Edits) -> list[int]:
    """Continue the text greedily and return the new token ids."""
    model = reading.loaded.model
    written: list[int] = []
    cache, new = model.new_cache(), torch.tensor([list(reading.ids)], device=model.device)
    while len(written) < WRITTEN:
        written.append(int(model(new, cache=cache, edits=edits)[0, -1].argmax()))
        new = torch.tensor([written[-1:]], device=model.device)
    return written


@torch.inference_mode()
def loss_of(reading: Reading, written: list[int]) -> float:
    """Return the unsteered model's mean loss on the new tokens, in nats per token."""
    idx = torch.tensor([[*reading.ids, *written]], device=reading.loaded.model.device)
    logits = reading.loaded.model(idx)[0, len(reading.ids) - 1 : -1].float()
    return float(cross_entropy(logits, idx[0, len(reading.ids) :]))


@dataclass(frozen=True)
class Speaks(Goal):
    """Find a feature that is strongest right before somebody speaks.

    In at least a fraction `least` of the feature's snippets, one of the two tokens after the strongest token contains
    a quotation mark, and the strongest token itself does not.
    """

    least: float
    tool = "feature"
    shows_bars = False

    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        concepts, place = concepts_of(reading), reading.answer.feature
        if place is None:
            return Verdict("speaks.none")
        snippets = concepts.snippets(*place, reading.tokenizer)
        n = sum(speaks_next(reading, each) for each in snippets)
        name = Later(lambda: quoted_concept(reading.loaded, place))
        values = {"name": name, "n": n, "total": len(snippets)}
        return Verdict("speaks", values, bool(snippets) and n >= self.least * len(snippets))


def speaks_next(reading: Reading, snippet: Snippet) -> bool:
    """Return whether the strongest token contains no quotation mark but one of the next two tokens does."""
    at = snippet.tint.index(max(snippet.tint))
    strongest, *following = (reading.tokenizer.decode([token]) for token in snippet.ids[at : at + 3])
    return '"' not in strongest and any('"' in text for text in following)


def strongest(reading: Reading, position: int) -> list[tuple[tuple[int, int], Tensor]]:
    """Return the strongest features at a position, with their activity across the text.

    Each activity has shape (T,) and is relative to the feature's natural strength.
    """
    concepts, found = concepts_of(reading), []
    for layer, dictionary in concepts.dictionaries.items():
        activity = trace_activity(concepts, reading.trace, layer)
        for feature in dictionary.strongest(activity[position], N_LISTED):
            found.append(((layer, feature), dictionary.relative(activity, feature)))
    return found
