"""The two masks of attention, and what goes wrong without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.checks import check_position
from gpt.config import GPTConfig
from gpt.model import GPT, ForwardContext, rotary_angles


@dataclass(frozen=True)
class MaskEffect:
    """How far the predicted distribution of each real token moves, with a mask and without; (T,) each.

    Total variation: half the sum of |p - q| over the vocabulary, 0 where nothing changes and 1 at most.
    """

    with_mask: Tensor
    without_mask: Tensor


@dataclass(frozen=True)
class Cheating:
    """Losses in nats, one for each update, of two models that learn a text of pure chance.

    Nobody can know the next letter: `floor` is the best honest loss. Without the causal mask it is looked up.
    """

    with_mask: tuple[float, ...]
    without_mask: tuple[float, ...]
    floor: float


@torch.inference_mode()
def future_leak(model: GPT, ids: Sequence[int], position: int, token_id: int) -> MaskEffect:
    """What each position's prediction owes to the token at one place: there, `token_id` is put in its stead.

    With the causal mask nothing before that place moves. Raises ValueError for a place outside of the text.
    """
    check_position(position, len(ids))
    device = model.device
    before = torch.tensor([list(ids)], device=device)
    after = before.clone()
    after[0, position] = token_id
    return MaskEffect(
        moved(model(before)[0], model(after)[0]),
        moved(unmasked_logits(model, before)[0], unmasked_logits(model, after)[0]),
    )


@torch.inference_mode()
def padding_effect(
    model: GPT, ids: Sequence[int], n_padding: int, *, pad_id: int = 0, side: Literal["left", "right"] = "left"
) -> MaskEffect:
    """What padding does to the predictions of a text, with the padding mask and without it.

    On the right the causal mask alone hides it from every real token. Raises ValueError if both do not fit.
    """
    device = model.device
    left, right = (n_padding, 0) if side == "left" else (0, n_padding)
    idx = F.pad(torch.tensor([list(ids)], device=device), (left, right), value=pad_id)  # (1, T + n_padding)
    mask = F.pad(torch.ones(1, len(ids), device=device), (left, right))
    real = slice(left, left + len(ids))
    alone = model(idx[:, real])[0]
    return MaskEffect(moved(alone, model(idx, attention_mask=mask)[0, real]), moved(alone, model(idx)[0, real]))


def learn_chance(*, steps: int = 100, letters: int = 8, seed: int = 0) -> Cheating:
    """Train a tiny model on random letters twice, with the causal mask and without it; takes a few seconds."""
    *_, last = chance_losses(steps=steps, letters=letters, seed=seed)
    return last


def chance_losses(*, steps: int = 100, letters: int = 8, seed: int = 0) -> Iterator[Cheating]:
    """The same, told as it learns: after each update of both models, all their losses so far."""
    config = GPTConfig(vocab_size=letters, block_size=16, n_layer=2, n_head=2, n_embd=32)
    floor = torch.tensor(float(letters)).log().item()
    sides = [ChanceLearner(forward, config, seed) for forward in (GPT.forward, unmasked_logits)]
    for _ in range(steps):
        for side in sides:
            side.update()
        yield Cheating(tuple(sides[0].losses), tuple(sides[1].losses), floor)


class ChanceLearner:
    """One model that learns texts of random letters by a forward pass of its own."""

    def __init__(self, forward: Callable[[GPT, Tensor], Tensor], config: GPTConfig, seed: int) -> None:
        self.forward, self.config = forward, config
        self.model = GPT(config, generator=torch.Generator().manual_seed(seed))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.generator = torch.Generator().manual_seed(seed)
        self.losses: list[float] = []

    def update(self) -> None:
        """Learn from 32 new texts."""
        T, letters = self.config.block_size, self.config.vocab_size
        text = torch.randint(letters, (32, T + 1), generator=self.generator)  # (B, T + 1)
        with torch.enable_grad():
            logits = self.forward(self.model, text[:, :-1])  # (B, T, letters)
            loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(loss.item())


def unmasked_logits(model: GPT, idx: Tensor) -> Tensor:
    """The logits, (B, T, vocab_size), if every token could look at every other: the same weights, nothing hidden."""
    T = idx.shape[1]
    positions = torch.arange(T, device=idx.device)
    nothing_hidden = torch.ones(T, T, dtype=torch.bool, device=idx.device)
    rotary = rotary_angles(positions, model.config.head_size) if model.wpe is None else None
    ctx = ForwardContext(attn_mask=nothing_hidden, is_causal=False, rotary=rotary)
    x = model.wte(idx) if model.wpe is None else model.wte(idx) + model.wpe(positions)  # (B, T, C)
    for block in model.h:
        x = block(x, ctx)
    return model.lm_head(model.ln_f(x))


def moved(logits: Tensor, others: Tensor) -> Tensor:
    """Total variation between two distributions for each row of (T, vocab_size)."""
    return (logits.float().softmax(-1) - others.float().softmax(-1)).abs().sum(-1) / 2
