"""Muon, compared with PyTorch's implementation."""

from __future__ import annotations

import torch

from gpt.training.muon import Muon, orthogonal


def test_the_singular_values_become_equal():
    for shape in ((12, 30), (30, 12)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape, generator=torch.Generator().manual_seed(0))))
        assert 0.5 < values.min() <= values.max() < 1.5


def test_its_updates_are_those_of_torch():
    generator = torch.Generator().manual_seed(0)
    start, target = (torch.randn(12, 30, generator=generator) for _ in range(2))
    ends = []
    for make in (
        lambda weights: Muon(weights, 0.05, 0.1),
        lambda weights: torch.optim.Muon(weights, 0.05, 0.1, adjust_lr_fn="match_rms_adamw"),  # runs in bfloat16
    ):
        weight = torch.nn.Parameter(start.clone())
        optimizer = make([weight])
        for _ in range(5):
            optimizer.zero_grad()
            (weight - target).square().sum().backward()
            optimizer.step()
        ends.append(weight.detach() - start)
    assert (ends[0] - ends[1]).norm() < 0.02 * ends[1].norm()
