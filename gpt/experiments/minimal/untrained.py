"""A model with random weights, reproducible from its seed."""

import torch

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.initialisation import TiedGPT


def untrained_model(config: Config, seed: int) -> TiedGPT:
    """Return a model with random weights drawn from a seed."""
    torch.manual_seed(seed)
    return TiedGPT(config).eval()
