"""Find the words and heads that a prediction depends on, and predict without them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from gpt.analysis.attribution import added_by_heads, direct_logit_attribution
from gpt.analysis.saliency import logits_without_each
from gpt.analysis.tracing import single_sequence, to_float32, trace_window
from gpt.checks import check_position, check_token_id
from gpt.edits import Edits, Patch
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.sampling import keep_only
from gpt.trace import for_query_heads

N_HEADS = 8  # ablate this many heads, starting with the largest direct contributions


@dataclass(frozen=True, eq=False)
class Cause:
    """A word or head, and the prediction without it.

    place: positions of the word, or (layer, head). logits: next-token logits without it, (vocab_size,).
    """

    place: tuple[int, ...]
    logits: Tensor


@dataclass(frozen=True, eq=False)
class Causes:
    """Words and heads that the prediction of `token` may depend on. logits: (vocab_size,), without ablation."""

    token: int
    logits: Tensor
    words: tuple[Cause, ...]
    heads: tuple[Cause, ...]

    def among(self, ids: Sequence[int]) -> Causes:
        """Restrict all predictions to these tokens; [] keeps them as they are."""
        words, heads = (
            [Cause(c.place, keep_only(c.logits, ids)) for c in causes] for causes in (self.words, self.heads)
        )
        return Causes(self.token, keep_only(self.logits, ids), tuple(words), tuple(heads))

    @property
    def n_bytes(self) -> int:
        return sum(logits.nbytes for logits in (self.logits, *(each.logits for each in (*self.words, *self.heads))))


@dataclass(frozen=True)
class Ablation:
    """Tokens, heads and reads to ablate.

    tokens: positions to leave out. heads: (layer, head) pairs whose output is set to 0. reads: (layer, head, position)
    triples; the weighted value at that position is removed from the head's output at the last position.
    """

    tokens: frozenset[int] = frozenset()
    heads: frozenset[tuple[int, int]] = frozenset()
    reads: frozenset[tuple[int, int, int]] = frozenset()


@torch.inference_mode()
def measure_causes(
    model: GPT, ids: Sequence[int], token: int, words: Sequence[Collection[int]], edits: Edits | None = None
) -> Causes:
    """Predict the next token without each word, and without each of the N_HEADS heads that contribute most to `token`.

    Words are left out as in `logits_without_each`; the outputs of heads are set to 0. words: positions of each word.
    edits: the edits applied in the original pass; patches and hooks at a position are ignored because they belong to
    one text. Raises ValueError if an id or position is out of range.
    """
    check_token_id(token, model.config.vocab_size)
    edits = (edits or Edits()).for_any_text()
    whole, *without_words = torch.cat(list(logits_without_each(model, ids, [(), *words], edits)))

    last = len(ids) - 1
    trace = trace_window(model, ids, last, last + 1, edits)
    contributions = direct_logit_attribution(model, trace, 0, token, edits=edits).heads
    idx, heads = torch.tensor([list(ids)], device=model.device), []
    for index in contributions.flatten().topk(min(N_HEADS, contributions.numel())).indices.tolist():
        head = divmod(index, model.config.n_head)
        off = replace(edits, head_scale={**edits.head_scale, head: 0.0})
        logits = model.logits(model.hidden_states(idx, edits=off)[:, -1])
        heads.append(Cause(head, to_float32(logits)[0]))
    places = map(tuple, map(sorted, words))
    return Causes(token, whole, tuple(map(Cause, places, without_words)), tuple(heads))


@torch.inference_mode()
def predict_without(model: GPT, ids: Sequence[int], ablation: Ablation, edits: Edits | None = None) -> Tensor:
    """Return the next-token logits, (vocab_size,), after ablating tokens, heads and reads.

    Tokens are left out as in `logits_without_each`. Reads are ablated layer by layer, from the bottom up. edits:
    see `measure_causes`. Raises ValueError if a position, layer or head is out of range, or if no tokens remain.
    """
    for position in (*ablation.tokens, *(read[2] for read in ablation.reads)):
        check_position(position, len(ids))
    kept = [position for position in range(len(ids)) if position not in ablation.tokens]
    if not kept:
        raise GPTError("analysis.leave_one_out", n=0)
    rest, last = [ids[position] for position in kept], len(kept) - 1
    edits = (edits or Edits()).for_any_text()
    edits = replace(edits, head_scale={**edits.head_scale, **dict.fromkeys(ablation.heads, 0.0)})
    replace(edits, head_scale=dict.fromkeys((read[:2] for read in ablation.reads), 0.0)).check(model.config)
    reads = sorted((layer, head, kept.index(at)) for layer, head, at in ablation.reads if at in kept)
    for layer, of_layer in groupby(reads, key=lambda read: read[0]):
        traced = trace_window(model, rest, last, last + 1, edits).layers[layer]
        weights = single_sequence(traced.attn_weights)  # (nh, 1, S)
        for _, head, position in of_layer:
            weights[head, 0, position] = 0
        y = edits.scale_heads(layer, (weights @ for_query_heads(single_sequence(traced.attn_v), len(weights)))[None])
        heads, bias = added_by_heads(model.blocks[layer], y[0, :, 0])
        patch = Patch("attn_out", layer, last, edits.attn_scale.get(layer, 1.0) * (heads.sum(dim=0) + bias))
        edits = replace(edits, patches=(*edits.patches, patch))
    states = model.hidden_states(torch.tensor([rest], device=model.device), edits=edits)
    return to_float32(model.logits(states[:, -1]))[0]
