"""A GPT without its blocks and its norm."""

from torch import Tensor, nn

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.embedding import TokenEmbedding
from gpt.experiments.minimal.positions import PositionEmbedding


class Skeleton(nn.Module):
    """(B, T) ids -> (B, T, vocab_size), like the complete model."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.wte = TokenEmbedding(config.vocab_size, config.n_embd)
        self.wpe = PositionEmbedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList(nn.Identity() for _ in range(config.n_layer))
        self.ln_f = nn.Identity()
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight  # tied

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wpe(self.wte(idx))
        for block in self.h:
            x = block(x)  # returns x unchanged
        return self.lm_head(self.ln_f(x))
