"""Effect of each token in a text on a prediction, by gradients, or by predicting without words, heads and concepts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby

import torch
from torch import Tensor

from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.concept_graph import unexplained
from gpt.analysis.concepts import Concepts, trace_activity
from gpt.analysis.predictions import log_probabilities
from gpt.analysis.tracing import MAX_BATCH_TOKENS, single_sequence, to_float32, trace_text, trace_window
from gpt.cache import KVCache
from gpt.edits import Edits, Hook
from gpt.errors import check_position, check_token_id, require
from gpt.inputs import AnyModel, Text, gpt_of, ids_of
from gpt.model import GPT
from gpt.sampling import keep_only

N_HEADS = 8  # ablate this many heads, starting with the largest direct contributions


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
            yield logits(idx[0, torch.tensor(kept, device=idx.device)], whole.fork(len(batch), T, shared))


@dataclass(frozen=True, eq=False)
class Causes:
    """Words and heads that the prediction of `token` may depend on.

    logits: next-token logits, (vocab_size,). words, heads: the logits without each word, by its positions, and without
    each head, by (layer, head).
    """

    token: int
    logits: Tensor
    words: dict[tuple[int, ...], Tensor]
    heads: dict[tuple[int, ...], Tensor]

    @property
    def n_bytes(self) -> int:
        return sum(logits.nbytes for logits in (self.logits, *self.words.values(), *self.heads.values()))


@dataclass(frozen=True)
class Ablation:
    """Parts of a prediction to leave out.

    tokens: positions to leave out. heads: (layer, head) pairs whose output is set to 0. reads: (layer, head, position)
    triples; the head's attention weight from the last position to that one is set to 0, without raising the others.
    features: (layer, feature, position) triples of a concept dictionary. error: whether to remove the reconstruction
    error of the last dictionary.
    """

    tokens: frozenset[int] = frozenset()
    heads: frozenset[tuple[int, int]] = frozenset()
    reads: frozenset[tuple[int, int, int]] = frozenset()
    features: frozenset[tuple[int, int, int]] = frozenset()
    error: bool = False


@torch.inference_mode()
def measure_causes(
    model: GPT,
    ids: Sequence[int],
    token: int,
    words: Sequence[Collection[int]],
    edits: Edits | None = None,
    only: Sequence[int] = (),
) -> Causes:
    """Predict the next token without each word, and without each of the N_HEADS heads that contribute most to `token`.

    Words are left out as in `logits_without_each`; the outputs of heads are set to 0. words: positions of each word.
    edits: the edits applied in the original pass; patches and hooks at a position are ignored because they belong to
    one text. only: tokens to which the predictions are restricted; defaults to all. Raises ValueError if an id or
    position is out of range.
    """
    check_token_id(token, model.config.vocab_size)
    edits = (edits or Edits()).for_any_text()
    whole, *without_words = keep_only(torch.cat(list(logits_without_each(model, ids, [(), *words], edits))), only)

    last = len(ids) - 1
    trace = trace_window(model, ids, last, last + 1, edits)
    contributions = direct_logit_attribution(model, trace, 0, token, edits=edits).heads
    heads: dict[tuple[int, ...], Tensor] = {}
    for index in contributions.flatten().topk(min(N_HEADS, contributions.numel())).indices.tolist():
        head = divmod(index, model.config.n_head)
        heads[head] = keep_only(predict_without(model, ids, Ablation(heads=frozenset({head})), edits), only)
    return Causes(token, whole, dict(zip(map(tuple, map(sorted, words)), without_words, strict=True)), heads)


@torch.inference_mode()
def predict_without(
    model: GPT, ids: Sequence[int], ablation: Ablation, edits: Edits | None = None, concepts: Concepts | None = None
) -> Tensor:
    """Return the next-token logits, (vocab_size,), after leaving out parts.

    Tokens are left out as in `logits_without_each`. edits: see `measure_causes`; if only features are left out, those
    at a position are applied as well. concepts: the dictionaries of the features. Raises ValueError if a position,
    layer or head is out of range, or if no tokens remain.
    """
    for position in (*ablation.tokens, *(position for _, _, position in ablation.reads)):
        check_position(position, len(ids))
    kept = [position for position in range(len(ids)) if position not in ablation.tokens]
    require(kept, "analysis.leave_one_out", n=0)
    Edits(head_scale=dict.fromkeys(((layer, head) for layer, head, _ in ablation.reads), 0.0)).check(model.config)
    edits, hooks, has_concepts = edits or Edits(), [], bool(ablation.features or ablation.error)
    if ablation.tokens or not has_concepts:
        edits = edits.for_any_text()
    is_read = torch.ones(model.config.n_layer, model.config.n_head, len(ids), device=model.device)
    for layer, head, position in ablation.reads:
        is_read[layer, head, position] = 0
    for layer in {layer for layer, _, _ in ablation.reads}:
        hooks.append(Hook("attn_weights", layer, partial(torch.mul, is_read[layer, :, kept]), position=len(kept) - 1))
    if concepts is not None and has_concepts:
        trace = trace_text(model, ids, edits)
        for layer, dictionary in concepts.dictionaries.items():
            activity = trace_activity(concepts, trace, layer)  # (T, n)
            left_out = torch.zeros_like(activity)
            for at, feature, position in ablation.features:
                if at == layer:
                    left_out[position, feature] = activity[position, feature]
            vectors = left_out @ dictionary.decoder  # (T, C)
            if ablation.error and layer == max(concepts.dictionaries):
                vectors += unexplained(concepts, trace, layer)
            hooks.append(Hook("resid_post", layer, partial(torch.add, -vectors[kept].to(model.device))))
    heads = {**edits.head_scale, **dict.fromkeys(ablation.heads, 0.0)}
    edits = replace(edits, head_scale=heads, hooks=(*edits.hooks, *hooks))
    idx = torch.tensor([[ids[position] for position in kept]], device=model.device)
    return to_float32(model.logits(model.hidden_states(idx, edits=edits)[:, -1]))[0]
