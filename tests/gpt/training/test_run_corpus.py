"""Rows of repeated random tokens among the training rows, and runs that start from another model's weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt import GPT, GPTConfig, load_model
from gpt.models.checkpoints import save_model
from gpt.training.data import with_repeats
from gpt.training.recipe import Recipe
from tests.gpt.training.tiny_run import assert_one_sentence, weights
from tools.model_card import main as write_card

ROWS = np.full((16, 257), 7, dtype=np.int32)
TOKENIZER = load_model("stories", device="cpu").tokenizer
RECIPE = replace(Recipe(), steps=101, repeats_first=0.5, repeats_last=0.1)


def n_repeated(step: int) -> int:
    return int((with_repeats(ROWS, TOKENIZER, RECIPE, step).targets == -100).any(dim=1).sum())


def test_a_repeated_row_is_one_random_sequence_again_and_again_and_only_its_repetition_is_a_target() -> None:
    batch = with_repeats(ROWS, TOKENIZER, replace(RECIPE, repeats_first=1.0), 0)
    starts = set()
    for idx, targets in zip(batch.idx, batch.targets, strict=True):
        uncounted = int((targets == -100).sum())
        assert (targets[uncounted:] != -100).all()
        start = int(idx[0] == TOKENIZER.eot_id)
        length = uncounted - start
        assert 8 <= length <= 120
        text = torch.cat([idx[start:], targets[-1:]])
        assert torch.equal(text[length:], text[:-length])
        assert torch.equal(targets[uncounted:], text[length + 1 :])
        assert not (text[:length] == TOKENIZER.eot_id).any()
        starts.add(start)
    assert starts == {0, 1}


def test_the_share_of_repeated_rows_changes_in_a_line() -> None:
    assert [RECIPE.repeats(step) for step in (0, 50, 100)] == pytest.approx([0.5, 0.3, 0.1])
    assert n_repeated(0) == 8
    assert np.mean([n_repeated(step) for step in range(101)]) == pytest.approx(16 * 0.3, abs=0.3)


def test_a_run_begins_with_the_weights_the_shape_and_the_vocabulary_of_a_model(
    tmp_path: Path, whole_run: Path, train: Callable[..., int]
) -> None:
    best = load_model(whole_run / "best", device="cpu")
    out = tmp_path / "continued"
    still = ("--adamw-lr", "0", "--muon-lr", "0", "--n-layer", "2")
    assert train(out, "--init-from", str(whole_run / "best"), "--repeats-first", "0.5", *still) == 0
    for name, weight in best.model.state_dict().items():
        assert torch.equal(weights(out)[name], weight)
    assert write_card([str(out)]) == 0
    card = (out / "best" / "README.md").read_text(encoding="utf-8")
    assert "Trained from the weights of best with" in card
    assert "--init-from best" in card
    assert load_model(out / "best", device="cpu").tokenizer.encode("Tom saw") == best.tokenizer.encode("Tom saw")


def test_a_model_that_no_recipe_makes_is_refused(
    tmp_path: Path, whole_run: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = load_model(whole_run / "best", device="cpu").tokenizer
    other = GPTConfig(tokenizer.n_vocab, 16, n_layer=1, n_head=2, n_embd=16, activation="relu")
    save_model(tmp_path / "relu", GPT(other), tokenizer)
    assert train(tmp_path / "out", "--init-from", str(tmp_path / "relu")) == 1
    assert_one_sentence(capsys, "no recipe creates a model with activation relu")
