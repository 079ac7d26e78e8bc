"""Learn a vocabulary by repeatedly merging the most frequent pair of neighbours."""

from collections import Counter
from itertools import pairwise


class Merges:
    """Starts with the 256 bytes; each round adds one token."""

    def __init__(self, words: list[str]) -> None:
        self.words = [[bytes([byte]) for byte in word.encode()] for word in words]
        self.ranks = {bytes([byte]): byte for byte in range(256)}

    def learn(self) -> bytes | None:
        counts = Counter(pair for parts in self.words for pair in pairwise(parts))
        if not counts:
            return None  # every word is one token
        (a, b), _ = counts.most_common(1)[0]
        self.ranks.setdefault(a + b, len(self.ranks))
        self.words = [self.merge(parts, a, b) for parts in self.words]
        return a + b

    def merge(self, parts: list[bytes], a: bytes, b: bytes) -> list[bytes]:
        merged: list[bytes] = []
        for part in parts:
            if merged and (merged[-1], part) == (a, b):
                merged[-1] = a + b
            else:
                merged.append(part)
        return merged
