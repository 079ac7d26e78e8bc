"""The results written by the scaling command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpt.config import GPTConfig
from tools.scaling import main, training_flops


def test_training_takes_three_times_the_operations_of_a_forward_pass() -> None:
    config = GPTConfig(vocab_size=50, block_size=4, n_layer=2, n_head=1, n_embd=8)
    weights = 2 * (4 * 64 + 8 * 64) + 8 * 50
    attention = 2 * 8 * 2 * (1 + 2 + 3 + 4) / 4  # two products in two layers, over a mean of 2.5 tokens
    assert training_flops(config) == pytest.approx(3 * 2 * (weights + attention))


def test_a_missing_text_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.txt"), "--out", str(tmp_path / "out.json")]) == 1
    assert "tools.scaling: there is no file" in capsys.readouterr().err
