"""Training on the characters of a text from the command line."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from gpt.generate import generate
from gpt.models.sources import load_model
from gpt.sampling import SamplingParams
from gpt.training.command_line import main
from tools.model_card import main as write_card

pytestmark = pytest.mark.thorough

TEXT = "".join(f"{n} bottles of tea on the wall\n" for n in range(99))
TINY = shlex.split("--block-size 32 --n-layer 1 --n-head 2 --n-embd 16 --batch-size 4 --steps 6 --every 3")


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """train(out, *more arguments): do a tiny run on the CPU on the characters of TEXT, and return its exit code."""
    monkeypatch.setattr("gpt.training.trainer.best_device", lambda: torch.device("cpu"))
    (tmp_path / "tea.txt").write_text(TEXT, encoding="utf-8")
    return lambda out, *more: main(["--characters", str(tmp_path / "tea.txt"), "--out", str(out), *TINY, *more])


def test_a_run_on_characters_needs_nothing_beyond_the_app_and_leaves_a_model(
    tmp_path: Path,
    train: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    extra = ("tokenizers", "matplotlib")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in extra else find_spec(name))
    assert train(tmp_path / "teas") == 0
    best = tmp_path / "teas" / "best"
    assert {path.name for path in best.iterdir()} == {"characters.json", "config.json", "model.safetensors"}
    loaded = load_model(best, device="cpu")
    assert "".join(loaded.tokenizer.tokens) == "".join(sorted(set(TEXT)))
    text = "".join(step.text for step in generate(loaded, "7 bottles", SamplingParams(seed=1), 12))
    assert len(text) == 12
    assert set(text) <= set(TEXT)

    assert write_card([str(tmp_path / "teas"), "--data", "A song.", "--language", "en"]) == 0
    assert "matplotlib is not installed, so there will be no curve.png" in capsys.readouterr().err
    body = (best / "README.md").read_text(encoding="utf-8")
    n_held_back = len(TEXT) - int(0.9 * len(TEXT))
    for said in (
        f"{len(set(TEXT))} different characters of the text",
        f"{len(TEXT):,} characters. Split: the last {n_held_back:,}",
        "python -m gpt.training --characters tea.txt --out teas --every 3 --block-size 32",
    ):
        assert said in body
    assert not [other for other in ("stories", "end-of-text", "vocab_size", "![") if other in body]

    (tmp_path / "tea.txt").write_text(TEXT.replace("bottles", "BOXES"), encoding="utf-8")
    assert train(tmp_path / "teas", "--resume") == 1
    assert "is not the text that the run" in capsys.readouterr().err


def test_the_shakespeare_preset_needs_no_file(
    tmp_path: Path, at_step: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpt.training.trainer.best_device", lambda: torch.device("cpu"))
    at_step(1, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["--preset", "shakespeare-cpu", "--out", str(tmp_path), "--n-layer", "1"]) == 128 + signal.SIGTERM
    assert len(json.loads((tmp_path / "characters.json").read_text(encoding="utf-8"))) == 65
    recipe = torch.load(tmp_path / "last.pt", weights_only=True)["recipe"]
    assert (recipe["adamw_beta2"], recipe["n_embd"], recipe["n_layer"]) == (0.99, 128, 1)
