"""Tied weights: counts and effects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpt.config import GPTConfig
from gpt.experiments.tying import embedding_effects, tied_and_untied

TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_the_curriculums_counts_with_and_without_tying() -> None:
    counts = tied_and_untied(GPTConfig(qkv_bias=False))
    assert (counts.tied, counts.untied, counts.saved) == (124_412_160, 163_009_536, 50257 * 768)


def test_a_tied_embedding_predicts_its_own_tokens_and_gets_a_gradient_in_every_row() -> None:
    config = GPTConfig(vocab_size=500, block_size=16, n_layer=1, n_head=2, n_embd=64)
    tied, untied = embedding_effects(config, TEXT), embedding_effects(replace(config, tie_weights=False), TEXT)
    assert tied.own_token_best == 1.0
    assert untied.own_token_best < 0.02
    assert tied.rows_with_gradient == 1.0
    assert untied.rows_with_gradient == pytest.approx(len(set(TEXT[:-1])) / 500)
