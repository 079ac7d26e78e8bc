"""Draw a token with temperature and top-k."""

import torch
from torch import Tensor


def sample(logits: Tensor, temperature: float, top_k: int, u: float) -> int:
    """logits (vocab_size,) -> an id. top_k: 0 keeps all tokens. u: random number in [0, 1)."""
    if temperature == 0:
        return int(logits.argmax())
    best, ids = (logits / temperature).topk(min(top_k or len(logits), len(logits)))
    sums = best.softmax(dim=0).cumsum(dim=0)  # rises to 1
    return int(ids[torch.searchsorted(sums[:-1], u * sums[-1], right=True)])
