"""Prepare regulated Chinese poems for training: python -m tools.poems POEMS OUT

POEMS contains poems, each followed by an <|endoftext|> line. A poem has its title, if any, on the first line, then one
couplet per line. The command writes the poems for `gpt.training` to OUT. Titles are put in 《》, which distinguishes
them from verses and lets a prompt ask for a title. A fifth of the poems lose their title, so that the model can also
continue a first line. Of poems that share at least half their verses, only the first is kept.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpt.tokenizer import END_OF_TEXT
from gpt.training.data import read_stories

VERSE_END = re.compile("[，。？；]")
UNTITLED = 0.2  # fraction of the titled poems that lose their title


@dataclass(frozen=True)
class Poem:
    """A poem: its title, or "" if it has none, and its lines, one couplet per line."""

    title: str
    couplets: tuple[str, ...]

    @classmethod
    def of_text(cls, text: str) -> Poem:
        """Parse a poem. Its title, if any, is in 《》 or has no punctuation mark."""
        first, *rest = text.strip().split("\n")
        if VERSE_END.search(first):
            return cls("", (first, *rest))
        return cls(first.removeprefix("《").removesuffix("》"), tuple(rest))

    @property
    def text(self) -> str:
        """The poem in the format used for training."""
        return "\n".join([f"《{self.title}》", *self.couplets] if self.title else self.couplets)

    @property
    def verses(self) -> list[str]:
        """The poem's verses, without their final punctuation marks. Omits a last verse that lacks such a mark."""
        return [verse.strip() for verse in VERSE_END.split("\n".join(self.couplets))[:-1]]

    @property
    def is_regulated(self) -> bool:
        """Whether the poem has four or eight verses in couplets, all with five or all with seven characters."""
        lengths = set(map(len, self.verses))
        whole = all(len(VERSE_END.findall(line)) == 2 and VERSE_END.fullmatch(line[-1]) for line in self.couplets)
        return whole and len(self.verses) in (4, 8) and lengths in ({5}, {7})


def distinct(poems: Iterable[Poem]) -> Iterator[Poem]:
    """Yield the poems, except those that share at least half their verses with earlier poems."""
    seen: set[str] = set()
    for poem in poems:
        if sum(verse in seen for verse in poem.verses) * 2 < len(poem.verses):
            yield poem
        seen.update(poem.verses)


def prepared(poems: Iterable[Poem], seed: int = 0) -> Iterator[str]:
    """Yield the distinct poems as training texts. A fraction UNTITLED of the poems lose their title."""
    rng = np.random.default_rng(seed)
    for poem in distinct(poems):
        yield Poem("" if rng.random() < UNTITLED else poem.title, poem.couplets).text


def write_prepared(source: Path | str, target: Path | str) -> None:
    """Prepare the poems in `source` for training and write them to `target`."""
    texts = list(prepared(map(Poem.of_text, read_stories(source))))
    Path(target).write_text("".join(f"{text}\n{END_OF_TEXT}\n" for text in texts), encoding="utf-8")
    print(f"{target}: {len(texts):,} poems")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("poems", metavar="POEMS")
    parser.add_argument("out", metavar="OUT")
    options = parser.parse_args()
    write_prepared(options.poems, options.out)
