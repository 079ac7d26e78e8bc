"""Norms along the residual stream, and the feed-forward neurons that write the most to it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.attribution import final_norm_scale, written_by
from gpt.analysis.tracing import single_sequence, to_float32, traced_position
from gpt.errors import check_layer
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class StreamNorms:
    """Norms and shares along the residual stream, each with shape (n_layer, T).

    resid_pre, attn_out, resid_mid, mlp_out, resid_post: Euclidean norms of these activations. added: norm of attn_out +
    mlp_out. kept_share, attn_share, mlp_share, rest_share: fractions of resid_post that come from resid_pre, attention,
    feed-forward, and what edits add to the stream or replace in it: the component of each along resid_post, divided by
    the norm of resid_post. They can be negative, and sum to 1.
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
    rest_share: Tensor


@torch.inference_mode()
def stream_norms(trace: Trace) -> StreamNorms:
    names = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")
    x = {name: torch.stack([single_sequence(getattr(each, name)) for each in trace.layers]) for name in names}
    post, added = x["resid_post"], x["attn_out"] + x["mlp_out"]  # (n_layer, T, C)
    parts = {"kept": x["resid_pre"], "attn": x["attn_out"], "mlp": x["mlp_out"], "rest": post - x["resid_pre"] - added}
    shares = {f"{name}_share": (part * post).sum(dim=-1) / post.square().sum(dim=-1) for name, part in parts.items()}
    return StreamNorms(**{name: each.norm(dim=-1) for name, each in x.items()}, added=added.norm(dim=-1), **shares)


@dataclass(frozen=True)
class Neurons:
    """The k neurons of a layer that add the longest vectors to the stream at a position, in descending order.

    index: (k,), neuron numbers. pre, post: (k,), their values before and after the activation function. mlp_up: (k,),
    the gated factor, already included in post; None in models without gates. norm: (k,), length of the vector that each
    neuron adds, |post| x |its column of c_proj|, after any norm and edits that scale the network's output. up, down:
    (k, n), ids of the tokens whose logits each neuron raises and lowers most, directly through the final norm, with its
    scale held constant. up_logit, down_logit: (k, n), changes of these logits, before any cap.
    """

    index: Tensor
    pre: Tensor
    post: Tensor
    mlp_up: Tensor | None
    norm: Tensor
    up: Tensor
    up_logit: Tensor
    down: Tensor
    down_logit: Tensor


@torch.inference_mode()
def strongest_neurons(
    model: GPT, trace: Trace, layer: int, position: int, *, k: int = 10, n_tokens: int = 8
) -> Neurons:
    """Find the strongest neurons in a feed-forward network at a position.

    Geva et al., "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space"
    (2022), arXiv 2203.14680. Raises ValueError for a layer or position that was not traced.
    """
    check_layer(layer, len(trace.layers))
    position = traced_position(trace, position)
    traced, block = trace.layers[layer], model.blocks[layer]
    pre, post = (single_sequence(values)[position] for values in (traced.mlp_pre, traced.mlp_post))  # (n_ff,)
    factor = 1.0 if trace.edits is None else trace.edits.mlp_scale.get(layer, 1.0)
    written, _ = written_by(block.mlp.c_proj, block.ln_2_post, post, factor)  # (n_ff, C), per unit of activation
    top = (post.abs() * written.norm(dim=1)).topk(min(k, len(post)))
    added = post[top.indices, None] * written[top.indices]  # (k, C)
    normed = model.ln_f.contribution(added, final_norm_scale(model, trace, position))
    logits = F.linear(normed, to_float32(model.lm_head.weight))  # (k, vocab_size)
    n_tokens = min(n_tokens, model.config.vocab_size)
    up, down = logits.topk(n_tokens), logits.topk(n_tokens, largest=False)
    return Neurons(
        index=top.indices,
        pre=pre[top.indices],
        post=post[top.indices],
        mlp_up=None if traced.mlp_up is None else single_sequence(traced.mlp_up)[position, top.indices],
        norm=top.values,
        up=up.indices,
        up_logit=up.values,
        down=down.indices,
        down_logit=down.values,
    )
