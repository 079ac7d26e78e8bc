"""Which tokens of a text a prediction hangs on: by its gradient, and by leaving each token out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gpt.analysis import BATCH_TOKENS, Progress, check_token, log_probabilities, only_text, trace_text, widened
from gpt.cache import KVCache
from gpt.edits import Edits, Patch
from gpt.errors import GPTError
from gpt.model import GPT


@torch.inference_mode(False)
@torch.enable_grad()
def input_x_gradient(model: GPT, ids: Sequence[int], token: int) -> Tensor:
    """(T,) nats, signed: embedding of each token of the text . gradient of log p(`token` comes next) by it.

    To first order, how much of the log probability goes when a token's embedding shrinks to nothing, the others
    staying. Shrikumar et al., "Not Just a Black Box" (2016), arXiv 1605.01713.
    """
    check_token(model, token)
    start = trace_text(model, ids)
    stream = start.layers[0].resid_pre[0].clone().requires_grad_()  # (T, C): embedding + position
    patches = tuple(Patch("resid_pre", 0, position, row) for position, row in enumerate(stream))
    idx = torch.tensor([list(ids)], device=stream.device)
    log_p = log_p_next(model, model.hidden_states(idx, edits=Edits(patches=patches)), token)
    (gradient,) = torch.autograd.grad(log_p.sum(), stream)  # the embedding only adds to the stream: the same gradient
    return (only_text(start.token_embedding) * widened(gradient)).sum(dim=-1)


def leave_one_out(
    model: GPT,
    ids: Sequence[int],
    token: int,
    *,
    positions: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """(N,) nats: how far log p(`token` comes next) drops when one token of the text is left out; negative: it rises.

    positions: which tokens to leave out, None for each. What stands after a gap moves up, and is read again; what
    stands before it is read once. progress: called with (tokens done, tokens in all).
    Li et al., "Understanding Neural Networks through Representation Erasure" (2016), arXiv 1612.08220.
    Raises ValueError for a text of fewer than two tokens.
    """
    places = range(len(ids)) if positions is None else positions
    drops: list[Tensor] = []
    for several in leaving_out(model, ids, token, places):
        drops.append(several)
        if progress is not None:
            progress(sum(map(len, drops)), len(places))
    return torch.cat(drops)


def leaving_out(model: GPT, ids: Sequence[int], token: int, positions: Sequence[int]) -> Iterator[Tensor]:
    """`leave_one_out` a few positions at a time: yields (n,) nats."""
    check_token(model, token)
    T = len(ids)
    if T < 2:
        raise GPTError("analysis.leave_one_out", n=T)
    for place in positions:
        if not 0 <= place < T:
            raise GPTError("position.unknown", position=place, last=T - 1)
    idx, weight = torch.tensor([list(ids)], device=model.device), widened(model.lm_head.weight)

    @torch.inference_mode()
    def log_p(rest: Tensor, cache: KVCache) -> Tensor:  # (B,), after a text of which the cache holds the beginning
        return log_p_next(model, model.hidden_states(rest, cache=cache), token, weight)

    read = KVCache(model.config, max_length=T, dtype=model.dtype, device=model.device)
    whole = log_p(idx, read)  # (1,)
    size = max(1, BATCH_TOKENS // T)
    for start in range(0, len(positions), size):
        places = positions[start : start + size]
        same = min(*places, T - 2)  # tokens before all gaps, but one at least is left to read
        rest = torch.stack([torch.cat((idx[0, same:place], idx[0, place + 1 :])) for place in places])
        yield whole - log_p(rest, read.fork(model.config, len(places), T, same))


def log_p_next(model: GPT, states: Tensor, token: int, weight: Tensor | None = None) -> Tensor:
    """(B,) nats: log p(`token` comes next), from the last of the final-norm states (B, T, C)."""
    return torch.cat([log_p[:, token] for _, log_p in log_probabilities(model, states[:, -1], weight)])
