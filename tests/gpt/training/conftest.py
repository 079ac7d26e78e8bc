"""Fixtures for the tests of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gpt.training.command_line import main
from gpt.training.evaluation import sample
from gpt.training.trainer import Batch, Trainer
from tests.gpt.training.tiny_run import CARD, TINY, write_stories
from tools.model_card import main as write_card

N_SAMPLE_TOKENS = 20  # more than fit into the context of a tiny run


@pytest.fixture(autouse=True, scope="session")
def short_samples() -> Iterator[None]:
    """Limit the texts that runs and their cards generate to a few tokens."""

    def short(*args: Any, max_new_tokens: int, **options: Any) -> str:
        return sample(*args, max_new_tokens=min(max_new_tokens, N_SAMPLE_TOKENS), **options)

    with pytest.MonkeyPatch.context() as patch:
        for module in ("gpt.training.command_line", "tools.model_card"):
            patch.setattr(f"{module}.sample", short)
        yield


@pytest.fixture
def stories_file(tmp_path: Path) -> Path:
    """The text file that `train` trains on."""
    write_stories(tmp_path / "stories.txt")
    return tmp_path / "stories.txt"


@pytest.fixture
def train(stories_file: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """train(out, *more arguments): do a tiny run on the CPU, and return the command's exit code."""
    monkeypatch.setattr("gpt.training.trainer.best_device", lambda: torch.device("cpu"))
    return lambda out, *more: main([str(stories_file), "--out", str(out), *TINY, *more])


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished tiny run, which must not be modified."""
    folder = tmp_path_factory.mktemp("whole")
    write_stories(folder / "stories.txt")
    out = folder / "runs" / "tiny-stories"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gpt.training.trainer.best_device", lambda: torch.device("cpu"))
        assert main([str(folder / "stories.txt"), "--out", str(out), *TINY]) == 0
    return out


@pytest.fixture(scope="session")
def run_with_card(whole_run: Path) -> Path:
    """The same folder once its card is written."""
    assert write_card([str(whole_run), *CARD, "--hardware", "on a desk"]) == 0
    return whole_run


@pytest.fixture
def at_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """at_step(n, action): call action once, right after the n-th update."""

    def plan(step: int, action: Callable[[], None]) -> None:
        update = Trainer.update

        def update_and_act(trainer: Trainer, batch: Batch) -> float:
            loss = update(trainer, batch)
            if trainer.step == step:
                monkeypatch.setattr(Trainer, "update", update)
                action()
            return loss

        monkeypatch.setattr(Trainer, "update", update_and_act)

    return plan
