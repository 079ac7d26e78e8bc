"""Attribution graphs: trace the logit of the next token back to the words of a text through the features of two layers.

If attention weights, norm scales and activation slopes are fixed at their values on the text, the model is linear. A
logit is then the sum of contributions from all features of a layer, from the dictionary's reconstruction error and from
biases; likewise, the activity of a feature is a sum over the features of an earlier layer.

Source: Ameisen et al., "Circuit Tracing" (2025), with dictionaries for the residual stream instead of transcoders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from gpt.analysis.attribution import bias_of
from gpt.analysis.concepts import Concepts, trace_activity
from gpt.analysis.tracing import single_sequence, to_float32, trace_text
from gpt.edits import Edits
from gpt.errors import check_token_id
from gpt.layers import ACTIVATIONS
from gpt.model import GPT, CausalSelfAttention, FeedForward, ForwardContext, TransformerBlock
from gpt.trace import Trace, for_query_heads

N_FEATURES = 3  # features per layer
N_WORDS = 3


@dataclass(frozen=True)
class FeatureNode:
    """The features of one layer that share a name, at all positions where they contribute.

    places: (feature, position) pairs, largest contribution first. adds: total contribution to the logit.
    """

    layer: int
    places: tuple[tuple[int, int], ...]
    adds: float


@dataclass(frozen=True)
class ConceptGraph:
    """The strongest contributions to a logit.

    layers: the earlier and the later layer. late, early: features of the later and the earlier layer, in descending
    order of contribution. words: positions of each word. to_late: (early, late), contribution of each early feature
    through each late one; to_early: (words, early), of each word through each early feature. others: contribution of
    the biases and of all other late features; error: of the later dictionary's reconstruction error. The contributions
    of the late features, others and error sum to the logit.
    """

    logit: float
    layers: tuple[int, int]
    late: tuple[FeatureNode, ...]
    early: tuple[FeatureNode, ...]
    words: tuple[tuple[int, ...], ...]
    to_late: Tensor
    to_early: Tensor
    others: float
    error: float


@torch.no_grad()
def concept_graph(
    model: GPT,
    concepts: Concepts,
    ids: Sequence[int],
    token: int,
    words: Sequence[Sequence[int]],
    name: Callable[[int, int], Hashable],
    edits: Edits | None = None,
) -> ConceptGraph:
    """Build the graph for the uncapped logit of `token` after a text, using the first and the last dictionary.

    words: positions of each word of the text. name: called with a layer and a feature; features with equal names form
    one node. Raises ValueError if an id is out of range.
    """
    check_token_id(token, model.config.vocab_size)
    first, last = min(concepts.dictionaries), max(concepts.dictionaries)
    lower, upper = concepts.dictionaries[first], concepts.dictionaries[last]
    trace = trace_text(model, ids, edits)
    linear = _Linear(model, trace, edits)
    early_stream, late_stream, final = (single_sequence(trace.layers[each].resid_post) for each in (first, last, -1))
    early_activity, late_activity = (trace_activity(concepts, trace, layer) for layer in (first, last))  # (T, n)
    gradient = linear.gradient(late_stream, last + 1, model.config.n_layer, lambda x: linear.logit(x, token))
    effect = gradient.to(upper.decoder) @ upper.decoder.T  # (T, n), per unit of activity
    late = _strongest(upper.without_common(late_activity * effect), last, name)
    error = float((unexplained(concepts, trace, last) * gradient.to(upper.decoder)).sum())
    logit = float(linear.logit(final, token))

    readers = [_reader(upper.encoder, effect, node) for node in late]
    through = [linear.gradient(early_stream, first + 1, last + 1, reader) for reader in readers]
    effects = [each.to(lower.decoder) @ lower.decoder.T for each in through]  # (T, n) for each late node
    effect = sum(effects, torch.zeros_like(early_activity))
    early = _strongest(lower.without_common(early_activity * effect), first, name)
    edges = [early_activity * each for each in effects]
    to_late = torch.tensor([[sum(float(edge[t, i]) for i, t in node.places) for edge in edges] for node in early])
    embedding = single_sequence(trace.token_embedding)
    if trace.position_embedding is not None:
        embedding = embedding + to_float32(trace.position_embedding)
    readers = [_reader(lower.encoder, effect, node) for node in early]
    shares = [(linear.gradient(embedding, 0, first + 1, reader) * embedding).sum(-1) for reader in readers]  # (T,) each
    to_early = torch.tensor([[float(share[[*word]].sum()) for share in shares] for word in words])
    order = to_early.abs().sum(1).argsort(descending=True)[:N_WORDS].sort().values.tolist()
    kept = tuple(tuple(words[i]) for i in order)
    others = logit - error - sum(node.adds for node in late)
    return ConceptGraph(logit, (first, last), late, early, kept, to_late, to_early[order], others, error)


def unexplained(concepts: Concepts, trace: Trace, layer: int) -> Tensor:
    """Return the part of the stream after a layer that its dictionary does not reconstruct, (T, C); 0 at first."""
    dictionary, stream = concepts.dictionaries[layer], single_sequence(trace.layers[layer].resid_post)
    error = stream.to(dictionary.encoder) - dictionary.reconstruction(trace_activity(concepts, trace, layer))
    error[0] = 0  # the dictionaries are not trained on the first token
    return error


def _reader(encoder: Tensor, effect: Tensor, node: FeatureNode) -> Callable[[Tensor], Tensor]:
    """Return a function from the stream after a node's layer to the node's contribution; effect: (T, n), per unit."""
    features, positions = map(list, zip(*node.places, strict=True))
    rows = effect[positions, features, None] * encoder[features]
    return lambda x: (x[positions] * rows.to(x)).sum()


def _strongest(adds: Tensor, layer: int, name: Callable[[int, int], Hashable]) -> tuple[FeatureNode, ...]:
    """Return the nodes with the largest positive contributions. adds: (T, n), contribution by position and feature."""
    groups: defaultdict[Hashable, list[tuple[float, tuple[int, int]]]] = defaultdict(list)
    named = cache(name)
    for (position, feature), each in zip(adds.nonzero().tolist(), adds[adds != 0].tolist(), strict=True):
        groups[named(layer, feature)].append((each, (feature, position)))
    nodes = [
        FeatureNode(layer, tuple(place for _, place in sorted(group, reverse=True)), sum(each for each, _ in group))
        for group in groups.values()
    ]
    nodes.sort(key=lambda node: node.adds, reverse=True)
    return tuple(node for node in nodes[:N_FEATURES] if node.adds > 0)


class _Linear:
    """An edited model, linearised by fixing its nonlinear parts at their values on one text."""

    def __init__(self, model: GPT, trace: Trace, edits: Edits | None = None) -> None:
        self.model, self.edits = model, edits or Edits()
        self.weights = [to_float32(layer.attn_weights).clone() for layer in trace.layers]

    def gradient(self, x: Tensor, start: int, stop: int, read: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the gradient of `read` with respect to the stream x (T, C) before layer `start`.

        read: a function of the stream before layer `stop`."""
        leaf = x.clone().requires_grad_()
        with torch.enable_grad():
            found = leaf[None]
            for block in self.model.blocks[start:stop]:
                found = self.block(block, found)
            (gradient,) = torch.autograd.grad(read(found[0]), leaf)
        return gradient

    def logit(self, x: Tensor, token: int) -> Tensor:
        """Return the logit after the last token of a stream (T, C), before any cap."""
        state = self.edits.apply(None, "final_norm", self.norm(self.model.ln_f, x[None]), 0)[0, -1]
        head = self.model.lm_head
        return to_float32(state) @ to_float32(head.weight[token]) + bias_of(head)[token]

    def norm(self, norm: Any, x: Tensor) -> Tensor:
        """Apply a norm with its scale detached. Returns x unchanged if the model has no such norm."""
        if norm is None:
            return x
        y = norm.contribution(x, norm.scale(x).detach())
        return y if norm.bias is None else y + norm.bias

    def block(self, block: TransformerBlock, x: Tensor) -> Tensor:
        layer, ctx = block.layer, ForwardContext.of_text(self.model.config, x, self.edits)
        ctx = replace(ctx, attention=self.attention)
        x = ctx.hook(layer, "resid_pre", x)
        out = self.norm(block.ln_1_post, block.attn(self.norm(block.ln_1, x), ctx))
        mid = ctx.hook(layer, "resid_mid", x + ctx.hook(layer, "attn_out", out))
        read = self.norm(block.ln_2, x if self.model.config.parallel else mid)
        out = self.norm(block.ln_2_post, self.feed_forward(block.mlp, read, ctx))
        return ctx.hook(layer, "resid_post", mid + ctx.hook(layer, "mlp_out", out))

    def attention(self, attn: CausalSelfAttention, qkv: Tensor) -> Tensor:
        """Mix the values in qkv (B, nh + 2 kv, T, hs) with the fixed attention weights."""
        v = self.edits.apply(attn.layer, "attn_v", qkv[:, -attn.kv_heads :], 0)
        return self.edits.scale_heads(attn.layer, self.weights[attn.layer] @ for_query_heads(v, attn.n_head))

    def feed_forward(self, mlp: FeedForward, x: Tensor, ctx: ForwardContext) -> Tensor:
        """Apply the feed-forward network, with the activation's slope at each neuron detached."""
        pre = ctx.hook(mlp.layer, "mlp_pre", (mlp.c_gate or mlp.c_fc)(x))
        post = ACTIVATIONS[self.edits.activation or mlp.activation](pre)
        if mlp.c_gate is None:
            post = pre * (post / pre.where(pre != 0, 1)).detach()
        else:
            post = post.detach() * ctx.hook(mlp.layer, "mlp_up", mlp.c_fc(x))
        return mlp.c_proj(ctx.hook(mlp.layer, "mlp_post", post))
