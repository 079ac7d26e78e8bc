"""The results written by the scaling command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from gpt.config import GPTConfig
from gpt.experiments.scaling import load_scaling, training_flops
from gpt.training.recipe import Recipe
from tests.gpt.training.tiny_run import write_stories
from tools.scaling import main

SIZES = {"small": (1, 1, 8), "smaller still": (1, 1, 4)}
RECIPE = Recipe(vocab_size=261, block_size=16, n_layer=1, n_head=1, n_embd=8, steps=5, batch_size=4, warmup=1)


def test_training_takes_three_times_the_operations_of_a_forward_pass() -> None:
    config = GPTConfig(vocab_size=50, block_size=4, n_layer=2, n_head=1, n_embd=8)
    weights = 2 * (4 * 64 + 8 * 64) + 8 * 50
    attention = 2 * 8 * 2 * (1 + 2 + 3 + 4) / 4  # two products in two layers, over a mean of 2.5 tokens
    assert training_flops(config) == pytest.approx(3 * 2 * (weights + attention))


def test_the_command_writes_what_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpt.training.process.best_device", lambda: torch.device("cpu"))
    monkeypatch.setattr("tools.scaling.SIZES", {"tiny": (1, 1, 4)})
    monkeypatch.setattr("tools.scaling.BUNDLED", tmp_path / "nowhere")
    monkeypatch.setattr("tools.scaling.Recipe", lambda **given: Recipe(**{**vars(RECIPE), "steps": given["steps"]}))
    write_stories(tmp_path / "stories.txt")
    out = tmp_path / "new" / "scaling.json"
    assert main([str(tmp_path / "stories.txt"), "--out", str(out), "--steps", "3"]) == 0
    found = load_scaling(out)
    assert found.command == "python -m tools.scaling stories.txt --steps 3"
    assert list(out.parent.iterdir()) == [out]  # the saved state is deleted
    (curve,), (llama,) = found.curves, found.llama
    assert [point.tokens for point in llama.points] == [64, 128, 192]
    assert llama.points[-1].loss != curve.points[-1].loss
    assert [point.tokens for point in curve.points] == [64, 128, 192]
    assert f"{curve.points[-1].bits_per_byte:.4f} bits per byte" in capsys.readouterr().out
    assert json.loads(out.read_text())["curves"][0]["parameters"] == curve.parameters


def test_a_missing_text_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.txt"), "--out", str(tmp_path / "out.json")]) == 1
    assert "tools.scaling: there is no file" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"no file out\.json: create it with python -m tools\.scaling"):
        load_scaling(tmp_path / "out.json")
