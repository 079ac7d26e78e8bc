"""What a reduced precision costs: how far its predictions are from those in float32, on one fixed text."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch

from gpt.models.loading import LoadedModel
from gpt.models.registry import exact_model

TEXT = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park with her friends. "
    "One day she found a small red ball under a big tree. The ball was old and dirty, but Lily did not mind. She took "
    'it home and washed it. In the evening her father said: "What a nice ball you have! Where did you find it?"'
)
ROWS = 128  # random ids, for a vocabulary that cannot spell the text


@dataclass(frozen=True)
class PrecisionError:
    """Against float32. kl: mean divergence in bits; logit: largest difference; top_1: how often the best agree."""

    kl: float
    logit: float
    top_1: float


@torch.inference_mode()
def precision_error(loaded: LoadedModel, exact: LoadedModel, text: str = TEXT) -> PrecisionError:
    """Compare a model with the same one in float32, at every position of a text; of random ids if it can't spell it."""
    config = exact.model.config
    try:
        ids = exact.tokenizer.encode(text)
    except ValueError:
        ids = torch.randint(config.vocab_size, (ROWS,), generator=torch.Generator().manual_seed(0)).tolist()
    ids = ids[: config.block_size]
    right, wrong = (one.model(torch.tensor([ids], device=one.device))[0].float().cpu() for one in (exact, loaded))
    p, q = right.log_softmax(dim=-1), wrong.log_softmax(dim=-1)  # (T, vocab_size)
    kl = (p.exp() * (p - q)).sum(dim=-1).mean().item() / math.log(2)
    same = (right.argmax(dim=-1) == wrong.argmax(dim=-1)).double().mean().item()
    return PrecisionError(max(0.0, kl), (right - wrong).abs().max().item(), same)


def measured(loaded: LoadedModel) -> PrecisionError:
    """`precision_error` of a shared model, once: against a float32 copy that is loaded for it and let go again.

    Raises ValueError where there is no room for one.
    """
    with _measuring:
        if loaded not in _known:
            _known[loaded] = precision_error(loaded, exact_model(loaded.name))
        return _known[loaded]


_measuring = threading.Lock()
_known: WeakKeyDictionary[LoadedModel, PrecisionError] = WeakKeyDictionary()
