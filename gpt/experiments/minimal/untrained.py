"""A model with random weights that depend only on the seed."""

import torch

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.initialisation import TiedGPT


def untrained_model(config: Config, seed: int) -> TiedGPT:
    """Return a model whose random weights are determined by the seed."""
    torch.manual_seed(seed)
    return TiedGPT(config).eval()
