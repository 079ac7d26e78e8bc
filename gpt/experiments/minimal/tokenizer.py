"""Byte-pair encoding with a vocabulary that has already been learned."""

from itertools import pairwise

import regex

WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Tokenizer:
    """ranks: {bytes of a token: id}. Tokens with smaller ids were learned earlier."""

    def __init__(self, ranks: dict[bytes, int]) -> None:
        self.ranks = ranks
        self.tokens = {token_id: token for token, token_id in ranks.items()}

    def encode(self, text: str) -> list[int]:
        words = regex.findall(WORDS, text)  # tokens never cross words
        return [token_id for word in words for token_id in self.encode_word(word.encode())]

    def encode_word(self, word: bytes) -> list[int]:
        parts = [bytes([byte]) for byte in word]
        while True:
            pairs = [a + b for a, b in pairwise(parts) if a + b in self.ranks]
            if not pairs:
                return [self.ranks[part] for part in parts]
            best = min(pairs, key=self.ranks.__getitem__)  # learned first
            i = next(i for i in range(len(parts)) if parts[i] + parts[i + 1] == best)
            parts[i : i + 2] = [best]

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.tokens[i] for i in ids).decode("utf-8", "replace")
