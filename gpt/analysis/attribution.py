"""Direct logit attribution: the contribution of each component of the model to a logit.

The final residual stream is the sum of the embeddings and the outputs of all heads and feed-forward networks. A logit
is the dot product of the normalised sum with a row w of the output head. Apart from dividing by the scale of its input,
the final norm is linear. With the scale held constant, the logit is a sum over components. In models that cap their
logits, this decomposes the logit before the cap:

    logit = norm(component_1) . w + norm(component_2) . w + ... + bias . w

If a block has a norm after attention, the outputs of its heads first pass through that norm, whose scale is also held
constant. The attribution is "direct" because it ignores effects through later layers. The output of a feed-forward
network is itself a sum over its neurons (see `neuron_logit_attribution`).

Edits that add to an activation or replace it, such as steering and patches, contribute the difference that they make.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gpt.analysis.tracing import for_texts, single_sequence, to_float32, traced_position
from gpt.checks import check_layer, check_token_id
from gpt.edits import Edits
from gpt.layers import LayerNorm, RMSNorm
from gpt.model import GPT, TransformerBlock
from gpt.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """Contributions to a logit or to a logit difference. They sum to `logit`, whatever the edits and the precision.

    Attributes:
        embedding: Contribution of the token embedding.
        position: Contribution of the position embedding; 0 if positions are rotary or dropped.
        heads: (n_layer, n_head), contributions of the heads, each through its slice of c_proj.
        attn_bias: (n_layer,), contributions of the biases of c_proj and of the norm after attention, if any.
        mlp: (n_layer,), contributions of the feed-forward networks, including their biases.
        norm_bias: Contribution of the biases of the final norm and the output head.
        scale: Scale of the final norm's input.
        logit: Logit before any cap, computed from the traced final state.
        rest: Contribution of what edits add or replace (steering, patches and hooks), and of rounding errors, which are
            noticeable only in half precision and int8.
    """

    embedding: float
    position: float
    heads: Tensor
    attn_bias: Tensor
    mlp: Tensor
    norm_bias: float
    scale: float
    logit: float
    rest: float = 0.0

    @property
    def total(self) -> float:
        parts = (self.heads, self.attn_bias, self.mlp)
        others = self.embedding + self.position + self.norm_bias + self.rest
        return others + sum(part.sum().item() for part in parts)


@dataclass(frozen=True)
class NeuronAttribution:
    """Contributions of a feed-forward network to a logit or a logit difference. They sum to `Attribution.mlp`.

    neurons: (n_ff,), contribution of each neuron: its activation times its column of c_proj. bias: contribution of the
    biases of c_proj and of a norm after the feed-forward network. rest: contribution of patches and hooks on mlp_out,
    and of rounding errors.
    """

    neurons: Tensor
    bias: float
    rest: float = 0.0

    @property
    def total(self) -> float:
        return self.neurons.sum().item() + self.bias + self.rest


@for_texts
def direct_logit_attribution(
    model: GPT,
    trace: Trace,
    position: int = -1,
    token: int | None = None,
    *,
    against: int | None = None,
    edits: Edits | None = None,
) -> Attribution:
    """Split the logit of `token` after a position, before any cap, into the contributions of the model's components.

    trace: the trace of a pass, a text, or a list of either, which gives a list of results. position: negative positions
    count from the end. token: defaults to the most likely token. against: if given, split the difference from this
    token's logit instead. edits: the edits of the pass; defaults to those of the trace. Raises ValueError if a position
    or id is out of range.
    """
    edits = edits or trace.edits or Edits()
    position = traced_position(trace, position)
    if token is None:
        token = int(model.logits(trace.final_norm[0, position]).argmax())
    contribution = contribution_to_logit(model, trace, position, token, against)
    w = difference(model.lm_head.weight, token, against)  # (C,)
    heads, attn_bias, mlp = [], [], []
    for block, layer in zip(model.blocks, trace.layers, strict=True):
        factor = edits.attn_scale.get(block.layer, 1.0)
        added, bias = added_by_heads(block, single_sequence(layer.head_out)[:, position])
        heads.append(factor * contribution(added))
        attn_bias.append(factor * contribution(bias))
        mlp.append(contribution(single_sequence(layer.mlp_out)[position]))

    wpe = trace.position_embedding
    if wpe is not None and wpe.dim() == 3:  # with an attention_mask, positions differ between texts
        wpe = wpe[0]
    head_bias = difference(bias_of(model.lm_head), token, against)
    parts = Attribution(
        embedding=contribution(single_sequence(trace.token_embedding)[position]).item(),
        position=0.0 if wpe is None else contribution(to_float32(wpe[position])).item(),
        heads=torch.stack(heads),
        attn_bias=torch.stack(attn_bias),
        mlp=torch.stack(mlp),
        norm_bias=(bias_of(model.ln_f) @ w + head_bias).item(),
        scale=final_norm_scale(model, trace, position).item(),
        logit=(single_sequence(trace.final_norm)[position] @ w + head_bias).item(),
    )
    return replace(parts, rest=parts.logit - parts.total)


@for_texts
def neuron_logit_attribution(
    model: GPT,
    trace: Trace,
    position: int,
    token: int,
    layer: int,
    *,
    against: int | None = None,
    edits: Edits | None = None,
) -> NeuronAttribution:
    """Split the contribution of one feed-forward network to a logit into the contributions of its neurons.

    Takes the same arguments and holds the same values constant as `direct_logit_attribution`. Raises ValueError if a
    layer, position or id is out of range.
    """
    position = traced_position(trace, position)
    check_layer(layer, len(trace.layers))
    contribution = contribution_to_logit(model, trace, position, token, against)
    traced = trace.layers[layer]
    post, out = (single_sequence(values)[position] for values in (traced.mlp_post, traced.mlp_out))
    written, bias = written_by_neurons(model.blocks[layer], post, edits or trace.edits)
    parts = NeuronAttribution(post * contribution(written), contribution(bias).item())
    return replace(parts, rest=contribution(out).item() - parts.total)


def contribution_to_logit(
    model: GPT, trace: Trace, position: int, token: int, against: int | None = None
) -> Callable[[Tensor], Tensor]:
    """Return a function from summands of the final stream, (..., C), to their contributions to a logit, (...)."""
    for each in (token, against):
        if each is not None:
            check_token_id(each, model.config.vocab_size)
    w, scale = difference(model.lm_head.weight, token, against), final_norm_scale(model, trace, position)
    return lambda x: model.ln_f.contribution(x, scale) @ w


def difference(parameter: Tensor, token: int, against: int | None) -> Tensor:
    """Return the row of the output head's weight or bias for `token`, minus the row for `against`."""
    row = to_float32(parameter[token])
    return row if against is None else row - to_float32(parameter[against])


