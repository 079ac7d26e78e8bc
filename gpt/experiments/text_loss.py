"""The loss on a text, and each token's probability, rank and most likely alternatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from gpt.analysis.predictions import TokenStatistics, text_statistics
from gpt.background import Progress
from gpt.checks import check_integer
from gpt.errors import GPTError
from gpt.models.checkpoints import SCALES
from gpt.models.loading import LoadedModel
from gpt.models.registry import folder_of
from gpt.models.sources import load_model
from gpt.tokenizer import prompt_ids
from gpt.training.evaluation import Score, windows

TOP_K = 3


@dataclass(frozen=True)
class TextScore:
    """The ids of a text, the loss on every id except the first, and the totals.

    stride: tokens between the starts of consecutive windows. n_windows: 1 if the text fits the context.
    """

    ids: tuple[int, ...]
    losses: tuple[TokenStatistics, ...]
    score: Score
    stride: int
    n_windows: int


def score_text(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    stride: int | None = None,
    progress: Progress = lambda done, total: None,
) -> TextScore:
    """Compute cross-entropy, perplexity and bits per byte for a text, and the loss on each token after the first.

    A text longer than the context is read in windows of one context that start `stride` tokens apart. Each token is
    scored in the first window that contains it, so at least block_size - stride tokens precede it, as in Hugging Face's
    guide "Perplexity of fixed-length models". Bits per byte count only the bytes of the scored tokens.
    stride: 1 to block_size - 1; defaults to half a context. progress: called with (windows done, total windows).
    Raises ValueError for fewer than two tokens or an invalid stride.
    """
    block_size = loaded.model.config.block_size
    max_stride = max(1, block_size - 1)
    stride = max(1, block_size // 2) if stride is None else stride
    check_integer("stride", stride, 1, max_stride)
    if len(ids) < 2:
        raise GPTError("experiment.loss_too_short", n=len(ids))
    pairs = windows(list(ids), max_stride, stride)  # the last token of a window is a target only
    losses: list[TokenStatistics] = []
    for done, (inputs, targets) in enumerate(pairs, start=1):
        losses += token_losses(loaded, inputs, targets)
        progress(done, len(pairs))
    n_bytes = sum(len(loaded.tokenizer.token_bytes(token_id)) for token_id in ids[1:])
    score = Score(math.fsum(loss.nats for loss in losses), len(losses), n_bytes)
    return TextScore(tuple(ids), tuple(losses), score, stride, len(pairs))


@torch.inference_mode()
def token_losses(loaded: LoadedModel, inputs: list[int], targets: list[int]) -> tuple[TokenStatistics, ...]:
    """Return statistics for the targets of one window. Omits targets of -100, which come first."""
    model, n_known = loaded.model, targets.count(-100)
    states = model.hidden_states(torch.tensor([inputs], device=model.device))[0, n_known:]  # (n, C)
    return text_statistics(model, states, targets[n_known:], TOP_K).tokens


def losses_by_scale(files: Sequence[str | Path], text: str) -> dict[str, float]:
    """Return the mean loss on a text, in nats per token, for each of SCALES.

    The lowest loss indicates the scale used in training. files: the weights and the files next to them. text: a text
    similar to the training data. Raises ValueError if it has fewer than two tokens, or the files cannot be read.
    """
    losses = {}
    with folder_of(files) as folder:
        for scale in SCALES:
            loaded = load_model(folder, device="cpu", attn_scale=scale)  # type: ignore[arg-type]
            losses[scale] = score_text(loaded, prompt_ids(loaded.tokenizer, text)).score.loss
    return losses
