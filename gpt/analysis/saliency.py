"""Effect of each token in a text on a prediction, measured by gradients or by leaving the token out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby

import torch
from torch import Tensor

from gpt.analysis.predictions import log_probabilities
from gpt.analysis.tracing import MAX_BATCH_TOKENS, single_sequence, to_float32, trace_text
from gpt.cache import KVCache
from gpt.checks import check_position, check_token_id, require
from gpt.edits import Edits
from gpt.inputs import AnyModel, Text, gpt_of, ids_of
from gpt.model import GPT


@torch.inference_mode(False)
@torch.enable_grad()
def input_x_gradient(model: AnyModel, text: Text, token: int) -> Tensor:
    """Return the dot product of each token embedding with the gradient of log p(next token = `token`): (T,) nats.

    This is a first-order estimate of how much log p would decrease if the embedding were 0.
    Shrikumar et al., "Not Just a Black Box" (2016), arXiv 1605.01713.
    """
    network = gpt_of(model)
    check_token_id(token, network.config.vocab_size)
    trace = trace_text(model, text, only=["token_embedding", "final_norm"], gradients=True)
    [(_, log_p)] = log_probabilities(network, trace.final_norm[:, -1])  # (1, vocab_size)
    (gradient,) = torch.autograd.grad(log_p[0, token], trace.token_embedding)
    return (single_sequence(trace.token_embedding.detach()) * single_sequence(gradient)).sum(dim=-1)


def leave_one_out(
    model: AnyModel, text: Text, token: int, positions: Sequence[int], edits: Edits | None = None
) -> Iterator[Tensor]:
    """Measure how much log p(next token = `token`) decreases when the token at one position is left out.

    Yields (n,) nats for the next n positions; see `logits_without_each`.
    Li et al., "Understanding Neural Networks through Representation Erasure" (2016), arXiv 1612.08220.
    Raises ValueError if the text has fewer than two tokens or a position is out of range.
    """
    model, ids = gpt_of(model), ids_of(model, text)
    check_token_id(token, model.config.vocab_size)
    found = logits_without_each(model, ids, [(), *((position,) for position in positions)], edits)
    whole, *parts = (logits.log_softmax(dim=-1)[:, token] for logits in found)
    yield from (whole - part for part in parts)


def logits_without_each(
    model: GPT, ids: Sequence[int], groups: Sequence[Collection[int]], edits: Edits | None = None
) -> Iterator[Tensor]:
    """Compute the next-token logits after leaving each group of positions out of the text.

    Yields (n, vocab_size) for the next n groups, in batches of at most MAX_BATCH_TOKENS. Later tokens move up and are
    recomputed. Tokens before the first gap in a batch are computed once. edits: applied in all passes, except for
    patches. Raises ValueError if a position is out of range or a group covers the whole text.
    """
    T = len(ids)
    for position in chain.from_iterable(groups):
        check_position(position, T)
    require(all(len(set(group)) < T for group in groups), "analysis.leave_one_out", n=T)
    idx = torch.tensor([list(ids)], device=model.device)

    @torch.inference_mode()
    def logits(rest: Tensor, cache: KVCache) -> Tensor:  # (B, V), after the cached tokens and rest
        return to_float32(model.logits(model.hidden_states(rest, cache=cache, edits=edits)[:, -1]))

    whole = model.new_cache(max_length=T)
    logits(idx, whole)
    most = max(1, MAX_BATCH_TOKENS // T)
    for size, same in groupby(map(frozenset, groups), key=len):  # groups of equal size form a batch
        several = list(same)
        for start in range(0, len(several), most):
            batch = several[start : start + most]
            whole.begin(T - size)
            shared = min(whole.length, T - size - 1, *(min(group, default=T) for group in batch))
            kept = [[i for i in range(shared, T) if i not in group] for group in batch]
            yield logits(idx[0, torch.tensor(kept, device=idx.device)], whole.fork(model.config, len(batch), T, shared))
