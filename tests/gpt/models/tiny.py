"""A small model for saving and loading."""

from __future__ import annotations

from gpt.config import GPTConfig
from gpt.model import GPT
from tests.gpt.family_configs import randomized

N_VOCAB = 261  # size of the fixture byte_tokenizer


def tiny(**options: object) -> GPT:
    """Return a model in evaluation mode with every parameter random."""
    sizes = {"vocab_size": N_VOCAB, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 16}
    return randomized(GPT(GPTConfig(**{**sizes, **options})), std=0.1)
