"""Load GPT-2's weights in Hugging Face's format."""

import torch
from torch import Tensor

from gpt.experiments.minimal.model import GPT

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
