"""Small GPTs with separate query, key and value, in five naming conventions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.parity.attention import SIZE, attention, heads, join, parameter
from tests.parity.reference_models import CONTEXT, HEADS, LAYERS, MASK, VOCAB_SIZE, WIDTH


class LectureHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(WIDTH, SIZE, bias=False) for _ in range(3))
        self.register_buffer("tril", 1 - MASK)

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        scores = self.query(x) @ self.key(x).transpose(-2, -1) * SIZE**-0.5
        return scores.masked_fill(self.tril[:T, :T] == 0, -torch.inf).softmax(-1) @ self.value(x)


class LectureHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads, self.proj = nn.ModuleList(LectureHead() for _ in range(HEADS)), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class LectureFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class LectureBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sa, self.ffwd = LectureHeads(), LectureFeedForward()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class LectureGPT(nn.Module):
    """A separate module for each head, ReLU, and a head with a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding_table = nn.Embedding(VOCAB_SIZE, WIDTH)
        self.position_embedding_table = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(LectureBlock() for _ in range(LAYERS)))
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB_SIZE)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(idx.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(x)))


class OldMinAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.key, self.query, self.value, self.proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.register_buffer("mask", (1 - MASK)[None, None])

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(join(attention(heads(self.query(x)), heads(self.key(x)), heads(self.value(x)))))


class OldMinBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2, self.attn = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), OldMinAttention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class OldMinGPT(nn.Module):
    """Positions are a bare parameter, and key comes before query."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Parameter(torch.zeros(1, CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(OldMinBlock() for _ in range(LAYERS)))
        self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB_SIZE, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        return self.head(self.ln_f(self.blocks(self.tok_emb(idx) + self.pos_emb[:, : idx.shape[1]])))


class LensNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = parameter(WIDTH), parameter(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * self.w + self.b


class LensAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W_Q, self.W_K, self.W_V = (parameter(HEADS, WIDTH, SIZE) for _ in range(3))
        self.b_Q, self.b_K, self.b_V = (parameter(HEADS, SIZE) for _ in range(3))
        self.W_O, self.b_O = parameter(HEADS, SIZE, WIDTH), parameter(WIDTH)
        self.register_buffer("mask", (1 - MASK).bool())
        self.register_buffer("IGNORE", torch.tensor(-torch.inf))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            torch.einsum("btc,hcs->bths", x, w) + b
            for w, b in ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V))
        )
        T = x.shape[1]
        scores = torch.einsum("bqhs,bkhs->bhqk", q, k) / SIZE**0.5
        weights = torch.where(self.mask[:T, :T], scores, self.IGNORE).softmax(-1)
        z = torch.einsum("bhqk,bkhs->bqhs", weights, v)
        return torch.einsum("bqhs,hsc->bqc", z, self.W_O) + self.b_O


class LensFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W_in, self.b_in = parameter(WIDTH, 4 * WIDTH), parameter(4 * WIDTH)
        self.W_out, self.b_out = parameter(4 * WIDTH, WIDTH), parameter(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x @ self.W_in + self.b_in, approximate="tanh") @ self.W_out + self.b_out


class LensBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2, self.mlp = LensNorm(), LensAttention(), LensNorm(), LensFeedForward()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class LensGPT(nn.Module):
    """Separate (in, out) matrices for each head, with W_ and b_ before their names; tanh GELU; a head with a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.pos_embed, self.unembed = nn.Module(), nn.Module(), nn.Module()
        self.embed.W_E, self.pos_embed.W_pos = parameter(VOCAB_SIZE, WIDTH), parameter(CONTEXT, WIDTH)
        self.blocks, self.ln_final = nn.ModuleList(LensBlock() for _ in range(LAYERS)), LensNorm()
        self.unembed.W_U, self.unembed.b_U = parameter(WIDTH, VOCAB_SIZE), parameter(VOCAB_SIZE)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.embed.W_E[idx] + self.pos_embed.W_pos[: idx.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_final(x) @ self.unembed.W_U + self.unembed.b_U


class WqAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        return self.wo(join(attention(heads(self.wq(x)), heads(self.wk(x)), heads(self.wv(x)))))


class WqFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w2, self.w1 = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)))


class WqBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ffn_norm, self.attention_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.feed_forward = WqAttention(), WqFeedForward()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class WqGPT(nn.Module):
    """Biases only in the norms; square feed-forward matrices; names like wq; modules in an unusual order."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Linear(WIDTH, VOCAB_SIZE, bias=False)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.tok_embeddings = nn.Embedding(VOCAB_SIZE, WIDTH)
        self.layers = nn.ModuleList(WqBlock() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.tok_embeddings(idx) + self.positions.weight[: idx.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


class SeqAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(join(attention(heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x)))))


class SeqBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = SeqAttention(), nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.self_attn_layer_norm(x))
        return x + self.fc2(F.relu(self.fc1(self.final_layer_norm(x))))


class SeqDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens, self.embed_positions = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers, self.layer_norm = nn.ModuleList(SeqBlock() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.embed_tokens(idx) + self.embed_positions(torch.arange(idx.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class SeqGPT(nn.Module):
    """A decoder inside a model, a norm called final in each block, and ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Module()
        self.model.decoder, self.lm_head = SeqDecoder(), nn.Linear(WIDTH, VOCAB_SIZE, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        return self.lm_head(self.model.decoder(idx))
