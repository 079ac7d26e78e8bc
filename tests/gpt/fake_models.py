"""Models for tests of generation: a tiny random one, and fakes with known logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import tiktoken
import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import END_OF_TEXT, GPT2_PATTERN, Tokenizer
from tests.gpt.family_configs import FAMILIES, randomized

N_VOCAB, EOT = 260, 259


@lru_cache
def tiny_tokenizer() -> Tokenizer:
    """Return a vocabulary of bytes, three merges, and end-of-text as 259. Some characters take several tokens."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b" a": 258}
    special = {END_OF_TEXT: EOT}
    return Tokenizer(tiktoken.Encoding("tiny", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special))


def tiny_model(block_size: int = 24, n_layer: int = 2, seed: int = 3, **options: Any) -> LoadedModel:
    """Return a real model with random weights."""
    torch.manual_seed(seed)
    config = GPTConfig(vocab_size=N_VOCAB, block_size=block_size, n_layer=n_layer, n_head=2, n_embd=16, **options)
    model = GPT(config).eval()
    return LoadedModel("tiny", model, tiny_tokenizer(), torch.device("cpu"), "fp32")


def family_model(name: str, block_size: int = 24) -> LoadedModel:
    """Return a random model of a family, with this vocabulary."""
    config = replace(FAMILIES[name], vocab_size=N_VOCAB, block_size=block_size)
    model = randomized(GPT(config, generator=torch.Generator().manual_seed(3)))
    return LoadedModel(name, model, tiny_tokenizer(), torch.device("cpu"), "fp32")


class CountsPasses(GPT):
    """A model whose final-norm state at a position is its index. `calls` lists the number of tokens of each pass."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.calls: list[int] = []

    def hidden_states(self, idx: Tensor, *, cache: Any, **_: object) -> Tensor:
        T = idx.shape[1]
        self.calls.append(T)
        hidden = torch.zeros(1, T, self.config.n_embd)
        hidden[0, :, 0] = torch.arange(cache.length, cache.length + T)
        cache.reserve(cache.length + T)
        cache.advance(T)
        return hidden


class KnowsLastToken(GPT):
    """A model whose final-norm state at a position is the id of its token."""

    def hidden_states(self, idx: Tensor, *, cache: Any, **_: object) -> Tensor:
        states = idx[..., None].float().expand(-1, -1, self.config.n_embd)
        cache.reserve(cache.length + idx.shape[1])
        cache.advance(idx.shape[1])
        return states


class TableHead(torch.nn.Module):
    """A head whose logits are rows of a table, indexed by the first element of the state."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, hidden: Tensor) -> Tensor:
        return self.rows[hidden[..., 0].long()]


def fake_model(rows: Tensor) -> LoadedModel:
    """Return a model with logits rows[n] at position n; `rows` is (block_size, N_VOCAB)."""
    config = GPTConfig(vocab_size=N_VOCAB, block_size=len(rows), n_layer=1, n_head=1, n_embd=4)
    model = CountsPasses(config).eval()
    model.lm_head = TableHead(rows)
    return LoadedModel("fake", model, tiny_tokenizer(), torch.device("cpu"), "fp32")


def bigram_model(chances: Mapping[int, Mapping[int, float]], block_size: int = 24) -> LoadedModel:
    """Return a model in which b follows a with probability chances[a][b], whatever came before."""
    rows = torch.zeros(N_VOCAB, N_VOCAB)
    for token_id, row in chances.items():
        rows[token_id, list(row)] = torch.tensor(list(row.values()))
    model = KnowsLastToken(GPTConfig(vocab_size=N_VOCAB, block_size=block_size, n_layer=1, n_head=1, n_embd=4)).eval()
    model.lm_head = TableHead(rows.log())
    return LoadedModel("bigram", model, tiny_tokenizer(), torch.device("cpu"), "fp32")


def forced_model(script: Sequence[int], block_size: int = 24) -> LoadedModel:
    """Return a model whose most likely token after position n is script[n]."""
    rows = torch.zeros(block_size, N_VOCAB)
    for position, token_id in enumerate(script[:block_size]):
        rows[position, token_id] = 9.0
    return fake_model(rows)
