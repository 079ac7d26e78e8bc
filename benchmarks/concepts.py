"""Check that turning up a concept makes texts mention it, and that they still read naturally.

    python -m benchmarks.concepts [MODEL]

For each named concept with words, prints how many of 16 continuations mention it with and without steering, at the
strength used on the page. Also prints the unsteered model's loss on the steered texts. The page may offer a concept if
at least three quarters of the steered texts mention it, at most a quarter of the others do, and the loss is below 3.2
nats per token. For poems the limit is 4.1, the model's loss on poems written by people.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt import DEFAULT_MODEL, Edits, LoadedModel, load_model
from gpt.analysis.concepts import NamedConcept

N_TEXTS, PROMPT_TOKENS, LENGTH = 16, 8, 40
TEMPERATURE, SEED = 0.7, 0
LEAST_WITH, MOST_WITHOUT = 0.75, 0.25
MOST_LOSS, MOST_LOSS_OF = 3.2, {"poems": 4.1}


@dataclass(frozen=True)
class Measured:
    """Shares of steered and unsteered texts that mention the concept, and the loss on the steered texts."""

    mentioned: float
    without: float
    loss: float
    most_loss: float = MOST_LOSS

    @property
    def passes(self) -> bool:
        """Whether the concept may be offered."""
        return self.mentioned >= LEAST_WITH and self.without <= MOST_WITHOUT and self.loss < self.most_loss


def prompts(loaded: LoadedModel) -> Tensor:
    """Return the first tokens of texts the dictionaries were not trained on, (N_TEXTS, PROMPT_TOKENS)."""
    assert loaded.concepts is not None
    ids, eot = loaded.concepts.text.long(), loaded.tokenizer.eot_id
    starts = (ids == eot).nonzero()[:, 0] if eot is not None else torch.arange(0, len(ids), PROMPT_TOKENS)
    return torch.stack([ids[start : start + PROMPT_TOKENS] for start in starts[:N_TEXTS].tolist()])


@torch.inference_mode()
def continuations(loaded: LoadedModel, edits: Edits | None = None) -> Tensor:
    """Sample continuations of the prompts, (N_TEXTS, LENGTH)."""
    model, new = loaded.model, prompts(loaded)
    generator, cache = torch.Generator().manual_seed(SEED), loaded.model.new_cache(len(new))
    written = []
    for _ in range(LENGTH):
        logits = model(new, cache=cache, edits=edits)[:, -1] / TEMPERATURE
        new = torch.multinomial(logits.softmax(-1), 1, generator=generator)
        written.append(new)
    return torch.cat(written, dim=1)


def mentioning(loaded: LoadedModel, written: Tensor, words: Sequence[str]) -> float:
    """Return the share of texts in which a word starts with one of `words`. Chinese words may occur anywhere."""
    beginning = r"\b" if all(word.isascii() for word in words) else ""
    pattern = re.compile(f"{beginning}({'|'.join(map(re.escape, words))})", re.IGNORECASE)
    texts = [loaded.tokenizer.decode(ids[: length_of(loaded, ids)].tolist()) for ids in written]
    return sum(bool(pattern.search(text)) for text in texts) / len(texts)


def length_of(loaded: LoadedModel, ids: Tensor) -> int:
    """Return the number of tokens before end-of-text."""
    ends = (ids == loaded.tokenizer.eot_id).nonzero() if loaded.tokenizer.eot_id is not None else ()
    return int(ends[0]) if len(ends) else len(ids)


@torch.inference_mode()
def loss_of(loaded: LoadedModel, written: Tensor) -> float:
    """Return the unsteered model's mean loss on the texts, in nats per token."""
    idx = torch.cat([prompts(loaded), written], dim=1)
    logits = loaded.model(idx)[:, PROMPT_TOKENS - 1 : -1].float()
    nats = F.cross_entropy(logits.transpose(1, 2), written, reduction="none")
    lengths = torch.tensor([length_of(loaded, ids) for ids in written])
    counted = torch.arange(written.shape[1]) < lengths[:, None]
    return float(nats[counted].mean())


def measure(loaded: LoadedModel, concept: NamedConcept, strength: float | None = None) -> Measured:
    """Measure a concept at a strength, which defaults to its own."""
    assert loaded.concepts is not None
    strength = concept.strength if strength is None else strength
    steering = loaded.concepts.steering(concept.layer, concept.feature, strength or 0.0)
    plain, steered = continuations(loaded), continuations(loaded, Edits(steering=(steering,)))
    shares = (mentioning(loaded, written, concept.words) for written in (steered, plain))
    return Measured(*shares, loss_of(loaded, steered), MOST_LOSS_OF.get(loaded.name, MOST_LOSS))


def main() -> None:
    """Print a table with a row for each named concept that has words."""
    loaded = load_model(sys.argv[1] if len(sys.argv) > 1 else DEFAULT_MODEL)
    assert loaded.concepts is not None, "this model has no concepts"
    print("| concept | feature | strength | steered | unsteered | loss | passes |\n|---|---|---|---|---|---|---|")
    found = [(each, measure(loaded, each)) for each in loaded.concepts.named if each.words and each.strength]
    for each, row in found:
        place = f"{each.layer}.{each.feature}"
        shares = f"{row.mentioned * N_TEXTS:.0f} of {N_TEXTS} | {row.without * N_TEXTS:.0f} of {N_TEXTS}"
        passes = "yes" if row.passes else "no"
        print(
            f"| {each.names['en']} | {place} | {each.strength:g} | {shares} | {row.loss:.2f} | {passes} |", flush=True
        )
    print(f"\n{sum(row.passes for _, row in found)} of {len(found)} pass; {len(loaded.concepts.named)} are named")


if __name__ == "__main__":
    main()
