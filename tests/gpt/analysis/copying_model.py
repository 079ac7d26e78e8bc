"""A model whose weights were set by hand, so that what every head does is known, and an analysis can be checked.

It copies: after "a b c a" it says "b". The stream has a place of its own for each thing it holds, as one-hot codes:

    TOKEN     the token, from the embedding            PLACE     the position, from the embedding
    BEFORE    the token before, by layer 0, head 0     ANSWER    what comes next, by layer 1, head 0; the head reads it

    layer 0   head 0 looks at the token before         head 1 looks at the first token
    layer 1   head 0 looks at the token after an earlier one like the present (induction)
              head 1 looks at earlier tokens like the present
"""

from __future__ import annotations

import torch

from gpt.config import GPTConfig
from gpt.model import GPT

V, P, HS = 8, 16, 24
TOKEN, PLACE, BEFORE, ANSWER = slice(0, 8), slice(8, 24), slice(24, 32), slice(32, 40)
SHARP = 1000.0  # on the scores: the softmax of the best is exactly 1


@torch.no_grad()
def copying_model(dtype: torch.dtype = torch.float32) -> GPT:
    """Two layers of two heads, no feed-forward part to speak of, a head of its own."""
    config = GPTConfig(vocab_size=V, block_size=P, n_layer=2, n_head=2, n_embd=2 * HS, n_ff=1, tie_weights=False)
    model = GPT(config).eval()
    for name, parameter in model.named_parameters():
        if not (name.endswith("weight") and parameter.dim() == 1):  # gains stay 1
            parameter.zero_()
    model.wte.weight[:, TOKEN] = torch.eye(V)
    model.wpe.weight[:, PLACE] = torch.eye(P)
    model.lm_head.weight[:, ANSWER] = 5 * torch.eye(V)
    first, second = (block.attn for block in model.h)

    queries, keys, values = heads(first)
    queries[0][:P, PLACE] = SHARP * torch.eye(P).roll(-1, dims=0)  # asks for the place before its own
    queries[0][P - 1, PLACE] = 0  # the first token has none before it
    keys[0][:P, PLACE] = torch.eye(P)
    values[0][:V, TOKEN] = torch.eye(V)
    first.c_proj.weight[BEFORE, :V] = torch.eye(V)
    first.c_attn.bias[HS] = SHARP  # head 1 asks for place 0, whoever asks
    keys[1][:P, PLACE] = torch.eye(P)

    queries, keys, values = heads(second)
    queries[0][:V, TOKEN] = SHARP * torch.eye(V)
    keys[0][:V, BEFORE] = torch.eye(V)
    second.c_attn.bias[V] = -2 * SHARP  # not place 0, which had nobody before it
    keys[0][V, PLACE.start] = 1
    values[0][:V, TOKEN] = torch.eye(V)
    second.c_proj.weight[ANSWER, :V] = torch.eye(V)
    queries[1][:V, TOKEN] = SHARP * torch.eye(V)
    keys[1][:V, TOKEN] = torch.eye(V)
    queries[1][V:, PLACE] = -2 * SHARP * torch.eye(P)  # not itself
    keys[1][V:, PLACE] = torch.eye(P)
    return model.to(dtype)


def heads(attn: torch.nn.Module) -> tuple[list[torch.Tensor], ...]:
    """Views into c_attn: queries, keys and values of the two heads, each (HS, C)."""
    return tuple([part[:HS], part[HS:]] for part in attn.c_attn.weight.chunk(3))
