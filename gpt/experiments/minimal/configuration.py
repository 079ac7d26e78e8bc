"""The numbers that define a GPT."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    vocab_size: int = 50257
    block_size: int = 1024  # maximum tokens read at once
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768  # width of a token's vector
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"{self.n_head} heads cannot share a width of {self.n_embd}")

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head
