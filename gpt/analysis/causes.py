"""Find the words and heads that a prediction depends on, and predict without them or without concepts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.concept_graph import unexplained
from gpt.analysis.concepts import Concepts, trace_activity
from gpt.analysis.saliency import logits_without_each
from gpt.analysis.tracing import to_float32, trace_text, trace_window
from gpt.checks import check_position, check_token_id, require
from gpt.edits import Edits, Hook
from gpt.model import GPT
from gpt.sampling import keep_only

N_HEADS = 8  # ablate this many heads, starting with the largest direct contributions


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
    idx = torch.tensor([list(ids)], device=model.device)
    heads: dict[tuple[int, ...], Tensor] = {}
    for index in contributions.flatten().topk(min(N_HEADS, contributions.numel())).indices.tolist():
        head = divmod(index, model.config.n_head)
        off = replace(edits, head_scale={**edits.head_scale, head: 0.0})
        logits = model.logits(model.hidden_states(idx, edits=off)[:, -1])
        heads[head] = keep_only(to_float32(logits)[0], only)
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
