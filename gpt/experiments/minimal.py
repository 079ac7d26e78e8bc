"""Each part of a GPT in its shortest form, in the order of the lessons: each lesson prints its section.

Parameters have the same names as in `gpt.model`, so they can load its weights. The tests run every section as printed
and compare it with the model's code.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import regex
import torch
from torch import Tensor, nn
from torch.nn import functional as F

# %% tokenizer: Byte-pair encoding with a vocabulary that has already been learned.

WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def encode(text: str, ranks: dict[bytes, int]) -> list[int]:
    """ranks: {bytes of a token: id}. Tokens with smaller ids were learned earlier."""
    words = regex.findall(WORDS, text)  # tokens never cross words
    return [token_id for word in words for token_id in encode_word(word.encode(), ranks)]


def encode_word(word: bytes, ranks: dict[bytes, int]) -> list[int]:
    parts = [bytes([byte]) for byte in word]
    while pairs := [a + b for a, b in pairwise(parts) if a + b in ranks]:
        best = min(pairs, key=ranks.__getitem__)  # learned first
        i = next(i for i in range(len(parts)) if parts[i] + parts[i + 1] == best)
        parts[i : i + 2] = [best]
    return [ranks[part] for part in parts]


def decode(ids: list[int], ranks: dict[bytes, int]) -> str:
    tokens = {token_id: token for token, token_id in ranks.items()}
    return b"".join(tokens[i] for i in ids).decode("utf-8", "replace")


# %% merges: Learn a vocabulary by repeatedly merging the most frequent pair of neighbours.


class Merges:
    """Starts with the 256 bytes; each round adds one token."""

    def __init__(self, words: list[str]) -> None:
        self.words = [[bytes([byte]) for byte in word.encode()] for word in words]
        self.ranks = {bytes([byte]): byte for byte in range(256)}

    def learn(self) -> bytes | None:
        counts = Counter(pair for parts in self.words for pair in pairwise(parts))
        if not counts:
            return None  # every word is one token
        (a, b), _ = counts.most_common(1)[0]
        self.ranks.setdefault(a + b, len(self.ranks))
        self.words = [self.merge(parts, a, b) for parts in self.words]
        return a + b

    def merge(self, parts: list[bytes], a: bytes, b: bytes) -> list[bytes]:
        merged: list[bytes] = []
        for part in parts:
            if merged and (merged[-1], part) == (a, b):
                merged[-1] = a + b
            else:
                merged.append(part)
        return merged


# %% embedding: Token embedding: a row of numbers for each token in the vocabulary.


class TokenEmbedding(nn.Module):
    """(B, T) ids -> (B, T, C)."""

    def __init__(self, vocab_size: int, n_embd: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(vocab_size, n_embd))

    def forward(self, idx: Tensor) -> Tensor:
        return self.weight[idx]  # row idx of the matrix


# %% positions: Positions: learned vectors, or fixed sine waves.


class PositionEmbedding(nn.Module):
    """Adds a learned vector for each position: (B, T, C) -> (B, T, C)."""

    def __init__(self, block_size: int, n_embd: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(block_size, n_embd))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[1]]


def sine_positions(T: int, n_embd: int) -> Tensor:
    """Sine and cosine waves to add instead, (T, n_embd); n_embd must be even."""
    frequencies = 10000 ** (-torch.arange(0, n_embd, 2) / n_embd)
    angles = torch.arange(T)[:, None] * frequencies  # (T, C / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


# %% configuration: The numbers that define a GPT.


@dataclass(frozen=True)
class Config:
    vocab_size: int = 50257
    block_size: int = 1024  # maximum tokens read at once
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768  # width of a token's vector
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"{self.n_head} heads cannot share a width of {self.n_embd}")

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head


# %% layer_norm: Layer normalisation.


class LayerNorm(nn.Module):
    """Mean 0 and variance 1 over the last dimension, then scale and shift."""

    def __init__(self, n_embd: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)  # divides by n
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


# %% activations: GELU, in GPT-2's tanh approximation.


def gelu(x: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


# %% feed_forward: The feed-forward network of a block.


class FeedForward(nn.Module):
    """(B, T, C) -> (B, T, 4 C) -> (B, T, C), for each token separately."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        neurons = gelu(self.c_fc(x))
        return self.dropout(self.c_proj(neurons))


