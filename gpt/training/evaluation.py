"""Measure a model's loss on texts and stories, in nats per token and bits per byte, and sample texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from gpt.analysis.predictions import TokenStatistics, text_statistics
from gpt.background import Progress
from gpt.errors import check_integer, require
from gpt.generate import generate
from gpt.model import GPT
from gpt.models.checkpoints.layouts import SCALES
from gpt.models.loading import LoadedModel
from gpt.models.registry import folder_of
from gpt.models.sources import load_model
from gpt.sampling import SamplingParams
from gpt.tokenizer import Vocabulary, prompt_ids

TOP_K = 3


@dataclass(frozen=True)
class Score:
    """Totals over several texts: -log p of all tokens in nats, and the numbers of tokens and UTF-8 bytes."""

    nats: float
    n_tokens: int
    n_bytes: int

    @property
    def loss(self) -> float:
        return self.nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        """Perplexity, exp(loss): a uniform choice among this many tokens has the same loss."""
        return math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float:
        """Loss in bits per UTF-8 byte, which allows comparing models with different vocabularies."""
        return self.nats / math.log(2) / self.n_bytes


def windows(ids: list[int], block_size: int, stride: int) -> list[tuple[list[int], list[int]]]:
    """Split a text into windows (inputs, targets). Every id except the first is a target in exactly one window.

    All other targets are -100. Windows have block_size ids and start `stride` ids apart, so every target is preceded by
    at least block_size - stride ids, or by the whole text before it.
    """
    pairs, end = [], 1  # end of the last window's targets
    for start in range(0, len(ids), stride):
        targets, n_known = ids[start + 1 : start + block_size + 1], end - start - 1
        if len(targets) > n_known:
            pairs.append((ids[start : start + len(targets)], [-100] * n_known + targets[n_known:]))
            end = start + 1 + len(targets)
    return pairs


@torch.inference_mode()
def score_stories(model: GPT, tokenizer: Vocabulary, stories: list[str], *, batch_size: int = 16) -> Score:
    """Score each story separately, after an end-of-text token or, if there is none, from the second token on.

    Skips characters that the vocabulary lacks. The model must be in evaluation mode.
    """
    start = [] if tokenizer.eot_id is None else [tokenizer.eot_id]
    documents = [[*start, *tokenizer.encode(story)] for story in stories]
    unknown, block_size = tokenizer.unknown_id, model.config.block_size
    pairs = [pair for ids in documents for pair in windows(ids, block_size, max(1, block_size // 2))]
    pairs = [(inputs, [-100 if target == unknown else target for target in targets]) for inputs, targets in pairs]
    pairs.sort(key=lambda pair: len(pair[0]))  # similar lengths in a batch need little padding
    nats = 0.0
    for at in range(0, len(pairs), batch_size):
        batch = pairs[at : at + batch_size]
        inputs = pad_sequence([torch.tensor(ids, device=model.device) for ids, _ in batch], batch_first=True)
        targets = pad_sequence([torch.tensor(ids, device=model.device) for _, ids in batch], True, -100).flatten()
        logits = model(inputs).flatten(0, 1).float()  # (batch x width, vocab_size)
        nats += F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum").item()
    scored = [token_id for ids in documents for token_id in ids[1:] if token_id != unknown]
    return Score(nats, len(scored), sum(len(tokenizer.token_bytes(token_id)) for token_id in scored))


def sample(loaded: LoadedModel, prompt: str, *, seed: int = 0, max_new_tokens: int, temperature: float = 0.8) -> str:
    """Return a continuation of the prompt. Both together may exceed the context."""
    params = SamplingParams(temperature=temperature, seed=seed)
    return "".join(step.text for step in generate(loaded, prompt, params, max_new_tokens, on_full="crop"))


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
    require(len(ids) >= 2, "experiment.loss_too_short", n=len(ids))
    pairs = windows(list(ids), max_stride, stride)  # the last token of a window is a target only
    losses: list[TokenStatistics] = []
    for done, (inputs, targets) in enumerate(pairs, start=1):
        n_known = targets.count(-100)  # scored in earlier windows
        with torch.inference_mode():
            states = loaded.model.hidden_states(torch.tensor([inputs], device=loaded.model.device))[0, n_known:]
        losses += text_statistics(loaded.model, states, targets[n_known:], TOP_K).tokens
        progress(done, len(pairs))
    n_bytes = sum(len(loaded.tokenizer.token_bytes(token_id)) for token_id in ids[1:])
    score = Score(math.fsum(loss.nats for loss in losses), len(losses), n_bytes)
    return TextScore(tuple(ids), tuple(losses), score, stride, len(pairs))


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
