"""How surprised a model is by a text: -log p of each token, its rank, and what was expected in its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gpt.checks import check_integer
from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.training.evaluation import Score, windows

EXPECTED = 3  # best tokens that are kept for each position
ROWS = 128  # positions whose logits are in memory at once


@dataclass(frozen=True)
class Surprise:
    """What the model made of one token: -log p in nats, its rank (1 = best), and the best ids with their p."""

    nats: float
    rank: int
    expected: tuple[tuple[int, float], ...]

    @property
    def bits(self) -> float:
        """Surprisal, -log2 p."""
        return self.nats / math.log(2)


@dataclass(frozen=True)
class TextScore:
    """A text that was read: its ids, and a Surprise for each but the first, which nothing stands before.

    stride: how far each window moved on. n_windows: how many it took; 1 where the text fits the context.
    """

    ids: tuple[int, ...]
    surprises: tuple[Surprise, ...]
    score: Score
    stride: int
    n_windows: int


def score_text(loaded: LoadedModel, ids: Sequence[int], *, stride: int | None = None) -> TextScore:
    """Cross-entropy, perplexity, bits per byte, and the surprise of each token after the first.

    A text longer than the context is read in windows of one context, each `stride` tokens after the one before;
    a token counts in the first window that holds it, so it is predicted from at least block_size - stride others,
    as in Hugging Face's guide "Perplexity of fixed-length models". stride: 1..block_size - 1, None is half a context.
    Bytes are those of the tokens that count. Raises ValueError for fewer than two tokens and for another stride.
    """
    parts = list(read_windows(loaded, ids, stride=stride))
    return collect(loaded, ids, parts, stride)


def collect(
    loaded: LoadedModel, ids: Sequence[int], parts: Sequence[Sequence[Surprise]], stride: int | None = None
) -> TextScore:
    """What `read_windows` gave of the same text and stride, all of it, as one result."""
    surprises = tuple(surprise for part in parts for surprise in part)
    n_bytes = sum(len(loaded.tokenizer.token_bytes(token_id)) for token_id in ids[1:])
    score = Score(math.fsum(surprise.nats for surprise in surprises), len(surprises), n_bytes)
    return TextScore(tuple(ids), surprises, score, checked_stride(loaded, stride), len(parts))


def read_windows(loaded: LoadedModel, ids: Sequence[int], *, stride: int | None = None) -> Iterator[list[Surprise]]:
    """The same piece by piece: per window the surprises of the tokens that count in it. Bad arguments raise at once."""
    stride = checked_stride(loaded, stride)
    if len(ids) < 2:
        raise GPTError("experiment.loss_too_short", n=len(ids))
    length = max(1, loaded.model.config.block_size - 1)  # the last token of a window is only a target
    return (_read(loaded, inputs, targets) for inputs, targets in windows(list(ids), length, stride))


def count_windows(n_tokens: int, block_size: int, stride: int) -> int:
    """How many windows a text of at least two tokens takes."""
    return 1 + max(0, math.ceil((n_tokens - max(2, block_size)) / stride))


def checked_stride(loaded: LoadedModel, stride: int | None) -> int:
    """The stride, or half a context for None. Raises ValueError for one that would leave tokens out."""
    block_size = loaded.model.config.block_size
    if stride is None:
        return max(1, block_size // 2)
    check_integer("stride", stride, 1, max(1, block_size - 1))
    return stride


@torch.inference_mode()
def _read(loaded: LoadedModel, inputs: list[int], targets: list[int]) -> list[Surprise]:
    """One window; targets of -100 stand first and do not count."""
    model, known = loaded.model, targets.count(-100)
    device = model.device
    hidden = model.hidden_states(torch.tensor([inputs], device=device))[0, known:]  # (n, C)
    wanted = torch.tensor(targets[known:], device=device)[:, None]  # (n, 1)
    surprises: list[Surprise] = []
    for rows, ids in zip(hidden.split(ROWS), wanted.split(ROWS), strict=True):
        logits = model.lm_head(rows).float()  # (rows, vocab_size)
        scores, total = logits.gather(1, ids), logits.logsumexp(dim=1, keepdim=True)
        nats, ranks = (total - scores)[:, 0].tolist(), (1 + (logits > scores).sum(dim=1)).tolist()
        best = logits.topk(min(EXPECTED, logits.shape[1]), dim=1)
        shares = (best.values - total).exp().tolist()
        for row in zip(nats, ranks, best.indices.tolist(), shares, strict=True):
            surprises.append(Surprise(row[0], row[1], tuple(zip(row[2], row[3], strict=True))))
    return surprises
