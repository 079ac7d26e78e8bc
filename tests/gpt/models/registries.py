"""Registries with memory for only a few tiny models."""

from __future__ import annotations

from pathlib import Path

import torch

from gpt.config import GPTConfig
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.loading import memory_of
from gpt.models.registry import Registry

CONFIG = GPTConfig(vocab_size=50, block_size=8, n_layer=1, n_head=2, n_embd=8)
CPU = torch.device("cpu")


def registry_for(folders: list[Path], n_models: float) -> tuple[Registry, list[str]]:
    """Return a registry with memory for this many models, and the models' names."""
    size = memory_of(open_checkpoint(folders[0]), "fp32", CPU)
    registry = Registry(memory=int(n_models * size), device=CPU)
    return registry, [registry.add(folder) for folder in folders]
