"""Small GPTs with one matrix for query, key and value, in five naming conventions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.parity.attention import SIZE, attention, heads, join, parameter
from tests.parity.reference_models import CONTEXT, HEADS, LAYERS, MASK, VOCAB_SIZE, WIDTH


class TiedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", 1 - MASK)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(join(attention(*map(heads, self.c_attn(x).chunk(3, dim=-1)))))


class TiedFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x)))


class TiedBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(WIDTH), TiedAttention(), nn.LayerNorm(WIDTH)
        self.mlp = TiedFeedForward()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class TiedGPT(nn.Module):
    """GPT-2's names around `blocks`, with nn.Linear, a tied head and exact GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(TiedBlock() for _ in range(LAYERS))
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB_SIZE, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class EncoderGPT(nn.Module):
    """torch's own nn.TransformerEncoder, with norms first and a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.token_emb, self.position_emb = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        options = {"activation": "gelu", "batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, **options)
        norm = nn.LayerNorm(WIDTH)
        self.transformer = nn.TransformerEncoder(layer, LAYERS, norm=norm, enable_nested_tensor=False)
        self.fc_out = nn.Linear(WIDTH, VOCAB_SIZE)

    def forward(self, idx: Tensor) -> Tensor:
        T = idx.shape[1]
        x = self.token_emb(idx) + self.position_emb(torch.arange(T))
        return self.fc_out(self.transformer(x, mask=nn.Transformer.generate_square_subsequent_mask(T), is_causal=True))


class NumpyLinear(nn.Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.w, self.b = parameter(n_in, n_out), parameter(n_out)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w + self.b


class NumpyNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.g, self.b = parameter(WIDTH), parameter(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (WIDTH,), self.g, self.b)


class NumpyBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.ModuleDict({"c_fc": NumpyLinear(WIDTH, 4 * WIDTH), "c_proj": NumpyLinear(4 * WIDTH, WIDTH)})
        self.attn = nn.ModuleDict({"c_attn": NumpyLinear(WIDTH, 3 * WIDTH), "c_proj": NumpyLinear(WIDTH, WIDTH)})
        self.ln_1, self.ln_2 = NumpyNorm(), NumpyNorm()

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.attn["c_attn"](self.ln_1(x)).split(WIDTH, dim=-1)
        x = x + self.attn["c_proj"](join(attention(*map(heads, qkv))))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class NumpyGPT(nn.Module):
    """The names of OpenAI's release (w, b, g), with (in, out) matrices, bare embeddings, a tied head and tanh GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = parameter(VOCAB_SIZE, WIDTH), parameter(CONTEXT, WIDTH)
        self.blocks, self.ln_f = nn.ModuleList(NumpyBlock() for _ in range(LAYERS)), NumpyNorm()

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte[idx] + self.wpe[: idx.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x) @ self.wte.T


class MegatronBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        qkv, dense = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.self_attention = nn.ModuleDict({"query_key_value": qkv, "dense": dense})
        inner, outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.mlp = nn.ModuleDict({"dense_h_to_4h": inner, "dense_4h_to_h": outer})

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.self_attention["query_key_value"](self.input_layernorm(x)).unflatten(2, (HEADS, 3, SIZE))
        x = x + self.self_attention["dense"](join(attention(*qkv.permute(3, 0, 2, 1, 4))))
        inner = F.gelu(self.mlp["dense_h_to_4h"](self.post_attention_layernorm(x)), approximate="tanh")
        return x + self.mlp["dense_4h_to_h"](inner)


class MegatronGPT(nn.Module):
    """One matrix stores query, key and value head by head, which the file does not reveal."""

    def __init__(self) -> None:
        super().__init__()
        words, places = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.embedding = nn.ModuleDict({"word_embeddings": words, "position_embeddings": places})
        self.layers = nn.ModuleList(MegatronBlock() for _ in range(LAYERS))
        self.final_layernorm = nn.LayerNorm(WIDTH)

    def forward(self, idx: Tensor) -> Tensor:
        words = self.embedding["word_embeddings"]
        x = words(idx) + self.embedding["position_embeddings"](torch.arange(idx.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.final_layernorm(x) @ words.weight.T


class NumberedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.to_out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.to_kqv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        k, q, v = map(heads, self.to_kqv(self.norm(x)).chunk(3, dim=-1))
        return self.to_out(join(attention(q, k, v)))


class NumberedGPT(nn.Module):
    """Blocks are lists of two unnamed parts, each with its norm inside. The name to_kqv gives the order."""

    def __init__(self) -> None:
        super().__init__()
        self.token_emb, self.pos_emb = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList()
        for _ in range(LAYERS):
            inner, outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)
            feed_forward = nn.Sequential(nn.LayerNorm(WIDTH), inner, nn.GELU(), nn.Dropout(0.1), outer)
            self.layers.append(nn.ModuleList([NumberedAttention(), feed_forward]))
        self.norm, self.to_logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB_SIZE, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.token_emb(idx) + self.pos_emb(torch.arange(idx.shape[1]))
        for attend, feed_forward in self.layers:
            x = x + attend(x)
            x = x + feed_forward(x)
        return self.to_logits(self.norm(x))
