"""Measure how much predictions in reduced precision differ from those in float32, on a fixed text."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch

from gpt.analysis.predictions import kl_divergence
from gpt.models.loading import LoadedModel
from gpt.models.registry import float32_copy
from gpt.tokenizer import prompt_ids

TEXT = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park with her friends. "
    "One day she found a small red ball under a big tree. The ball was old and dirty, but Lily did not mind. She took "
    'it home and washed it. In the evening her father said: "What a nice ball you have! Where did you find it?"'
)
N_RANDOM_IDS = 128  # used if the vocabulary cannot encode the text


@dataclass(frozen=True)
class PrecisionError:
    """Differences between a model's predictions and those in float32.

    kl: mean Kullback-Leibler divergence per position, in bits. logit: largest difference between logits. top_1:
    fraction of positions at which the most likely token is the same.
    """

    kl: float
    logit: float
    top_1: float


_lock = threading.Lock()  # one comparison at a time, because each needs memory for a float32 copy
_errors: WeakKeyDictionary[LoadedModel, PrecisionError] = WeakKeyDictionary()


def precision_error(loaded: LoadedModel) -> PrecisionError:
    """Compare a shared model with a temporary float32 copy. The result is cached.

    Raises ValueError if there is not enough memory for the copy.
    """
    with _lock:
        if loaded not in _errors:
            _errors[loaded] = compare(loaded, float32_copy(loaded.name))
        return _errors[loaded]


@torch.inference_mode()
def compare(loaded: LoadedModel, exact: LoadedModel, text: str = TEXT) -> PrecisionError:
    """Compare a model with its float32 copy on a text, or on random ids if the vocabulary cannot encode it."""
    config = exact.model.config
    try:
        ids = prompt_ids(exact.tokenizer, text)
    except ValueError:
        ids = torch.randint(config.vocab_size, (N_RANDOM_IDS,), generator=torch.Generator().manual_seed(0)).tolist()
    idx = torch.tensor([ids[: config.block_size]])
    expected, found = (one.model(idx.to(one.device))[0].float().cpu() for one in (exact, loaded))  # (T, vocab_size)
    kl = kl_divergence(expected.log_softmax(dim=-1), found.log_softmax(dim=-1)).mean().item()
    same = (expected.argmax(dim=-1) == found.argmax(dim=-1)).double().mean().item()
    return PrecisionError(kl, (expected - found).abs().max().item(), same)