def added_by_heads(block: TransformerBlock, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the heads, whose outputs are y (nh, hs), and the biases add to the stream: (nh, C) and (C,)."""
    c_proj = block.attn.c_proj
    heads = (y[:, None] @ to_float32(c_proj.weight).T.unflatten(0, (len(y), -1)))[:, 0]  # (nh, C)
    bias = bias_of(c_proj)
    return through_norm(block.ln_1_post, heads, bias, heads.sum(dim=0) + bias)


def written_by_neurons(block: TransformerBlock, post: Tensor, edits: Edits | None) -> tuple[Tensor, Tensor]:
    """Return the vectors added to the stream by each neuron per unit of activation, (n_ff, C), and by the biases, (C,).

    post: (n_ff,), activations at the position. They determine the scale of a norm after the feed-forward network.
    edits: only their mlp_scale is applied.
    """
    written, bias = to_float32(block.mlp.c_proj.weight).T, bias_of(block.mlp.c_proj)
    written, bias = through_norm(block.ln_2_post, written, bias, post @ written + bias)
    factor = 1.0 if edits is None else edits.mlp_scale.get(block.layer, 1.0)
    return factor * written, factor * bias


def bias_of(module: nn.Linear | LayerNorm | RMSNorm) -> Tensor:
    """Return a module's bias in float32; zeros if it has none."""
    if module.bias is not None:
        return to_float32(module.bias)
    weight = module.weight
    return torch.zeros(len(weight), dtype=torch.promote_types(weight.dtype, torch.float32), device=weight.device)


def through_norm(norm: LayerNorm | RMSNorm | None, parts: Tensor, bias: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the norm after a branch to parts (n, C) and a bias (C,), using the scale of total (C,)."""
    if norm is None:
        return parts, bias
    scale = norm.scale(total)
    return norm.contribution(parts, scale), norm.contribution(bias, scale) + bias_of(norm)


def final_norm_scale(model: GPT, trace: Trace, position: int) -> Tensor:
    """Return the scale of the final norm's input at a position: (1,)."""
    return model.ln_f.scale(single_sequence(trace.layers[-1].resid_post)[position])
