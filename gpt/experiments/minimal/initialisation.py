"""Weight tying, and GPT-2's initial weights."""

import math

from torch import nn

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.model import GPT


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
