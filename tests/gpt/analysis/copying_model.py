"""A model with weights set by hand, in which the function of every head is known.

It predicts "b" after "a b c a". The residual stream has four ranges of one-hot codes:

    TOKEN     the token, from the embedding            POSITION  the position, from the embedding
    PREVIOUS  the previous token, from layer 0, head 0 ANSWER    the prediction, from layer 1, head 0; input of lm_head

    layer 0   head 0 attends to the previous token     head 1 attends to the first token
    layer 1   head 0 attends to the tokens after earlier ones with the current id (induction)
              head 1 attends to earlier tokens with the current id
"""

from __future__ import annotations

import torch

from gpt.config import GPTConfig
from gpt.model import GPT

V, P, HS = 8, 16, 24
TOKEN, POSITION, PREVIOUS, ANSWER = slice(0, 8), slice(8, 24), slice(24, 32), slice(32, 40)
SHARP = 1000.0  # scale of the scores: the softmax of the largest is exactly 1


@torch.no_grad()
def copying_model(dtype: torch.dtype = torch.float32) -> GPT:
    """Two layers of two heads, with feed-forward parts of zeros and an untied head."""
    config = GPTConfig(vocab_size=V, block_size=P, n_layer=2, n_head=2, n_embd=2 * HS, n_ff=1, tie_weights=False)
    model = GPT(config).eval()
    for name, parameter in model.named_parameters():
        if not (name.endswith("weight") and parameter.dim() == 1):  # LayerNorm weights stay 1
            parameter.zero_()
    model.wte.weight[:, TOKEN] = torch.eye(V)
    model.wpe.weight[:, POSITION] = torch.eye(P)
    model.lm_head.weight[:, ANSWER] = 5 * torch.eye(V)
    first, second = (block.attn for block in model.h)

    queries, keys, values = heads(first)
    queries[0][:P, POSITION] = SHARP * torch.eye(P).roll(-1, dims=0)  # the previous position
    queries[0][P - 1, POSITION] = 0  # the first token has no previous one
    keys[0][:P, POSITION] = torch.eye(P)
    values[0][:V, TOKEN] = torch.eye(V)
    first.c_proj.weight[PREVIOUS, :V] = torch.eye(V)
    first.c_attn.bias[HS] = SHARP  # head 1: every query attends to position 0
    keys[1][:P, POSITION] = torch.eye(P)

    queries, keys, values = heads(second)
    queries[0][:V, TOKEN] = SHARP * torch.eye(V)
    keys[0][:V, PREVIOUS] = torch.eye(V)
    second.c_attn.bias[V] = -2 * SHARP  # not position 0, which has no previous token
    keys[0][V, POSITION.start] = 1
    values[0][:V, TOKEN] = torch.eye(V)
    second.c_proj.weight[ANSWER, :V] = torch.eye(V)
    queries[1][:V, TOKEN] = SHARP * torch.eye(V)
    keys[1][:V, TOKEN] = torch.eye(V)
    queries[1][V:, POSITION] = -2 * SHARP * torch.eye(P)  # not the query's own position
    keys[1][V:, POSITION] = torch.eye(P)
    return model.to(dtype)


def heads(attn: torch.nn.Module) -> tuple[list[torch.Tensor], ...]:
    """Return views into c_attn: queries, keys and values of the two heads, each (HS, C)."""
    return tuple([part[:HS], part[HS:]] for part in attn.c_attn.weight.chunk(3))
