"""Effects of the causal mask and the padding mask in attention."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.model import GPT, ForwardContext
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch, Trainer

BATCH_SIZE, LEARNING_RATE, N_LETTERS = 32, 0.01, 8  # settings for training on random text
FLOOR = math.log(N_LETTERS)  # lowest possible loss, in nats, for a model that cannot attend to the letter it predicts
MaskEffect = tuple[Tensor, Tensor]  # changes of the prediction at each token with and without a mask, (T,) each


@torch.inference_mode()
def future_leak(model: GPT, ids: Sequence[int], position: int, token_id: int) -> MaskEffect:
    """Measure how each prediction changes, by `total_variation`, when `token_id` replaces the token at `position`."""
    before = torch.tensor([list(ids)], device=model.device)
    after = before.clone()
    after[0, position] = token_id
    with_mask = total_variation(model(before)[0], model(after)[0])
    return with_mask, total_variation(unmasked_logits(model, before)[0], unmasked_logits(model, after)[0])


@torch.inference_mode()
def padding_effect(
    model: GPT, ids: Sequence[int], n_padding: int, *, pad_id: int = 0, side: Literal["left", "right"] = "left"
) -> MaskEffect:
    """Measure how each prediction changes when a text is padded, with and without the padding mask.

    With padding on the right, the causal mask is enough. Raises ValueError if text and padding exceed the context.
    """
    left, right = (n_padding, 0) if side == "left" else (0, n_padding)
    idx = F.pad(torch.tensor([list(ids)], device=model.device), (left, right), value=pad_id)  # (1, T + n_padding)
    mask = F.pad(torch.ones(1, len(ids), device=model.device), (left, right))
    real = slice(left, left + len(ids))
    alone = model(idx[:, real])[0]
    masked, unmasked = model(idx, attention_mask=mask)[0, real], model(idx)[0, real]
    return total_variation(alone, masked), total_variation(alone, unmasked)


def train_on_random_text(*, steps: int = 100, seed: int = 0) -> Iterator[tuple[list[float], list[float]]]:
    """Train a tiny model with the causal mask and one without on uniformly random letters.

    Yields all losses of both models so far, in nats, after each update. Without the mask, a model can attend to the
    letter that it predicts.
    """
    recipe = Recipe(
        block_size=16, n_layer=2, n_head=2, n_embd=32, steps=steps, batch_size=BATCH_SIZE, seed=seed,
        optimizer="adamw", adamw_lr=LEARNING_RATE, adamw_weight_decay=0.0, warmup=0, decay_from=1.0,
    )  # fmt: skip
    masked, unmasked = (
        Trainer(kind(recipe.model_config(N_LETTERS), generator=torch.Generator().manual_seed(seed)), recipe)
        for kind in (GPT, UnmaskedGPT)
    )
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(N_LETTERS, (BATCH_SIZE, recipe.block_size + 1), generator=generator)  # (B, T + 1)
        for trainer in (masked, unmasked):
            trainer.update(Batch.of_rows(rows))
        yield [*masked.losses], [*unmasked.losses]


class UnmaskedGPT(GPT):
    """A GPT that computes its loss without the causal mask."""

    def loss(self, idx: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(unmasked_logits(self, idx).flatten(0, 1), targets.flatten())


def unmasked_logits(model: GPT, idx: Tensor) -> Tensor:
    """Return the logits (B, T, vocab_size) for ids (B, T) without the causal mask, using the same weights."""
    T = idx.shape[1]
    positions = torch.arange(T, device=idx.device)
    everything = torch.ones(T, T, dtype=torch.bool, device=idx.device)
    ctx = ForwardContext(attn_mask=everything, is_causal=False).with_positions(model.config, positions)
    return model.logits(model.hidden_states_in(ctx, idx, positions))


def total_variation(logits: Tensor, other_logits: Tensor) -> Tensor:
    """Return the total variation distance between predictions, half the sum of |p - q|: (..., vocab_size) -> (...)."""
    return (logits.float().softmax(-1) - other_logits.float().softmax(-1)).abs().sum(-1) / 2
