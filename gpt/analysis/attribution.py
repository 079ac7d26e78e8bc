"""Direct logit attribution: the contribution of each component of the model to a logit.

The final residual stream is the sum of the embeddings and the outputs of all heads and feed-forward networks. Apart
from dividing by the scale of its input, the final norm is linear. With the scale held constant, a logit before any cap
is a sum over components, where w is its row of the output head:

    logit = norm(component_1) . w + norm(component_2) . w + ... + bias . w

If a block has a norm after a branch, its scale is held constant as well. The attribution is "direct" because it ignores
effects through later layers. Edits that add to an activation or replace it, such as steering and patches, contribute
the difference that they make.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gpt.analysis.tracing import for_texts, single_sequence, to_float32, traced_position
from gpt.edits import Edits
from gpt.errors import check_layer, check_token_id
from gpt.layers import LayerNorm, RMSNorm
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """Contributions to a logit or to a logit difference. They sum to `logit`, whatever the edits and the precision.

    embedding: contribution of the token embedding. position: that of the position embedding; 0 if positions are rotary
    or dropped. heads: (n_layer, n_head), contributions of the heads, each through its slice of c_proj. attn_bias:
    (n_layer,), those of the biases of c_proj and of the norm after attention, if any. mlp: (n_layer,), those of the
    feed-forward networks, including their biases. norm_bias: that of the biases of the final norm and the output head.
    scale: scale of the final norm's input. logit: logit before any cap, computed from the traced final state. rest:
    contribution of what edits add or replace (steering, patches and hooks), and of rounding errors, which are
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
        y = single_sequence(layer.head_out)[:, position]  # (nh, hs)
        factor, parts = edits.attn_scale.get(block.layer, 1.0), torch.block_diag(*y)  # (nh, nh * hs)
        written, bias = written_by(block.attn.c_proj, block.ln_1_post, y.flatten(), factor, parts)
        heads.append(contribution(written))
        attn_bias.append(contribution(bias))
        mlp.append(contribution(single_sequence(layer.mlp_out)[position]))

    wpe = trace.position_embedding  # (T, C); (1, T, C) with an attention_mask
    head_bias = difference(bias_of(model.lm_head), token, against)
    parts = Attribution(
        embedding=contribution(single_sequence(trace.token_embedding)[position]).item(),
        position=0.0 if wpe is None else contribution(to_float32(wpe.flatten(0, -2)[position])).item(),
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
    traced, block, edits = trace.layers[layer], model.blocks[layer], edits or trace.edits or Edits()
    post, out = (single_sequence(values)[position] for values in (traced.mlp_post, traced.mlp_out))
    written, bias = written_by(block.mlp.c_proj, block.ln_2_post, post, edits.mlp_scale.get(layer, 1.0))
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


def written_by(
    c_proj: nn.Linear, norm: LayerNorm | RMSNorm | None, x: Tensor, factor: float, parts: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return what a branch adds to the stream per unit of each of its last layer's inputs, (n, C), and by biases, (C,).

    x: (n,), the inputs at the position. They determine the scale of a norm after the branch. factor: an edit's factor.
    parts: (k, n), parts of x; if given, return what each part adds, (k, C), instead of what each input does per unit.
    """
    weight, bias = to_float32(c_proj.weight).T, bias_of(c_proj)
    written = weight if parts is None else parts @ weight
    if norm is not None:
        scale = norm.scale(x @ weight + bias)
        written, bias = norm.contribution(written, scale), norm.contribution(bias, scale) + bias_of(norm)
    return factor * written, factor * bias


def bias_of(module: nn.Linear | LayerNorm | RMSNorm) -> Tensor:
    """Return a module's bias in float32; zeros if it has none."""
    if module.bias is not None:
        return to_float32(module.bias)
    weight = module.weight
    return torch.zeros(len(weight), dtype=torch.promote_types(weight.dtype, torch.float32), device=weight.device)


def final_norm_scale(model: GPT, trace: Trace, position: int) -> Tensor:
    """Return the scale of the final norm's input at a position: (1,)."""
    return model.ln_f.scale(single_sequence(trace.layers[-1].resid_post)[position])
