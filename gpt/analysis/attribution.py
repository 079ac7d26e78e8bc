"""Direct logit attribution: what each part of the model adds to a token's logit.

The last residual stream is a sum: embedding, position, and what every head and feed-forward part wrote into it. A
logit is that sum through the last LayerNorm and one row of the head. LayerNorm subtracts the mean, divides by the
standard deviation, multiplies by its gain and adds its bias; all of that is linear but the division. Taking the
standard deviation as the constant that it was in this pass ("frozen") makes the logit the sum of its parts, exactly:

    logit = part_1 . d / scale + part_2 . d / scale + ... + bias . w,    d = gain * w less its mean

with w the token's row of the head. What a part does through later layers is not counted: hence "direct".

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.analysis import check_position, check_token, only_text, widened
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """Parts of a logit, or of the difference of two; they sum to `total`, up to rounding.

    embedding, position (0 where positions are rotary or dropped): of the token read here.
    heads: (n_layer, n_head), each head through its slice of c_proj. attn_bias: (n_layer,), c_proj's own bias.
    mlp: (n_layer,), each feed-forward part, biases included. norm_bias: the last LayerNorm's own bias.
    scale: the frozen standard deviation, sqrt(variance + eps). logit: what the head makes of the last state; a model in
    bf16 or int8 rounds that state first.
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
        """All parts together."""
        parts = (self.heads, self.attn_bias, self.mlp)
        return self.embedding + self.position + self.norm_bias + sum(part.sum().item() for part in parts)


@torch.inference_mode()
def direct_logit_attribution(
    model: GPT, trace: Trace, position: int, token: int, *, against: int | None = None, edits: Edits | None = None
) -> Attribution:
    """What adds how much to the logit of `token` after the token at `position`, less that of `against`.

    edits: those of the traced pass. Raises ValueError for a position or an id that does not exist, and for a
    position with a patch: what was put in there is the work of no part.
    """
    check_position(trace, position)
    for each in (token, against):
        if each is not None:
            check_token(model, each)
    T, S = trace.layers[0].attn_weights.shape[-2:]
    if edits is not None and any(patch.position == S - T + position for patch in edits.patches):
        raise GPTError("position.patched", position=position)

    row = widened(model.lm_head.weight[token])  # (C,)
    if against is not None:
        row = row - widened(model.lm_head.weight[against])
    scale = frozen_scale(model, trace, position)
    d = through_norm(model, row) / scale  # (C,)

    heads, attn_bias, mlp = [], [], []
    for block, layer in zip(model.h, trace.layers, strict=True):
        factor = 1.0 if edits is None else edits.attn_scale.get(block.layer, 1.0)
        weights, v = only_text(layer.attn_weights[:, :, position]), only_text(layer.attn_v)
        y = weights[:, None] @ v  # (nh, 1, hs)
        y = (y if edits is None else edits.heads(block.layer, y[None])[0])[:, 0]  # (nh, hs)
        onto = (widened(block.attn.c_proj.weight).T @ d).view_as(y)  # how c_proj's inputs reach the logit
        heads.append(factor * (y * onto).sum(dim=-1))
        bias = block.attn.c_proj.bias
        attn_bias.append(d.new_zeros(()) if bias is None else factor * widened(bias) @ d)
        mlp.append(only_text(layer.mlp_out)[position] @ d)

    placed = trace.position_embedding
    if placed is not None and placed.dim() == 3:  # a padded pass has positions of its own for each text
        placed = placed[0]
    bias = model.ln_f.bias
    return Attribution(
        embedding=(only_text(trace.token_embedding)[position] @ d).item(),
        position=0.0 if placed is None else (widened(placed[position]) @ d).item(),
        heads=torch.stack(heads),
        attn_bias=torch.stack(attn_bias),
        mlp=torch.stack(mlp),
        norm_bias=0.0 if bias is None else (widened(bias) @ row).item(),
        scale=scale.item(),
        logit=(only_text(trace.final_norm)[position] @ row).item(),
    )


def frozen_scale(model: GPT, trace: Trace, position: int) -> Tensor:
    """The number that the last LayerNorm divided by at a position: the standard deviation of the stream, with eps."""
    stream = only_text(trace.layers[-1].resid_post)[position]
    return torch.sqrt(stream.var(unbiased=False) + model.ln_f.eps)


def through_norm(model: GPT, rows: Tensor) -> Tensor:
    """Rows of the head, (..., C), as the stream meets them before the last LayerNorm's division.

    LayerNorm(x) . w = x . through_norm(w) / scale + bias . w.
    """
    gained = rows * widened(model.ln_f.weight)
    return gained - gained.mean(dim=-1, keepdim=True)
