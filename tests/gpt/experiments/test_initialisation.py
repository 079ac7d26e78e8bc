"""Untrained models: their predictions, and the norms of their residual stream."""

from __future__ import annotations

import math

import pytest
import torch

from gpt.config import GPTConfig
from gpt.experiments.initialisation import initial_prediction, model_norms, residual_norms
from gpt.model import GPT
from gpt.trace import Trace

TEXT = [5, 1, 60, 8, 8, 30, 2]
SMALL = GPTConfig(vocab_size=500, block_size=64, n_layer=12, n_head=4, n_embd=64)


def test_an_untrained_model_has_the_loss_of_the_uniform_distribution() -> None:
    first = initial_prediction(SMALL)
    assert first.uniform_loss == math.log(500)
    assert first.loss == pytest.approx(first.uniform_loss, abs=0.05)
    assert first.logits.shape == (500,)
    # Normalised states times rows drawn from N(0, 0.02).
    assert first.logits_std == pytest.approx(0.02 * math.sqrt(64), rel=0.3)


def test_the_scaling_keeps_the_residual_stream_from_growing() -> None:
    norms = residual_norms(SMALL)
    assert len(norms.scaled) == len(norms.unscaled) == 13
    assert norms.scaled[0] == norms.unscaled[0] == pytest.approx(0.02 * math.sqrt(2 * 64), rel=0.05)
    grown = [math.sqrt(row[-1] ** 2 - row[0] ** 2) for row in (norms.scaled, norms.unscaled)]
    assert grown[1] / grown[0] == pytest.approx(math.sqrt(2 * 12), rel=0.25)  # each branch is longer by this factor


def test_norms_of_a_running_model_are_those_of_its_trace(model: GPT) -> None:
    trace = Trace()
    model(torch.tensor([TEXT]), trace=trace)
    norms = model_norms(model, TEXT)
    assert norms[0] == pytest.approx(trace.layers[0].resid_pre[0].norm(dim=1).mean().item())
    assert norms[2] == pytest.approx(trace.layers[2].resid_pre[0].norm(dim=1).mean().item())
    assert norms[3] == pytest.approx(trace.layers[2].resid_post[0].norm(dim=1).mean().item())
