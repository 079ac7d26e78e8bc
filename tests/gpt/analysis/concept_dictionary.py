"""A dictionary with known features: feature i is active where element i of the residual stream is positive."""

from __future__ import annotations

import torch

from gpt.analysis.concepts import NONE, WINDOW, Concepts, Dictionary, NamedConcept


def axis_dictionary(n_embd: int = 16, active: int = 3) -> Dictionary:
    """Create one feature for each of the n_embd elements.

    Feature 0 is strongest on the tokens 97 and 98 and has a natural strength of 2. It has one snippet, which starts at
    the third token of its text.
    """
    axes, filled = torch.eye(n_embd), torch.full((n_embd, 2), NONE, dtype=torch.int32)
    tokens, promotes, starts, peaks = filled.clone(), filled.clone(), filled.clone(), torch.zeros(n_embd, 2)
    tokens[0], promotes[0] = torch.tensor([97, 98]), torch.tensor([99, 100])
    promotes[1] = torch.tensor([97, 100])
    starts[0, 0], peaks[0, 0] = 2, 2.0
    tints = torch.zeros(n_embd, 2, WINDOW, dtype=torch.uint8)
    tints[0, 0, :2] = torch.tensor([0, 255])
    share = torch.linspace(0.1, 0.0, n_embd)
    zero = torch.zeros(n_embd)
    return Dictionary(axes, axes.clone(), zero, zero.clone(), active, share, tokens, promotes, starts, peaks, tints)


def axis_concepts(layer: int = 0, named: tuple[NamedConcept, ...] = ()) -> Concepts:
    """Create the concepts of a model with that dictionary after one layer."""
    return Concepts({layer: axis_dictionary()}, torch.arange(90, 120, dtype=torch.int32), named)
