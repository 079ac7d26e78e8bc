"""Configuration of a GPT model."""

from dataclasses import dataclass
from typing import Literal, get_args

from gpt.checks import check_choice, check_integer
from gpt.errors import GPTError

Activation = Literal["gelu_tanh", "gelu", "relu", "silu"]
Position = Literal["learned", "rotary"]


@dataclass(frozen=True)
class GPTConfig:
    """Hyperparameters of a GPT-2-shaped model, named as in nanoGPT; the defaults are GPT-2 small without dropout.

    vocab_size: rows of the token embedding.
    block_size: maximum length of a text, in tokens.
    n_layer, n_head, n_embd: blocks, heads per block, width of the residual stream.
    n_ff: width inside the feed-forward part; None means 4 x n_embd.
    dropout: probability, used in training mode only.
    bias: False removes every bias, those of LayerNorm too; qkv_bias (False removes those of the
        query, key and value projections) matters only where bias is True.
    head_bias: the output head has a bias, which GPT-2's has not.
    tie_weights: the output head shares the token embedding's matrix.
    activation: between the two feed-forward layers; GPT-2 has "gelu_tanh".
    position: "learned" (GPT-2: a vector per position) or "rotary" (RoFormer, arXiv 2104.09864).

    Raises ValueError, naming the value and the limit, for an invalid combination.
    """

    vocab_size: int = 50257
    block_size: int = 1024
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    n_ff: int | None = None
    dropout: float = 0.0
    bias: bool = True
    qkv_bias: bool = True
    head_bias: bool = False
    tie_weights: bool = True
    activation: Activation = "gelu_tanh"
    position: Position = "learned"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "n_ff"):
            value = getattr(self, name)
            if name == "n_ff" and value is None:
                continue
            check_integer(name, value, 1)
        if self.n_embd % self.n_head:
            raise GPTError("config.head_width", n_embd=self.n_embd, n_head=self.n_head)
        if not isinstance(self.dropout, (int, float)) or not 0.0 <= self.dropout < 1.0:
            raise GPTError("argument.below_one", name="dropout", value=self.dropout)
        check_choice("activation", self.activation, get_args(Activation))
        check_choice("position", self.position, get_args(Position))
        if self.position == "rotary" and self.head_size % 2:
            raise GPTError("config.rotary_head_width", width=self.head_size)

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.n_embd // self.n_head

    @property
    def ff_size(self) -> int:
        """Width inside the feed-forward part."""
        return 4 * self.n_embd if self.n_ff is None else self.n_ff


PRESETS: dict[str, GPTConfig] = {
    "gpt2": GPTConfig(dropout=0.1),
    "gpt2-medium": GPTConfig(n_layer=24, n_head=16, n_embd=1024, dropout=0.1),
    "gpt2-large": GPTConfig(n_layer=36, n_head=20, n_embd=1280, dropout=0.1),
    "gpt2-xl": GPTConfig(n_layer=48, n_head=25, n_embd=1600, dropout=0.1),
    "distilgpt2": GPTConfig(n_layer=6, dropout=0.1),
}
