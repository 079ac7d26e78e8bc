"""Sampling settings, and the comparison of a document with a new one."""

from __future__ import annotations

import torch

from gpt import Generation, SamplingParams

GREEDY = SamplingParams(temperature=0, seed=0)
WARM = SamplingParams(temperature=3.0, seed=5)


def state(document: Generation) -> tuple[list[int], list[int], str]:
    return list(document.ids), list(document.path), document.text


def all_logits(document: Generation) -> torch.Tensor:
    document.read()
    return torch.stack([document.logits(position) for position in range(document.n_read)])


def assert_equals_fresh(document: Generation) -> None:
    """Assert that every position has the logits and attention of a new document with the same text."""
    fresh = Generation(document.loaded, document.ids[: document.block_size])
    torch.testing.assert_close(all_logits(document), all_logits(fresh), atol=1e-5, rtol=0)
    for layer in range(document.loaded.model.config.n_layer):
        torch.testing.assert_close(document.attn_weights(layer), fresh.attn_weights(layer), atol=1e-5, rtol=0)
