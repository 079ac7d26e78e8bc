"""Compare a model's poems with its corpus: form, rhyme, tones, paired numerals and copied verses.

    python -m benchmarks.poems POEMS --model FOLDER [--poems 500]

POEMS is the model's training file (see `python -m tools.poems`). The model writes its poems without a prompt, at
temperature 0.8. Rhyme and tones follow modern Mandarin, which has lost the entering tone, so the figures are useful
for comparisons but say little about a single verse. Install pypinyin with
`pip install -r benchmarks/requirements.txt`.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from pypinyin import Style, pinyin

from gpt import Edits, LoadedModel, SamplingParams, generate, load_model
from gpt.tokenizer import plain_text
from gpt.training.data import read_stories, split_stories
from gpt.training.evaluation import score_stories
from gpt.training.recipe import RECIPE_PRESETS
from tools.poems import Poem

AT_ONCE, MAX_TOKENS = 32, 100
# The fourteen rhyme groups of 中华新韵 (2005), given by their pinyin finals.
RHYMES = (
    *("a ia ua", "o e uo", "ie ve", "ai uai", "ei uei", "ao iao", "ou iou", "an ian uan van", "en in uen vn"),
    *("ang iang uang", "eng ing ueng ong iong", "i er v", "-i", "u"),
)
GROUP = {final: number for number, finals in enumerate(RHYMES) for final in finals.split()}
NUMERALS = frozenset("一二两三四五六七八九十百千万双孤独半")


def rhyme(character: str) -> int | None:
    """Return the index of a character's rhyme group in RHYMES, or None if it has no reading."""
    final = pinyin(character, style=Style.FINALS, strict=True)[0][0]
    initial = pinyin(character, style=Style.INITIALS, strict=False)[0][0]
    if final == "i" and initial in {"zh", "ch", "sh", "r", "z", "c", "s"}:
        final = "-i"
    return GROUP.get(final)


def is_level(character: str) -> bool:
    """Return whether a character has the first or second tone in modern Mandarin."""
    return pinyin(character, style=Style.TONE3, neutral_tone_with_five=True)[0][0][-1:] in {"1", "2"}


def rhyming(poem: Poem) -> float:
    """Return the fraction of even-numbered verses that end in the most common rhyme among them."""
    ends = Counter(rhyme(verse[-1]) for verse in poem.verses[1::2])
    return ends.most_common(1)[0][1] / ends.total()


def couplets(poem: Poem) -> list[tuple[str, str]]:
    """Return the pairs of verses that should be parallel: verses 3 to 6 of an eight-verse poem, otherwise none."""
    pairs = list(pairwise(poem.verses))[::2]
    return pairs[1:3] if len(poem.verses) == 8 else []


def mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values) if values else math.nan


def row(name: str, poems: Sequence[Poem], known: frozenset[str]) -> str:
    """Return a table row with the figures for these poems. known: the verses of the training poems."""
    regular = [poem for poem in poems if poem.is_regulated]
    pairs = [pair for poem in regular for pair in couplets(poem)]
    tones = [is_level(a[i]) != is_level(b[i]) for a, b in pairs for i in range(1, len(a), 2)]
    numerals = [
        (a in NUMERALS) == (b in NUMERALS) for pair in pairs for a, b in zip(*pair, strict=True) if {a, b} & NUMERALS
    ]
    verses = [verse for poem in poems for verse in poem.verses]
    figures = (
        mean([poem.is_regulated for poem in poems]),
        mean([rhyming(poem) for poem in regular]),
        mean(tones),
        mean(numerals),
        mean([verse in known for verse in verses]),
    )
    return f"| {name} | {len(poems):,} | " + " | ".join(f"{figure:.1%}" for figure in figures) + " |"


def shuffled(poems: Sequence[Poem]) -> list[Poem]:
    """Return poems of the same forms, with each verse drawn at random from all verses of its length."""
    rng, verses = random.Random(0), defaultdict[int, list[str]](list)
    for poem in poems:
        for verse in poem.verses:
            verses[len(verse)].append(verse)
    drawn = [[rng.choice(verses[len(verse)]) for verse in poem.verses] for poem in poems]
    return [Poem("", tuple(f"{a}，{b}。" for a, b in zip(each[::2], each[1::2], strict=False))) for each in drawn]


def written(loaded: LoadedModel, n: int, temperature: float, edits: Edits | None = None) -> list[Poem]:
    """Generate poems without a prompt, with seeds 0 to n - 1."""

    def poem(seed: int) -> Poem:
        steps = generate(loaded, "", SamplingParams(temperature=temperature, seed=seed), MAX_TOKENS, edits=edits)
        return Poem.of_text(plain_text(loaded.tokenizer, [step.token_id for step in steps]))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(poem, range(n)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", metavar="POEMS")
    parser.add_argument("--model", required=True, metavar="FOLDER")
    parser.add_argument("--poems", type=int, default=500)
    parser.add_argument("--temperature", type=float, default=0.8)
    options = parser.parse_args()
    loaded = load_model(options.model)
    recipe = RECIPE_PRESETS["poems"]
    training, held_back = split_stories(read_stories(options.text), recipe.held_back, recipe.seed)
    score = score_stories(loaded.model, loaded.tokenizer, held_back)
    print(f"{len(held_back):,} held-out poems: {score.loss / math.log(2):.3f} bits per character of the vocabulary")
    known = frozenset(verse for text in training for verse in Poem.of_text(text).verses)
    print("| poems | number | regulated | even verses rhyme | tones opposed | numerals paired | verses copied |")
    print("|---|---|---|---|---|---|---|")
    poems = [Poem.of_text(text) for text in held_back]
    print(row("held out", poems, known))
    print(row("held out, verses shuffled", shuffled(poems), known))
    print(row("generated", written(loaded, options.poems, options.temperature), known))


if __name__ == "__main__":
    main()
