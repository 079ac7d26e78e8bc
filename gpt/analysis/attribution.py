"""Direct logit attribution: the contribution of each component of the model to a logit.

The final residual stream is a sum of the embeddings and of what every head and feed-forward part adds. A logit is the
product of that sum, after the final norm, with a row w of the head. The norm is linear apart from the division by the
scale of its input; with that taken as the constant of this pass, the logit is a sum over components. Where the model
caps its logits, this is the logit before the cap, which is no sum of parts:

    logit = norm(component_1) . w + norm(component_2) . w + ... + bias . w

Where a block has a norm after attention, what the heads add passes through that one first, with its scale as another
constant. The effect of a component through later layers is not counted: hence "direct".

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.analysis.tracing import check_traced, single_sequence, to_float32
from gpt.checks import check_token_id
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.model import GPT, TransformerBlock
from gpt.trace import Trace, for_query_heads


@dataclass(frozen=True)
class Attribution:
    """Contributions to a logit, or to the difference of two; they sum to `total`, up to rounding.

    embedding, position: of the token at the position; position is 0 where positions are rotary or dropped.
    heads: (n_layer, n_head), through each head's slice of c_proj. attn_bias: (n_layer,), the bias of c_proj, and that
    of a norm after attention. mlp: (n_layer,), feed-forward parts, biases included. norm_bias: the biases of the final
    norm and of the head. scale: by which the final norm divided. logit: before a cap, from the traced final state,
    which a model in bf16 or int8 has rounded.
    """

    embedding: float
    position: float
    heads: Tensor
    attn_bias: Tensor
    mlp: Tensor
    norm_bias: float
    scale: float
    logit: float

    @property
    def total(self) -> float:
        """Sum of all contributions."""
        parts = (self.heads, self.attn_bias, self.mlp)
        return self.embedding + self.position + self.norm_bias + sum(part.sum().item() for part in parts)


@torch.inference_mode()
def direct_logit_attribution(
    model: GPT, trace: Trace, position: int, token: int, *, against: int | None = None, edits: Edits | None = None
) -> Attribution:
    """Contributions to the logit of `token` after a position, minus those to the logit of `against`, before any cap.

    edits: of the traced pass. Raises ValueError for a position or an id that does not exist, and for a position with
    a patch, whose logits are not the sum of the components.
    """
    check_traced(trace, position)
    for each in (token, against):
        if each is not None:
            check_token_id(each, model.config.vocab_size)
    T, S = trace.layers[0].attn_weights.shape[-2:]
    if edits is not None and any(patch.position == S - T + position for patch in edits.patches):
        raise GPTError("position.patched", position=position)

    w = head_difference(model.lm_head.weight, token, against)  # (C,)
    scale = final_norm_scale(model, trace, position)

    def contribution(x: Tensor) -> Tensor:  # (..., C) -> (...)
        return model.ln_f.contribution(x, scale) @ w

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
    return Attribution(
        embedding=contribution(single_sequence(trace.token_embedding)[position]).item(),
        position=0.0 if wpe is None else contribution(to_float32(wpe[position])).item(),
        heads=torch.stack(heads),
        attn_bias=torch.stack(attn_bias),
        mlp=torch.stack(mlp),
        norm_bias=(norm_bias + head_bias).item(),
        scale=scale.item(),
        logit=(single_sequence(trace.final_norm)[position] @ w + head_bias).item(),
    )


def head_difference(parameter: Tensor, token: int, against: int | None) -> Tensor:
    """The row of the head's weight or bias for `token`, minus that for `against`."""
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
    bias = heads.new_zeros(heads.shape[1]) if c_proj.bias is None else to_float32(c_proj.bias)
    norm = block.ln_1_post
    if norm is None:
        return heads, bias
    scale = norm.scale(heads.sum(dim=0) + bias)
    bias = norm.contribution(bias, scale)
    return norm.contribution(heads, scale), bias if norm.bias is None else bias + to_float32(norm.bias)


def final_norm_scale(model: GPT, trace: Trace, position: int) -> Tensor:
    """(1,): by which the final norm divided at a position."""
    return model.ln_f.scale(single_sequence(trace.layers[-1].resid_post)[position])
