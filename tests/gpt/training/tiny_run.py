"""A training run that takes a second, and checks of its results."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest
import torch

TINY = shlex.split(
    "--vocab-size 270 --block-size 16 --n-layer 1 --n-head 2 --n-embd 16 --batch-size 4 --held-back 0.1 --warmup 2"
    " --steps 12 --every 5 --precision fp32 --dropout 0.1"
)
CARD = shlex.split("""--data "Made up, [nobody's](https://example.org)." --dataset a/b --license mit --language en""")


def write_stories(path: Path) -> None:
    """Write thirty short stories; an epoch is about eleven batches of four rows."""
    draw = random.Random(0)
    who, did, what = ["Tom", "Lily", "Ben"], ["saw", "found", "lost", "liked"], ["ball", "cat", "dog", "tree"]
    stories = [
        " ".join(f"{draw.choice(who)} {draw.choice(did)} the {draw.choice(what)}." for _ in range(draw.randint(1, 4)))
        for _ in range(30)
    ]
    path.write_text("\n<|endoftext|>\n".join(stories), encoding="utf-8")


def weights(out: Path) -> dict[str, torch.Tensor]:
    return torch.load(out / "last.pt", weights_only=True)["model"]


def assert_same_weights(one: Path, other: Path) -> None:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_one_sentence(capsys: pytest.CaptureFixture[str], part: str) -> None:
    """Assert that stderr contains a single line of gpt.training and no traceback."""
    error = capsys.readouterr().err
    assert error.startswith("gpt.training: ")
    assert error.count("\n") == 1
    assert part in error
