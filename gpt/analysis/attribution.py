"""Direct logit attribution: the contribution of each component of the model to a logit.

The final residual stream is a sum of the embeddings and of what every head and feed-forward part adds. A logit is the
product of that sum, after the final norm, with a row w of the head. The norm is linear apart from the division by the
scale of its input; with that taken as the constant of this pass, the logit is a sum over components. Where the model
caps its logits, this is the logit before the cap, which is no sum of parts:

    logit = norm(component_1) . w + norm(component_2) . w + ... + bias . w

Where a block has a norm after attention, what the heads add passes through that one first, with its scale as another
constant. The effect of a component through later layers is not counted: hence "direct". What a feed-forward part adds
is in turn a sum over its neurons, see `neuron_logit_attribution`.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gpt.analysis.tracing import single_sequence, to_float32, traced, traced_position
from gpt.checks import check_layer, check_token_id
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inputs import AnyModel, Text, gpt_of
from gpt.layers import LayerNorm, RMSNorm
from gpt.model import GPT, TransformerBlock
from gpt.trace import Trace, for_query_heads


@dataclass(frozen=True)
class Attribution:
    """Contributions to a logit, or to the difference of two logits. They sum to `total`, up to rounding.

    Attributes:
        embedding: Contribution of the token embedding.
        position: Contribution of the position embedding; 0 if positions are rotary or dropped.
        heads: (n_layer, n_head), the contribution of each head through its slice of c_proj.
        attn_bias: (n_layer,), the bias of c_proj and of a norm after attention.
        mlp: (n_layer,), the feed-forward parts, including biases.
        norm_bias: The biases of the final norm and of the head.
        scale: Number by which the final norm divided.
        logit: The logit before a cap, from the traced final state, which a model in half or int8 has rounded.
        hooks: What the hooks of an edited pass add beyond the changes of the other parts, such as a vector added to
            the residual stream; 0 without hooks.
    """

    embedding: float
    position: float
    heads: Tensor
    attn_bias: Tensor
    mlp: Tensor
    norm_bias: float
    scale: float
    logit: float
    hooks: float = 0.0

    @property
    def total(self) -> float:
        """Sum of all contributions."""
        parts = (self.heads, self.attn_bias, self.mlp)
        others = self.embedding + self.position + self.norm_bias + self.hooks
        return others + sum(part.sum().item() for part in parts)


@dataclass(frozen=True)
class NeuronAttribution:
    """Contributions of a feed-forward part to a logit, or to the difference of two; they sum to `Attribution.mlp`.

    neurons: (n_ff,), each neuron's activation times its column of c_proj. bias: that of c_proj, and that of a norm
    after the feed-forward part.
    """

    neurons: Tensor
    bias: float


@torch.inference_mode()
def direct_logit_attribution(
    model: AnyModel,
    trace: Trace | Text,
    position: int = -1,
    token: int | None = None,
    *,
    against: int | None = None,
    edits: Edits | None = None,
) -> Attribution:
    """Contributions to the logit of `token` after a position, minus those to the logit of `against`, before any cap.

    trace: of a pass, or a text, which is read. position: negative ones count from the end. token: None is the most
    likely one. edits: of the traced pass. Raises ValueError for a position or an id that does not exist, and for a
    position with a patch, whose logits are not the sum of the components; what hooks add is a part of its own.
    """
    model, trace = gpt_of(model), traced(model, trace)
    position = traced_position(trace, position)
    if token is None:
        token = int(model.logits(trace.final_norm[0, position]).argmax())
    contribution, scale = contribution_to_logit(model, trace, position, token, against)
    T, S = trace.layers[0].attn_weights.shape[-2:]
    if edits is not None and any(patch.position == S - T + position for patch in edits.patches):
        raise GPTError(
            "position.patched",
            "position {position} was patched: its logits are not the sum of what the parts add",
            position=position,
        )

    w = head_difference(model.lm_head.weight, token, against)  # (C,)
    heads, attn_bias, mlp = [], [], []
    for block, layer in zip(model.blocks, trace.layers, strict=True):
        factor = 1.0 if edits is None else edits.attn_scale.get(block.layer, 1.0)
        weights, v = single_sequence(layer.attn_weights[:, :, position]), single_sequence(layer.attn_v)
        added, bias = added_by_heads(block, weights, v, edits)
        heads.append(factor * contribution(added))
        attn_bias.append(factor * contribution(bias))
        mlp.append(contribution(single_sequence(layer.mlp_out)[position]))

    wpe = trace.position_embedding
    if wpe is not None and wpe.dim() == 3:  # a pass with an attention_mask has a row of positions for each text
        wpe = wpe[0]
    norm_bias = w.new_zeros(()) if model.ln_f.bias is None else to_float32(model.ln_f.bias) @ w
    head_bias = w.new_zeros(()) if model.lm_head.bias is None else head_difference(model.lm_head.bias, token, against)
    parts = Attribution(
        embedding=contribution(single_sequence(trace.token_embedding)[position]).item(),
        position=0.0 if wpe is None else contribution(to_float32(wpe[position])).item(),
        heads=torch.stack(heads),
        attn_bias=torch.stack(attn_bias),
        mlp=torch.stack(mlp),
        norm_bias=(norm_bias + head_bias).item(),
        scale=scale.item(),
        logit=(single_sequence(trace.final_norm)[position] @ w + head_bias).item(),
    )
    return replace(parts, hooks=parts.logit - parts.total) if edits is not None and edits.hooks else parts


@torch.inference_mode()
def neuron_logit_attribution(
    model: AnyModel,
    trace: Trace | Text,
    position: int,
    token: int,
    layer: int,
    *,
    against: int | None = None,
    edits: Edits | None = None,
) -> NeuronAttribution:
    """Contributions of the neurons of one layer; arguments and constants as in `direct_logit_attribution`.

    edits: Of the traced pass. A hook on mlp_out changes what the neurons add together, and is not counted here.
    Raises ValueError for a layer, position or id that does not exist.
    """
    model, trace = gpt_of(model), traced(model, trace)
    position = traced_position(trace, position)
    check_layer(layer, len(trace.layers))
    contribution, _ = contribution_to_logit(model, trace, position, token, against)
    post = single_sequence(trace.layers[layer].mlp_post)[position]
    written, bias = written_by_neurons(model.blocks[layer], post)
    factor = 1.0 if edits is None else edits.mlp_scale.get(layer, 1.0)
    return NeuronAttribution(factor * post * contribution(written), factor * contribution(bias).item())


def contribution_to_logit(
    model: GPT, trace: Trace, position: int, token: int, against: int | None
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Return a function from summands of the final stream (..., C) to their contributions (...), and the norm's scale.

    Raises ValueError for an id that does not exist.
    """
    for each in (token, against):
        if each is not None:
            check_token_id(each, model.config.vocab_size)
    w, scale = head_difference(model.lm_head.weight, token, against), final_norm_scale(model, trace, position)
    return lambda x: model.ln_f.contribution(x, scale) @ w, scale


