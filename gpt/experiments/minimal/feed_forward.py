"""The feed-forward network of a block."""

from torch import Tensor, nn

from gpt.experiments.minimal.activations import GELU
from gpt.experiments.minimal.configuration import Config


class FeedForward(nn.Module):
    """(B, T, C) -> (B, T, 4 C) -> (B, T, C), for each token separately."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.gelu = GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        neurons = self.gelu(self.c_fc(x))
        return self.dropout(self.c_proj(neurons))
