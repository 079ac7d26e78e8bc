"""Find the heads of a poem model that count characters, attend to the character above, and look for the rhyme.

    python -m benchmarks.poem_heads POEMS --model FOLDER [--poems 48]

Also measures how generated poems change when a head is switched off. POEMS is the model's training file (see
`python -m tools.poems`). The model reads held-out poems with eight verses of five characters, without titles, so
that positions match across poems. Install pypinyin with `pip install -r benchmarks/requirements.txt`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from benchmarks.poems import mean, rhyme, rhyming, written
from gpt import Edits, LoadedModel, Trace, load_model
from gpt.training.data import read_stories, split_stories
from gpt.training.recipe import RECIPE_PRESETS
from tools.poems import Poem

VERSE, VERSES = 5, 8
LINE = 2 * VERSE + 3  # two verses, their punctuation and a line feed
BEST = 2  # number of heads listed for each criterion


@dataclass(frozen=True)
class Places:
    """Positions of characters in a poem that follows the end-of-text token.

    marks: Punctuation at the end of the verses.
    above: Pairs of a character in a second verse and the character above it in the first verse.
    ends: Rhyming characters at the end of even-numbered verses.
    """

    marks: list[int]
    above: list[tuple[int, int]]
    ends: list[int]

    @classmethod
    def of_form(cls) -> Places:
        starts = [1 + LINE * line + (VERSE + 1) * second for line in range(VERSES // 2) for second in (0, 1)]
        above = [(b + i, a + i) for a, b in zip(starts[::2], starts[1::2], strict=True) for i in range(VERSE)]
        return cls([start + VERSE for start in starts], above, [start + VERSE - 1 for start in starts[1::2]])


def read_poems(loaded: LoadedModel, texts: Iterable[str], n: int) -> Tensor:
    """Return the ids of n regulated poems of VERSES verses, each after an end-of-text token, (n, T)."""
    poems = (Poem("", Poem.of_text(text).couplets) for text in texts)
    formed = [poem for poem in poems if poem.is_regulated and [len(v) for v in poem.verses] == [VERSE] * VERSES]
    encode, first = loaded.tokenizer.encode, loaded.tokenizer.eot_id
    return torch.tensor([[first, *encode(poem.text)] for poem in formed[:n]])


class Measures:
    """Metrics for predictions, each a function of logits (n, T, vocab_size)."""

    def __init__(self, loaded: LoadedModel, ids: Tensor) -> None:
        self.ids, self.places = ids, Places.of_form()
        tokens = [loaded.tokenizer.decode([i]) for i in range(loaded.tokenizer.n_vocab)]
        groups = [rhyme(token) if len(token) == 1 and token.isalpha() else None for token in tokens]
        self.groups = torch.tensor([-1 if group is None else group for group in groups])

    def counting(self, logits: Tensor) -> float:
        """Return the mean probability of the punctuation that ends a verse."""
        return self._probability(logits, self.places.marks)

    def parallel(self, logits: Tensor) -> float:
        """Return the mean loss on the characters in second verses, in nats."""
        at = [position for position, _ in self.places.above]
        log_p = logits[:, [p - 1 for p in at]].log_softmax(-1)
        return -log_p.gather(-1, self.ids[:, at, None]).mean().item()

    def rhyming(self, logits: Tensor) -> float:
        """Return the mean probability, at the three later rhymes, of characters that rhyme with the first."""
        first, *others = self.places.ends
        p = logits[:, [at - 1 for at in others]].softmax(-1)
        wanted = self.groups[self.ids[:, first]]
        return (p * (self.groups == wanted[:, None])[:, None]).sum(-1)[wanted >= 0].mean().item()

    def all(self, logits: Tensor) -> tuple[float, float, float]:
        return self.counting(logits), self.parallel(logits), self.rhyming(logits)

    def _probability(self, logits: Tensor, at: list[int]) -> float:
        p = logits[:, [position - 1 for position in at]].softmax(-1)
        return p.gather(-1, self.ids[:, at, None]).mean().item()


def attention(trace: Trace, pairs: list[tuple[int, int]]) -> Tensor:
    """Return the mean attention weight over pairs of query and key positions, (n_layer, n_head)."""
    queries, keys = map(list, zip(*pairs, strict=True))
    return torch.stack([layer.attn_weights[:, :, queries, keys].mean(dim=(0, 2)) for layer in trace.layers])


Head = tuple[int, int]  # layer, head


def found(weights: Tensor, left: dict[Head, float], whole: float) -> list[Head]:
    """Return the heads whose removal changes a metric most, and the heads with the largest weights."""
    changed = sorted(left, key=lambda head: abs(left[head] - whole), reverse=True)[:BEST]
    look = sorted(left, key=lambda head: float(weights[head]), reverse=True)[:BEST]
    return list(dict.fromkeys(changed + look))


def form_of(poems: list[Poem]) -> tuple[float, float]:
    """Return the share of regulated poems, and the share of even-numbered verses in them that rhyme."""
    regular = [poem for poem in poems if poem.is_regulated]
    return len(regular) / len(poems), mean([rhyming(poem) for poem in regular])


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", metavar="POEMS")
    parser.add_argument("--model", required=True, metavar="FOLDER")
    parser.add_argument(
        "--poems", type=int, default=48, help="number of poems to read, and to generate without each head"
    )
    options = parser.parse_args()
    loaded, recipe = load_model(options.model), RECIPE_PRESETS["poems"]
    _, held_back = split_stories(read_stories(options.text), recipe.held_back, recipe.seed)
    ids, trace = read_poems(loaded, held_back, options.poems), Trace()
    measures, config = Measures(loaded, ids), loaded.model.config
    places, heads = measures.places, product(range(config.n_layer), range(config.n_head))
    whole = measures.all(loaded.model(ids, trace=trace))
    left = {head: measures.all(loaded.model(ids, edits=Edits(head_scale={head: 0.0}))) for head in heads}
    wanted = {  # (query, key) positions; the query is one position before the predicted character
        "probability of punctuation": [(mark - 1, mark - 1 - VERSE) for mark in places.marks[1:]],
        "loss of second verses": [(second - 1, first) for second, first in places.above],
        "probability of a rhyme": [(b - 1, a) for b in places.ends for a in places.ends if a < b],
    }
    print(
        f"{len(ids)} poems read, {options.poems} generated per head. Heads should attend to the previous punctuation, "
        "the character above, or earlier rhymes."
    )
    print("| measure | head | attention there | all heads | without it | regulated without it | rhyming without it |")
    print("|---|---|---|---|---|---|---|")
    for i, (name, pairs) in enumerate(wanted.items()):
        weights = attention(trace, pairs)
        for head in found(weights, {head: values[i] for head, values in left.items()}, whole[i]):
            form, rhymes = form_of(written(loaded, options.poems, 0.8, Edits(head_scale={head: 0.0})))
            numbers = f"{weights[head]:.2f} | {whole[i]:.2f} | {left[head][i]:.2f} | {form:.0%} | {rhymes:.0%}"
            print(f"| {name} | {head[0]}, {head[1]} | {numbers} |")


if __name__ == "__main__":
    main()