def head_difference(parameter: Tensor, token: int, against: int | None) -> Tensor:
    """Return the row of the head's weight or bias for `token`, minus that for `against`."""
    row = to_float32(parameter[token])
    return row if against is None else row - to_float32(parameter[against])


def added_by_heads(
    block: TransformerBlock, weights: Tensor, v: Tensor, edits: Edits | None = None
) -> tuple[Tensor, Tensor]:
    """What each head adds to the stream at one position, (nh, C), and what the biases add, (C,).

    weights: (nh, S), of the position. v: (kv, S, hs). edits: scale heads; those of the whole attention are left out.
    """
    y = weights[:, None] @ for_query_heads(v, len(weights))  # (nh, 1, hs)
    y = y if edits is None else edits.scale_heads(block.layer, y[None])[0]
    c_proj = block.attn.c_proj
    heads = (y @ to_float32(c_proj.weight).T.unflatten(0, (len(y), -1)))[:, 0]  # (nh, C)
    bias = bias_of(c_proj)
    return through_norm(block.ln_1_post, heads, bias, heads.sum(dim=0) + bias)


def written_by_neurons(block: TransformerBlock, post: Tensor) -> tuple[Tensor, Tensor]:
    """What an activation of 1 of each neuron adds to the stream at one position, (n_ff, C), and the biases, (C,).

    post: (n_ff,), the activations of the position, on which the scale of a norm after the feed-forward part depends.
    """
    written, bias = to_float32(block.mlp.c_proj.weight).T, bias_of(block.mlp.c_proj)
    return through_norm(block.ln_2_post, written, bias, post @ written + bias)


def bias_of(linear: nn.Linear) -> Tensor:
    """Return the bias of a linear layer in float32; zeros without one."""
    weight = to_float32(linear.weight)
    return weight.new_zeros(len(weight)) if linear.bias is None else to_float32(linear.bias)


def through_norm(norm: LayerNorm | RMSNorm | None, parts: Tensor, bias: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Return parts (n, C) and a bias (C,) after the norm of a branch, which divides by the scale of total (C,)."""
    if norm is None:
        return parts, bias
    scale = norm.scale(total)
    bias = norm.contribution(bias, scale)
    return norm.contribution(parts, scale), bias if norm.bias is None else bias + to_float32(norm.bias)


def final_norm_scale(model: GPT, trace: Trace, position: int) -> Tensor:
    """(1,): by which the final norm divided at a position."""
    return model.ln_f.scale(single_sequence(trace.layers[-1].resid_post)[position])
