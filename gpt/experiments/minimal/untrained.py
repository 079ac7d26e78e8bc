"""A model with random weights, the same for the same seed."""

import torch

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.initialisation import TiedGPT


def untrained_model(config: Config, seed: int) -> TiedGPT:
    """Return a model with the random weights of a seed."""
    torch.manual_seed(seed)
    return TiedGPT(config).eval()
