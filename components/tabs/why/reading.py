"""What the Why tab asks a model about one prediction; small parts of long texts, so that it answers in time."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gpt import GPT, Edits, Generation, GPTConfig, KVCache, LoadedModel, Trace
from gpt.analysis.heads import HeadRoles, head_roles, repeated_random_ids
from gpt.analysis.lens import Lens, logit_lens
from gpt.analysis.saliency import input_x_gradient, leave_one_out_batches
from gpt.analysis.tracing import trace_text
from gpt.inference.products import matrix_numbers

COLUMNS = 16  # positions of the lens at once
AHEAD = 4  # of these stand after the selected one, where the text goes on
CANDIDATES = 10  # tokens that can be asked about
WORK = 1e11  # multiplications for leaving tokens out
FEWEST = 8  # tokens are left out, whatever it costs
GRADIENT_BYTES = 2**29
ROLE_BYTES = 2**26

Method = Literal["gradient", "left_out"]
METHODS: tuple[Method, ...] = ("gradient", "left_out")


@dataclass(frozen=True)
class Prediction:
    """What is asked: why `token` after the token at `position`.

    follows: it is the token that the text goes on with. best: the most likely tokens, best first.
    """

    position: int
    token: int
    probability: float
    rank: int
    follows: bool
    best: tuple[int, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Reading:
    """A document as it was when it was traced: `trace` holds the positions from `first` to before `end`."""

    document: Generation
    ids: tuple[int, ...]
    first: int
    trace: Trace

    @property
    def end(self) -> int:
        """The position after the last traced one."""
        return self.first + self.trace.final_norm.shape[1]

    @property
    def loaded(self) -> LoadedModel:
        """The document's model and tokenizer."""
        return self.document.loaded

    @property
    def model(self) -> GPT:
        """The document's model."""
        return self.document.loaded.model

    def holds(self, document: Generation, position: int) -> bool:
        """Whether that position of the document, as it is now, can be looked at."""
        same = self.document is document and self.ids == tuple(document.ids[: document.n_read])
        return same and self.first <= position < self.end


@dataclass(frozen=True)
class Influence:
    """How much each token speaks for a prediction, in nats: values (N,) of the positions from `first` on."""

    values: np.ndarray
    first: int


def predict(document: Generation, position: int, token: int | None = None) -> Prediction:
    """What the model expects after a position; token None is the one that follows, the best where none does."""
    log_p = document.logits(position).log_softmax(dim=0)
    best = log_p.topk(min(CANDIDATES, len(log_p)))
    follower = document.ids[position + 1] if position + 1 < len(document.ids) else None
    ids = best.indices.tolist()
    token = (ids[0] if follower is None else follower) if token is None else token
    return Prediction(
        position=position,
        token=token,
        probability=log_p[token].exp().item(),
        rank=1 + int((log_p > log_p[token]).sum()),
        follows=token == follower,
        best=tuple(ids),
        probabilities=tuple(best.values.exp().tolist()),
    )


def read(document: Generation, position: int, before: Reading | None = None) -> Reading:
    """Trace what is around a position; what was read before is kept where it holds the position."""
    if before is not None and before.holds(document, position):
        return before
    ids = tuple(document.ids[: document.n_read])
    first = max(0, min(position + 1 + AHEAD, len(ids)) - COLUMNS)
    trace = trace_window(document.loaded.model, ids, first, min(len(ids), first + COLUMNS), document.edits)
    return Reading(document, ids, first, trace)


@torch.inference_mode()
def trace_window(model: GPT, ids: tuple[int, ...], start: int, end: int, edits: Edits | None = None) -> Trace:
    """The activations of positions start..end - 1: those before are read into a cache and leave no trace."""
    idx = torch.tensor([ids[:end]], device=model.device)
    cache = KVCache(model.config, max_length=end, dtype=model.dtype, device=model.device)
    if start:
        model.hidden_states(idx[:, :start], cache=cache, edits=edits)
    trace = Trace()
    model.hidden_states(idx[:, start:], cache=cache, trace=trace, edits=edits)
    return trace


def lens(reading: Reading, token: int) -> Lens:
    """What every layer would predict at the traced positions; chosen: that token."""
    return logit_lens(reading.model, reading.trace, chosen=token)


def longest_gradient(config: GPTConfig) -> int:
    """For how many tokens the way back through the model fits into memory."""
    per_token = 4 * config.n_layer * (12 * config.n_embd + 3 * config.ff_size)
    return GRADIENT_BYTES // per_token


def gradient(reading: Reading, prediction: Prediction) -> Influence | None:
    """Input x gradient of every token up to the position; None where the text is too long for it."""
    ids = reading.ids[: prediction.position + 1]
    if len(ids) > longest_gradient(reading.model.config):
        return None
    return Influence(input_x_gradient(reading.model, ids, prediction.token).float().cpu().numpy(), 0)


def left_out(reading: Reading, prediction: Prediction) -> Generator[tuple[int, int], None, Influence | None]:
    """Leave out one token after the other, only the last ones of a long text.

    Yields (tokens done, tokens in all); returns None for a text of one token.
    """
    ids = reading.ids[: prediction.position + 1]
    if len(ids) < 2:
        return None
    # What follows a gap is read again: of n gaps, n / 2 tokens on average.
    count = min(len(ids), max(FEWEST, int((2 * WORK / matrix_numbers(reading.model)) ** 0.5)))
    places = range(len(ids) - count, len(ids))
    values: list[Tensor] = []
    for several in leave_one_out_batches(reading.model, ids, prediction.token, places):
        values.append(several)
        yield sum(map(len, values)), count
    return Influence(torch.cat(values).float().cpu().numpy(), places[0])


def roles_of_text(reading: Reading) -> tuple[HeadRoles, int]:
    """The roles of all heads on the text, on its first tokens where it is long; and how many tokens that were."""
    ids = reading.ids[: longest_roles(reading.model.config)]
    return head_roles(trace_text(reading.model, ids, reading.document.edits), ids), len(ids)


def roles_of_noise(reading: Reading) -> tuple[HeadRoles, int]:
    """The same on random tokens that come twice, always the same ones."""
    config, eot_id = reading.model.config, reading.loaded.tokenizer.eot_id
    length = min(50, longest_roles(config) // 2)
    ids = repeated_random_ids(config, torch.Generator().manual_seed(0), length=length, start=eot_id)
    return head_roles(trace_text(reading.model, ids, reading.document.edits), ids), len(ids)


def longest_roles(config: GPTConfig) -> int:
    """For how many tokens all attention weights together fit into memory."""
    return max(2, int((ROLE_BYTES / (4 * config.n_layer * config.n_head)) ** 0.5))
