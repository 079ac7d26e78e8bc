"""A model's shapes without its numbers."""

from __future__ import annotations

import torch

from gpt.config import GPTConfig
from gpt.model import GPT


def meta_model(config: GPTConfig) -> GPT:
    """A model on the meta device: it has every shape, and takes no memory whatever its size."""
    with torch.device("meta"):
        return GPT(config)
