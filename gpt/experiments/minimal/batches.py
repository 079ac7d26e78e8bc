"""Batches: rows of a text, and the same rows shifted by one token as targets."""

import torch
from torch import Tensor


class Batches:
    """Random rows of a text. The end of the text is held out for validation."""

    def __init__(self, ids: Tensor, block_size: int, held_out: float = 0.1) -> None:
        n = round(len(ids) * (1 - held_out))
        self.parts = {"train": ids[:n], "held_out": ids[n:]}
        self.block_size = block_size

    def batch(self, part: str, size: int) -> tuple[Tensor, Tensor]:
        ids, T = self.parts[part], self.block_size
        starts = torch.randint(len(ids) - T, (size,)).tolist()  # T + 1 ids each
        idx = torch.stack([ids[i : i + T] for i in starts])  # (B, T)
        targets = torch.stack([ids[i + 1 : i + T + 1] for i in starts])
        return idx, targets
