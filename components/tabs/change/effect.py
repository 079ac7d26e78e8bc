"""What edits do to a text: both models read the same tokens, and their predictions are compared at each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gpt import Edits, Generation, GPTConfig, LoadedModel
from gpt.analysis.predictions import kl_bits, kl_bits_from
from gpt.analysis.text_statistics import text_statistics
from gpt.analysis.tracing import hidden_states_from, trace_text
from gpt.background import Progress

COST_TOKENS = 96  # of a long text, from its beginning: one pass for each head


@dataclass(frozen=True)
class Text:
    """A text as the original model has read it; nothing in it changes, whatever becomes of the document.

    ids: all of it; the model has read the first n_read. states: (n_read, C), after the last norm.
    """

    loaded: LoadedModel
    ids: tuple[int, ...]
    n_prompt: int
    states: Tensor

    @property
    def n_read(self) -> int:
        return len(self.states)

    @property
    def config(self) -> GPTConfig:
        return self.loaded.model.config


def text_of(document: Generation) -> Text:
    """A copy of what was read of a document; where that was an edited model, the original reads it here."""
    states = document.states().clone()
    ids = tuple(document.ids)
    if document.edits is not None and document.edits != Edits():
        states = read(document.loaded, ids[: len(states)])
    return Text(document.loaded, ids, document.n_prompt, states)


def text_of_ids(loaded: LoadedModel, ids: list[int]) -> Text:
    """A prompt, read here."""
    return Text(loaded, tuple(ids), len(ids), read(loaded, ids))


@torch.inference_mode()
def read(loaded: LoadedModel, ids: list[int] | tuple[int, ...], edits: Edits | None = None) -> Tensor:
    """(T, C): the final-norm states of one pass."""
    idx = torch.tensor([list(ids)], device=loaded.model.device)
    return loaded.model.hidden_states(idx, edits=edits)[0]


@dataclass(frozen=True)
class Effect:
    """What the edits change, where both models read the text of the original.

    states: (n_read, C), of the edited model. bits: (n_read,), Kullback-Leibler divergence of its predictions from
    the original's. before, after: bits a token that the text itself costs either model; NaN for one token.
    """

    text: Text
    edits: Edits
    states: Tensor
    bits: np.ndarray
    before: float
    after: float

    def probabilities(self, position: int) -> tuple[Tensor, Tensor]:
        """(vocab_size,) each: what may follow the token at a position, by the original and by the edited model."""
        head = self.text.loaded.model.lm_head
        with torch.inference_mode():
            original, edited = (
                head(states[position]).float().softmax(dim=0).cpu() for states in (self.text.states, self.states)
            )
        return original, edited


def measure(text: Text, edits: Edits) -> Effect:
    """One pass of the edited model over the text. Raises ValueError for edits that the model cannot take."""
    model, following = text.loaded.model, text.ids[1 : text.n_read + 1]

    def cost(states: Tensor) -> float:
        return text_statistics(model, states[: len(following)], following).mean_surprisal

    before = cost(text.states)
    if edits == Edits():
        return Effect(text, edits, text.states, np.zeros(text.n_read, dtype=np.float32), before, before)
    states = read(text.loaded, text.ids[: text.n_read], edits)
    return Effect(text, edits, states, kl_bits(model, text.states, states).cpu().numpy(), before, cost(states))


def measured_tokens(text: Text | None) -> int:
    """How many tokens of a text `head_costs` reads."""
    return 0 if text is None else min(COST_TOKENS, text.n_read)


@torch.inference_mode()
def head_costs(text: Text, progress: Progress) -> np.ndarray:
    """(n_layer, n_head): bits that switching each head off, alone, changes, on average over the first COST_TOKENS."""
    model, config, n = text.loaded.model, text.config, measured_tokens(text)
    costs = np.zeros((config.n_layer, config.n_head), dtype=np.float32)
    streams, against = trace_text(model, text.ids[:n]).layers, kl_bits_from(model, text.states[:n])
    for number, (layer, head) in enumerate(np.ndindex(costs.shape), start=1):
        states = hidden_states_from(model, streams[layer].resid_pre, layer, Edits(head_scale={(layer, head): 0.0}))[0]
        costs[layer, head] = against(states).mean().item()
        progress(number, costs.size)
    return costs
