"""Direct logit attribution: the contribution of each component of the model to a logit.

The final residual stream is a sum of the embeddings and of what every head and feed-forward part adds. A logit is the
product of that sum, after the final LayerNorm, with a row w of the head. LayerNorm is linear apart from the division
by the standard deviation; with that taken as the constant `scale` of this pass, the logit is a sum over components:

    logit = component_1 . d + component_2 . d + ... + bias . w,    d = (gain * w - mean(gain * w)) / scale

The effect of a component through later layers is not counted: hence "direct".

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
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """Contributions to a logit, or to the difference of two; they sum to `total`, up to rounding.

    embedding, position: of the token at the position; position is 0 where positions are rotary or dropped.
    heads: (n_layer, n_head), through each head's slice of c_proj. attn_bias: (n_layer,), the bias of c_proj.
    mlp: (n_layer,), feed-forward parts, biases included. norm_bias: the biases of the final LayerNorm and of the head.
    scale: sqrt(variance + eps) of the final LayerNorm. logit: from the traced final state, which a model in bf16 or
    int8 has rounded.
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
    """Contributions to the logit of `token` after a position, minus those to the logit of `against`.

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
    d = before_final_norm(model, w) / scale  # (C,)

    heads, attn_bias, mlp = [], [], []
    for block, layer in zip(model.blocks, trace.layers, strict=True):
        factor = 1.0 if edits is None else edits.attn_scale.get(block.layer, 1.0)
        weights, v = single_sequence(layer.attn_weights[:, :, position]), single_sequence(layer.attn_v)
        y = weights[:, None] @ v  # (nh, 1, hs)
        y = (y if edits is None else edits.scale_heads(block.layer, y[None])[0])[:, 0]  # (nh, hs)
        c_proj = block.attn.c_proj
        heads.append(factor * (y * (to_float32(c_proj.weight).T @ d).view_as(y)).sum(dim=-1))
        attn_bias.append(d.new_zeros(()) if c_proj.bias is None else factor * to_float32(c_proj.bias) @ d)
        mlp.append(single_sequence(layer.mlp_out)[position] @ d)

    wpe = trace.position_embedding
    if wpe is not None and wpe.dim() == 3:  # a pass with an attention_mask has a row of positions for each text
        wpe = wpe[0]
    norm_bias = d.new_zeros(()) if model.ln_f.bias is None else to_float32(model.ln_f.bias) @ w
    head_bias = d.new_zeros(()) if model.lm_head.bias is None else head_difference(model.lm_head.bias, token, against)
    return Attribution(
        embedding=(single_sequence(trace.token_embedding)[position] @ d).item(),
        position=0.0 if wpe is None else (to_float32(wpe[position]) @ d).item(),
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


def final_norm_scale(model: GPT, trace: Trace, position: int) -> Tensor:
    """sqrt(variance + eps) of the residual stream at a position, by which the final LayerNorm divided."""
    stream = single_sequence(trace.layers[-1].resid_post)[position]
    return torch.sqrt(stream.var(unbiased=False) + model.ln_f.eps)


def before_final_norm(model: GPT, w: Tensor) -> Tensor:
    """Fold the mean and the gain of the final LayerNorm into rows of the head, (..., C).

    LayerNorm(x) . w = x . before_final_norm(w) / scale + bias . w.
    """
    gained = w * to_float32(model.ln_f.weight)
    return gained - gained.mean(dim=-1, keepdim=True)
