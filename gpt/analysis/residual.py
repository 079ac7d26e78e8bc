"""Along the residual stream: lengths and shares, the neurons that write into it, the embeddings it starts from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis import check_layer, check_position, check_token, only_text, widened
from gpt.analysis.attribution import frozen_scale
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class Stream:
    """The residual stream and what is added to it, layer by layer; each tensor is (n_layer, T).

    resid_pre, attn_out, resid_mid, mlp_out, resid_post: Euclidean lengths of the activations of that name.
    added: length of what the layer adds, attn_out and mlp_out together.
    kept_share, attn_share, mlp_share: of resid_post, what comes from resid_pre, attention and feed-forward: a part's
        component along resid_post over the length of resid_post. They sum to 1 (patches aside); one that works
        against the others is negative.
    """

    resid_pre: Tensor
    attn_out: Tensor
    resid_mid: Tensor
    mlp_out: Tensor
    resid_post: Tensor
    added: Tensor
    kept_share: Tensor
    attn_share: Tensor
    mlp_share: Tensor


@torch.inference_mode()
def stream_lengths(trace: Trace) -> Stream:
    """How long the stream and its additions are at every layer and position, and who makes up the stream."""
    rows: dict[str, list[Tensor]] = {}
    for layer in trace.layers:
        names = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")
        vectors = {name: only_text(getattr(layer, name)) for name in names}  # each (T, C)
        whole = vectors["resid_post"]
        for name, vector in vectors.items():
            rows.setdefault(name, []).append(vector.norm(dim=-1))
        rows.setdefault("added", []).append((vectors["attn_out"] + vectors["mlp_out"]).norm(dim=-1))
        for name, part in (("kept_share", "resid_pre"), ("attn_share", "attn_out"), ("mlp_share", "mlp_out")):
            share = (vectors[part] * whole).sum(dim=-1) / whole.square().sum(dim=-1)
            rows.setdefault(name, []).append(share)
    return Stream(**{name: torch.stack(values) for name, values in rows.items()})


@dataclass(frozen=True)
class Neurons:
    """The k neurons of a layer that write most into the stream at a position, the strongest first.

    index, pre, post, length: (k,), which neuron; its activation before and after the activation function; the
        length of what it adds to the stream, |post| x |its column of c_proj|.
    up, down: (k, n) token ids whose logits it raises and lowers most. up_logit, down_logit: (k, n), by how much, on
        its direct way through the last LayerNorm with its scale frozen.
    """

    index: Tensor
    pre: Tensor
    post: Tensor
    length: Tensor
    up: Tensor
    up_logit: Tensor
    down: Tensor
    down_logit: Tensor


@torch.inference_mode()
def strongest_neurons(
    model: GPT, trace: Trace, layer: int, position: int, *, k: int = 10, n_tokens: int = 8
) -> Neurons:
    """What the feed-forward part of a layer writes at a position, neuron by neuron (before edits scale the branch).

    Geva et al., "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space"
    (2022), arXiv 2203.14680. Raises ValueError for a layer or position that was not traced.
    """
    check_layer(trace, layer)
    check_position(trace, position)
    columns = widened(model.h[layer].mlp.c_proj.weight)  # (C, n_ff)
    pre, post = (only_text(values)[position] for values in (trace.layers[layer].mlp_pre, trace.layers[layer].mlp_post))
    best = (post.abs() * columns.norm(dim=0)).topk(min(k, len(post)))
    written = post[best.indices, None] * columns.T[best.indices]  # (k, C)
    normed = (written - written.mean(dim=-1, keepdim=True)) / frozen_scale(model, trace, position)
    logits = F.linear(normed * widened(model.ln_f.weight), widened(model.lm_head.weight))  # (k, vocab_size)
    n_tokens = min(n_tokens, model.config.vocab_size)
    up, down = logits.topk(n_tokens), logits.topk(n_tokens, largest=False)
    return Neurons(
        best.indices,
        pre[best.indices],
        post[best.indices],
        best.values,
        up.indices,
        up.values,
        down.indices,
        down.values,
    )


@dataclass(frozen=True)
class Neighbours:
    """Tokens in order of closeness: ids and cosines, each (k,)."""

    token: Tensor
    cosine: Tensor


@torch.inference_mode()
def nearest_tokens(model: GPT, token: int, k: int = 10) -> Neighbours:
    """The k tokens whose embeddings point most nearly the same way as that of `token`, which is left out."""
    check_token(model, token)
    wte = widened(model.wte.weight)  # (vocab_size, C)
    lengths = wte.norm(dim=-1)
    cosine = wte @ wte[token] / (lengths * lengths[token]).clamp(min=1e-12)
    cosine[token] = -torch.inf
    best = cosine.topk(min(k, len(wte) - 1))
    return Neighbours(best.indices, best.values)


@torch.inference_mode()
def position_similarity(model: GPT) -> Tensor:
    """(block_size, block_size): cosines between the learned position embeddings. Raises ValueError without them."""
    if model.wpe is None:
        raise GPTError("analysis.no_position_embeddings")
    unit = F.normalize(widened(model.wpe.weight), dim=-1)
    return unit @ unit.T
