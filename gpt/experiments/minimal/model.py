"""The whole GPT."""

from torch import Tensor, nn

from gpt.experiments.minimal.block import TransformerBlock
from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.embedding import TokenEmbedding
from gpt.experiments.minimal.layer_norm import LayerNorm
from gpt.experiments.minimal.positions import PositionEmbedding


class GPT(nn.Module):
    """(B, T) ids -> (B, T, vocab_size) logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.wte = TokenEmbedding(config.vocab_size, config.n_embd)
        self.wpe = PositionEmbedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(TransformerBlock(config) for _ in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.drop(self.wpe(self.wte(idx)))  # (B, T, C)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))
