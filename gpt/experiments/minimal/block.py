"""A transformer block, pre-norm as in GPT-2."""

from torch import Tensor, nn

from gpt.experiments.minimal.attention import CausalSelfAttention
from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.feed_forward import FeedForward
from gpt.experiments.minimal.layer_norm import LayerNorm


class TransformerBlock(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd)
        self.mlp = FeedForward(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x