# %% average: Attention, step 1: every token becomes the mean of the past.


def mean_of_the_past(x: Tensor) -> Tensor:
    """(B, T, C) -> (B, T, C): the mean of each vector and all vectors before it."""
    T = x.shape[1]
    past = torch.ones(T, T).tril()  # row i: ones up to i
    weights = past / past.sum(dim=-1, keepdim=True)  # rows sum to 1
    return weights @ x


# %% dot_products: Attention, step 2: the weights come from dot products.


def dot_product_attention(x: Tensor) -> Tensor:
    """(B, T, C) -> (B, T, C): similar vectors get more weight."""
    T = x.shape[1]
    scores = x @ x.transpose(-2, -1)  # (B, T, T)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    return weights @ x


# %% queries: Attention, step 3: a head with query, key and value.


class Head(nn.Module):
    """(B, T, C) -> (B, T, hs)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.query = nn.Linear(config.n_embd, config.head_size)
        self.key = nn.Linear(config.n_embd, config.head_size)
        self.value = nn.Linear(config.n_embd, config.head_size)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, hs)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
        return weights @ v


# %% attention: Attention, step 4: all heads at once, a mask, and a projection.


class CausalSelfAttention(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)  # q, k, v
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.dropout)
        future = torch.ones(config.block_size, config.block_size).triu(1)
        self.register_buffer("future", future.bool(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.heads(x).transpose(1, 2).flatten(2)  # (B, T, C)
        return self.dropout(self.c_proj(heads))

    def heads(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, nh, T, hs)."""
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, nh, T, hs) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.future[:T, :T], -math.inf)
        weights = self.dropout(scores.softmax(dim=-1))  # (B, nh, T, T)
        return weights @ v


# %% verse: Attention whose heads can be switched off, to find out what each head does.


