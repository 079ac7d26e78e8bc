"""Models without weights."""

from __future__ import annotations

import torch

from gpt.config import GPTConfig
from gpt.model import GPT


def meta_model(config: GPTConfig) -> GPT:
    """A model on the meta device, which has shapes and no memory."""
    with torch.device("meta"):
        return GPT(config)
