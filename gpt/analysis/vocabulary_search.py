"""Search a vocabulary by text or id."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.sampling import rank_of
from gpt.tokenizer import Vocabulary


@dataclass(frozen=True)
class VocabularyMatch:
    """A matching token. text: its text, with U+FFFD for undecodable bytes. probability, rank: under the softmax."""

    token_id: int
    text: str
    probability: float
    rank: int


def search_vocabulary(vocabulary: Vocabulary, logits: Tensor, query: str, *, limit: int = 20) -> list[VocabularyMatch]:
    """Find tokens whose text contains the query, ignoring case. A number also finds the token with that id.

    logits: (vocab_size,). Sort order: the id, exact matches, matches up to surrounding whitespace, and all others by
    descending probability.
    """
    texts = [vocabulary.token_bytes(token_id).decode("utf-8", "replace") for token_id in range(vocabulary.n_vocab)]
    wanted = query.lower()
    ids = [token_id for token_id, text in enumerate(texts) if wanted in text.lower()] if wanted else []
    number = int(query) if query.isascii() and query.isdecimal() and len(query) < 10 else None
    if number is not None and number < len(texts) and number not in ids:
        ids.append(number)
    scores = logits.detach().to("cpu", torch.float32)
    values = scores.tolist()

    def order(token_id: int) -> tuple[bool, int, float, int]:
        exact = 0 if texts[token_id] == query else 1 if texts[token_id].strip() == query.strip() else 2
        return token_id != number, exact, -values[token_id], token_id

    p = scores.double().softmax(dim=0)
    found = sorted(ids, key=order)[:limit]
    ranks = [int(rank_of(scores, torch.tensor([token_id]))) for token_id in found]
    return [VocabularyMatch(i, texts[i], p[i].item(), rank) for i, rank in zip(found, ranks, strict=True)]
