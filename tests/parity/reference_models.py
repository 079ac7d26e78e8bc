"""Small GPTs with the modules and names of other projects, as sources of checkpoints."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCAB_SIZE, CONTEXT, WIDTH, HEADS, LAYERS = 61, 16, 24, 3, 2
MASK = torch.triu(torch.ones(CONTEXT, CONTEXT), diagonal=1)


class BookLayerNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return self.scale * centred / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt() + self.shift


class BookGELU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


class BookAttention(nn.Module):
    def __init__(self, qkv_bias: bool) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(WIDTH, WIDTH, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", MASK.clone())

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (w(x).view(B, T, HEADS, -1).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value))
        scores = (q @ k.transpose(2, 3)).masked_fill(self.mask[:T, :T].bool(), -torch.inf)
        weights = torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(B, T, C))


class BookFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), BookGELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class BookBlock(nn.Module):
    def __init__(self, qkv_bias: bool) -> None:
        super().__init__()
        self.att, self.ff = BookAttention(qkv_bias), BookFeedForward()
        self.norm1, self.norm2 = BookLayerNorm(), BookLayerNorm()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.norm1(x))
        return x + self.ff(self.norm2(x))


class BookGPT(nn.Module):
    """GPTModel of the "from scratch" books: three matrices for query, key and value, and an untied head."""

    def __init__(self, qkv_bias: bool = False) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.trf_blocks = nn.Sequential(*(BookBlock(qkv_bias) for _ in range(LAYERS)))
        self.final_norm = BookLayerNorm()
        self.out_head = nn.Linear(WIDTH, VOCAB_SIZE, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.tok_emb(idx) + self.pos_emb(torch.arange(idx.shape[1]))
        return self.out_head(self.final_norm(self.trf_blocks(x)))


class NanoLayerNorm(nn.Module):
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.bias = nn.Parameter(torch.zeros(WIDTH)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class NanoAttention(nn.Module):
    def __init__(self, bias: bool, buffer: bool) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH, bias=bias), nn.Linear(WIDTH, WIDTH, bias=bias)
        if buffer:
            self.register_buffer("bias", 1 - MASK[None, None])

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, HEADS, -1).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        weights = scores.masked_fill(MASK[:T, :T].bool(), -torch.inf).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(B, T, C))


class NanoBlock(nn.Module):
    def __init__(self, bias: bool, buffer: bool, activation: nn.Module) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = NanoLayerNorm(bias), NanoLayerNorm(bias)
        self.attn = NanoAttention(bias, buffer)
        inner, outer = nn.Linear(WIDTH, 4 * WIDTH, bias=bias), nn.Linear(4 * WIDTH, WIDTH, bias=bias)
        self.mlp = nn.ModuleDict({"c_fc": inner, "act": activation, "c_proj": outer})

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](self.mlp["act"](self.mlp["c_fc"](self.ln_2(x))))


class NanoGPT(nn.Module):
    """nanoGPT's model: exact GELU, optional biases, a tied head."""

    def __init__(
        self, bias: bool = True, tied: bool = True, buffer: bool = False, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        blocks = (NanoBlock(bias, buffer, activation or nn.GELU()) for _ in range(LAYERS))
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(VOCAB_SIZE, WIDTH),
                "wpe": nn.Embedding(CONTEXT, WIDTH),
                "h": nn.ModuleList(blocks),
                "ln_f": NanoLayerNorm(bias),
            }
        )
        self.lm_head = nn.Linear(WIDTH, VOCAB_SIZE, bias=False)
        if tied:
            self.transformer["wte"].weight = self.lm_head.weight
        self.model_args = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "block_size": CONTEXT}
        self.model_args |= {"bias": bias, "vocab_size": VOCAB_SIZE, "dropout": 0.1}

    def forward(self, idx: Tensor) -> Tensor:
        x = self.transformer["wte"](idx) + self.transformer["wpe"](torch.arange(idx.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


class MinGPT(NanoGPT):
    """minGPT's model: tanh GELU, an untied head, and the causal mask as a buffer named bias."""

    def __init__(self) -> None:
        super().__init__(tied=False, buffer=True, activation=BookGELU())