class SwitchedAttention(CausalSelfAttention):
    """(B, T, C) -> (B, T, C). on: (nh,), 1 for heads that are on and 0 for heads that are off."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.register_buffer("on", torch.ones(config.n_head), persistent=False)

    def heads(self, x: Tensor) -> Tensor:
        return super().heads(x) * self.on[:, None, None]  # with 0, a head adds nothing


# %% shortcuts: A deep network with or without shortcut connections.


class DeepNetwork(nn.Module):
    """widths: sizes of the layers, such as [3, 3, 3, 3, 3, 1]."""

    def __init__(self, widths: list[int], shortcuts: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.activation = gelu
        self.shortcuts = shortcuts

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            out = self.activation(layer(x))
            x = x + out if self.shortcuts and x.shape == out.shape else out
        return x


# %% block: A transformer block, pre-norm as in GPT-2.


class TransformerBlock(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd)
        self.mlp = FeedForward(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


# %% model: The whole GPT.


class GPT(nn.Module):
    """(B, T) ids -> (B, T, vocab_size) logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.wte = TokenEmbedding(config.vocab_size, config.n_embd)
        self.wpe = PositionEmbedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(TransformerBlock(config) for _ in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.drop(self.wpe(self.wte(idx)))  # (B, T, C)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


# %% skeleton: A GPT without its blocks and its norm.


class Skeleton(GPT):
    """(B, T) ids -> (B, T, vocab_size), like the complete model."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.h = nn.ModuleList(nn.Identity() for _ in range(config.n_layer))
        self.ln_f = nn.Identity()  # returns its input unchanged
        self.lm_head.weight = self.wte.weight  # tied


# %% initialisation: Weight tying, and GPT-2's initial weights.


class TiedGPT(GPT):
    """A GPT whose head shares the embedding matrix, with GPT-2's initial weights."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lm_head.weight = self.wte.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                depth = 2 * config.n_layer if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, std=0.02 / math.sqrt(depth))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.ones_(parameter)  # the scales of the norms


# %% parameters: Count the parameters in a GPT-2.


def n_parameters(config: Config, tied: bool = True, qkv_bias: bool = True) -> int:
    """Return the number of parameters in a GPT."""
    C = config.n_embd
    embeddings = config.vocab_size * C + config.block_size * C
    qkv = C * 3 * C + (3 * C if qkv_bias else 0)
    attention = qkv + C * C + C  # and c_proj
    feed_forward = C * 4 * C + 4 * C + 4 * C * C + C  # c_fc, c_proj
    norm = 2 * C
    block = norm + attention + norm + feed_forward
    head = 0 if tied else config.vocab_size * C
    return embeddings + config.n_layer * block + norm + head


# %% untrained: A model with random weights that depend only on the seed.


def untrained_model(config: Config, seed: int) -> TiedGPT:
    """Return a model whose random weights are determined by the seed."""
    torch.manual_seed(seed)
    return TiedGPT(config).eval()


# %% batches: Batches: rows of a text, and the same rows shifted by one token as targets.


def split(ids: Tensor, held_out: float = 0.1) -> tuple[Tensor, Tensor]:
    """Hold out the end of a text for validation."""
    n = round(len(ids) * (1 - held_out))
    return ids[:n], ids[n:]


def batch(ids: Tensor, T: int, size: int = 8) -> tuple[Tensor, Tensor]:
    """Random rows of a text, and the token that follows each token: (size, T) both."""
    starts = torch.randint(len(ids) - T, (size,)).tolist()  # T + 1 ids each
    idx = torch.stack([ids[i : i + T] for i in starts])
    targets = torch.stack([ids[i + 1 : i + T + 1] for i in starts])
    return idx, targets


# %% loss: Cross-entropy: how much the next tokens surprise the model.


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """logits (N, vocab_size), targets (N,) -> mean loss in nats."""
    log_p = logits.log_softmax(dim=-1)  # finite even where p rounds to 0
    return -log_p[torch.arange(len(targets)), targets].mean()


def loss(model: nn.Module, ids: Tensor) -> Tensor:
    """(B, T) ids: every token except the first is a target."""
    idx, targets = ids[:, :-1], ids[:, 1:]
    logits = model(idx)  # (B, T - 1, vocab_size)
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


# %% greedy: Greedy generation.


@torch.inference_mode()
def generate(model: GPT, idx: Tensor, n: int) -> Tensor:
    """(B, T) ids -> (B, T + n)."""
    for _ in range(n):
        context = idx[:, -model.config.block_size :]  # crop to the context
        logits = model(context)[:, -1]  # after the last token
        best = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
        idx = torch.cat((idx, best), dim=1)
    return idx


# %% sampling: Draw a token with temperature and top-k.


def sample(logits: Tensor, temperature: float, top_k: int, u: float) -> int:
    """logits (vocab_size,) -> an id. top_k: 0 keeps all tokens. u: random number in [0, 1)."""
    if temperature == 0:
        return int(logits.argmax())
    best, ids = (logits / temperature).topk(min(top_k or len(logits), len(logits)))
    sums = best.softmax(dim=0).cumsum(dim=0)  # rises to 1
    return int(ids[torch.searchsorted(sums[:-1], u * sums[-1], right=True)])


# %% small: Attention and positions for texts with padding on the left.


def padded_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """q, k, v (B, nh, T, hs); mask (B, T): 1 for real tokens, 0 for padding."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    visible = torch.ones_like(scores, dtype=torch.bool).tril()  # the past
    visible &= mask[:, None, None].bool()  # only real tokens
    weights = scores.masked_fill(~visible, -math.inf).softmax(dim=-1)
    weights = weights.masked_fill(~visible, 0)  # fully masked rows would be NaN
    return weights @ v


def padded_positions(mask: Tensor) -> Tensor:
    """Positions (B, T), with real tokens counted from 0."""
    return (mask.cumsum(dim=-1) - 1).clamp(min=0)


# %% optimizer: AdamW, the optimizer that trains GPTs.


class AdamW:
    """Updates each parameter from two running means of its gradient."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, decay: float = 0.01) -> None:
        self.parameters = list(parameters)
        self.lr, self.decay, self.n = lr, decay, 0
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        self.n += 1
        for p, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            if p.grad is None:
                continue
            mean.lerp_(p.grad, 0.1)  # where the gradient points
            square.lerp_(p.grad**2, 0.001)  # how large it usually is
            m, s = mean / (1 - 0.9**self.n), square / (1 - 0.999**self.n)  # both started at 0
            p.mul_(1 - self.lr * self.decay)  # weight decay
            p.sub_(self.lr * m / (s.sqrt() + 1e-8))

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None


# %% training: The training loop, with the loss on held-out text.


def batch_loss(model: GPT, ids: Tensor) -> Tensor:
    idx, targets = batch(ids, model.config.block_size)
    return cross_entropy(model(idx).flatten(0, 1), targets.flatten())


@torch.no_grad()
def held_out_loss(model: GPT, ids: Tensor, n: int = 10) -> float:
    """Return the mean loss on n batches of the text that `split` held out."""
    model.eval()
    mean = sum(batch_loss(model, ids).item() for _ in range(n)) / n
    model.train()
    return mean


def train(model: GPT, ids: Tensor, steps: int, lr: float = 4e-3) -> Iterator[float]:
    """Update a model's weights, batch by batch. Yields the loss before each update."""
    optimizer = AdamW(model.parameters(), lr)
    model.train()
    for _ in range(steps):
        loss = batch_loss(model, ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


# %% schedule: The learning rate during training, and a limit on the gradient.


def learning_rate(step: int, high: float, low: float, warmup: int, steps: int) -> float:
    """Linear warm-up, then a cosine from `high` down to `low`. step: counted from 0."""
    if step < warmup:
        return high * (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return low + (high - low) * (1 + math.cos(math.pi * min(done, 1))) / 2


@torch.no_grad()
def clip_gradient(parameters: Iterable[nn.Parameter], most: float = 1.0) -> float:
    """Limit the joint norm of all gradients to `most`. Returns the norm before clipping."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
    for g in gradients:
        g.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


# %% dropout: Dropout.


class Dropout(nn.Module):
    """In training mode, sets each number to 0 with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        kept = torch.rand_like(x) >= self.p
        return x * kept / max(1 - self.p, 1e-12)  # keeps the expected sum


# %% layouts: Load GPT-2's weights in Hugging Face's format.

LINEAR = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


@torch.no_grad()
def load_gpt2(model: GPT, weights: dict[str, Tensor]) -> None:
    """Copy weights with GPT-2's names into a model."""
    for name, ours in model.state_dict().items():
        if name == "lm_head.weight":
            name = "wte.weight"  # tied
        theirs = weights[f"transformer.{name}"]
        theirs = theirs.T if name.endswith(LINEAR) else theirs  # stored transposed
        if ours.shape != theirs.shape:
            raise ValueError(f"{name}: {tuple(theirs.shape)} instead of {tuple(ours.shape)}")
        ours.copy_(theirs)


# %% next: Attention with a key-value cache and a fused kernel.


class CachedAttention(CausalSelfAttention):
    """(B, T, C) -> (B, T, C), for T new tokens. The cache holds the earlier ones."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.cache: tuple[Tensor, Tensor] | None = None

    def heads(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, nh, T, hs)
        if self.cache is not None:
            k = torch.cat((self.cache[0], k), dim=2)  # (B, nh, S, hs)
            v = torch.cat((self.cache[1], v), dim=2)
        self.cache = k, v
        S = k.shape[2]
        visible = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        return F.scaled_dot_product_attention(q, k, v, visible)  # stores no weights


# %% concepts: Concepts: a residual-stream vector as the sum of a few directions from a long list.


class TopK(nn.Module):
    """A sparse autoencoder with n features, k of which are active on each token."""

    def __init__(self, n_embd: int, n: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.encoder = nn.Linear(n_embd, n)
        self.decoder = nn.Parameter(torch.randn(n, n_embd))
        self.center = nn.Parameter(torch.zeros(n_embd))

    def activity(self, x: Tensor) -> Tensor:
        """(..., n_embd) -> (..., n), with zeros except for the k largest."""
        values, features = self.encoder(x).topk(self.k, dim=-1)
        zeros = torch.zeros(*x.shape[:-1], len(self.decoder))
        return zeros.scatter(-1, features, values.relu())

    def forward(self, x: Tensor) -> Tensor:
        return self.activity(x) @ self.decoder + self.center  # approximately x

    def loss(self, x: Tensor) -> Tensor:
        """Return the distance between the sum and the vector, which training minimises."""
        return (self(x) - x).square().sum(dim=-1).mean()

    def turn_up(self, x: Tensor, feature: int, strength: float) -> Tensor:
        """Add a direction to every vector (..., n_embd) in a text."""
        return x + strength * self.decoder[feature]


# %% rotary: Rotary positions.


def rotate(x: Tensor, start: int = 0, base: float = 10000.0) -> Tensor:
    """Rotate queries or keys (..., T, hs) by their positions; hs must be even."""
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half) / half)
    positions = torch.arange(start, start + x.shape[-2])
    angles = positions[:, None] * frequencies  # (T, hs / 2)
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, dim=-1)  # pairs to rotate
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


# %% rms_norm: RMSNorm.


class RMSNorm(nn.Module):
    """Divides by the root mean square, without subtracting the mean or adding a shift."""

    def __init__(self, n_embd: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x / torch.sqrt(mean_square + self.eps) * self.weight


# %% swiglu: Llama's gated feed-forward network.


class SwiGLU(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, n_embd: int, n_ff: int) -> None:
        super().__init__()
        self.c_gate = nn.Linear(n_embd, n_ff, bias=False)
        self.c_fc = nn.Linear(n_embd, n_ff, bias=False)
        self.c_proj = nn.Linear(n_ff, n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.c_gate(x)
        gate = gate * torch.sigmoid(gate)  # SiLU
        return self.c_proj(gate * self.c_fc(x))


# %% grouped_queries: Attention in which several query heads share one key and value head.


class GroupedQueryAttention(nn.Module):
    """(B, T, C) -> (B, T, C). n_kv_head must divide the number of heads."""

    def __init__(self, config: Config, n_kv_head: int) -> None:
        super().__init__()
        self.sizes = config.n_head, n_kv_head, n_kv_head
        self.c_attn = nn.Linear(config.n_embd, sum(self.sizes) * config.head_size, bias=False)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, sum(self.sizes), -1).transpose(1, 2)
        q, k, v = qkv.split(self.sizes, dim=1)  # (B, nh or kv, T, hs)
        group = self.sizes[0] // self.sizes[1]  # query heads per key head
        q, k = rotate(q), rotate(k)
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(heads.transpose(1, 2).reshape(B, T, C))


# %% no_biases: A Llama block, which has no biases.


class LlamaBlock(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config, n_kv_head: int, n_ff: int) -> None:
        super().__init__()
        self.ln_1 = RMSNorm(config.n_embd)
        self.attn = GroupedQueryAttention(config, n_kv_head)
        self.ln_2 = RMSNorm(config.n_embd)
        self.mlp = SwiGLU(config.n_embd, n_ff)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x
