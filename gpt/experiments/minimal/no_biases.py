"""A Llama block, which has no biases."""

from torch import Tensor, nn

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.grouped_queries import GroupedQueryAttention
from gpt.experiments.minimal.rms_norm import RMSNorm
from gpt.experiments.minimal.swiglu import SwiGLU


class LlamaBlock(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config, n_kv_head: int, n_ff: int) -> None:
        super().__init__()
        self.ln_1 = RMSNorm(config.n_embd)
        self.attn = GroupedQueryAttention(config, n_kv_head)
        self.ln_2 = RMSNorm(config.n_embd)
        self.mlp = SwiGLU(config.n_embd, n_ff)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))
