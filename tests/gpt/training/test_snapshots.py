"""Snapshots of a run: their steps, precision and measurements."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt import GPT, GPTConfig
from gpt.analysis.heads import copying_scores
from gpt.training.command_line import chosen_recipe, parse_options
from gpt.training.recorded_run import ASSETS, RecordedRun
from gpt.training.snapshots import Snapshots, pack_weights, snapshot_steps, unpack_model
from tests.gpt.training.tiny_run import weights
from tools.model_card import main as write_card
from tools.model_card import recipe_section


def test_snapshots_begin_at_random_weights_end_at_the_last_and_are_even_on_a_log_scale() -> None:
    steps = snapshot_steps(3000, 16)
    assert (steps[0], steps[-1], len(steps)) == (0, 3000, 16)
    ratios = np.divide(steps[2:], steps[1:-1])
    assert ratios.max() / ratios.min() < 1.15  # steps are integers
    assert snapshot_steps(3, 16) == (0, 1, 2, 3)
    assert [snapshot_steps(10, n) for n in (0, 1, 2)] == [(), (0,), (0, 10)]


@pytest.mark.parametrize("tied", [True, False])
def test_packed_weights_take_a_byte_each_and_are_off_by_half_a_level_at_most(tied: bool) -> None:
    model = GPT(GPTConfig(64, 16, n_layer=1, n_head=2, n_embd=32, tie_weights=tied)).eval()
    with torch.no_grad():
        model.wte.weight[3] = 0  # a row without a scale
    packed = pack_weights(model)
    n_bytes = sum(tensor.nbytes for tensor in packed.values())
    assert n_bytes < 1.15 * sum(parameter.numel() for parameter in model.parameters())
    restored = unpack_model(model.config, packed).state_dict()
    for name, weight in model.state_dict().items():
        limit = weight.abs().amax(dim=-1, keepdim=True) * (0.51 / 127 if weight.dim() == 2 else 2**-11)
        assert ((restored[name] - weight).abs() <= limit).all(), name


def test_a_run_keeps_snapshots_and_measures_each(tmp_path: Path, train: Callable[..., int]) -> None:
    out = tmp_path / "out"
    assert train(out, "--snapshots", "4", "--steps", "5") == 0
    assert write_card([str(out)]) == 0
    snapshots = Snapshots(out / "snapshots")
    assert snapshots.steps == (0, 1, 2, 5)
    last = snapshots.model(5)
    for name, weight in weights(out).items():
        assert torch.allclose(last.state_dict()[name], weight, atol=0.01), name
    figures = snapshots.figures()
    assert [each.step for each in figures] == [0, 1, 2, 5]
    assert figures[-1].tokens == 5 * 4 * 16
    assert figures[-1].loss < figures[0].loss
    scores = copying_scores(last, snapshots.tokenizer.eot_id)
    assert np.allclose(figures[-1].induction, scores.induction, atol=1e-4)
    assert np.allclose(figures[-1].previous_token, scores.previous_token, atol=1e-4)
    assert figures[-1].copy_loss == pytest.approx(scores.loss, abs=1e-4)
    assert all(each.prompt == "Once upon a time" and each.sample for each in figures)
    card = (out / "snapshots" / "README.md").read_text(encoding="utf-8")
    assert f"| 5 | 320 | {figures[-1].loss:.3f} |" in card
    assert "--snapshots 4" in card
    assert str(tmp_path) not in card


def test_the_snapshots_inside_are_small_and_those_of_their_cards_command() -> None:
    sizes = [path.stat().st_size for path in ASSETS.iterdir()]
    assert max(sizes) < 10_000_000
    assert sum(sizes) < 20_000_000
    card = (ASSETS / "README.md").read_text(encoding="utf-8")
    (command,) = [line for line in card.splitlines() if line.startswith("python -m gpt.training ")]
    options = parse_options(shlex.split(command)[3:])
    recipe = chosen_recipe(options)
    assert recipe_section(recipe, command) in card
    snapshots = Snapshots(ASSETS)
    assert snapshots.steps == snapshot_steps(recipe.steps, options.snapshots)
    assert snapshots.config == recipe.model_config(snapshots.tokenizer.n_vocab)


def test_induction_appears_in_the_snapshots_inside_as_measured() -> None:
    run = RecordedRun(ASSETS)
    first, last = (run.figures[step] for step in (0, run.progress.steps))
    layer, head = np.unravel_index(np.argmax(last.induction), np.shape(last.induction))
    assert layer > 0
    assert first.induction[layer][head] < 0.05
    assert last.induction[layer][head] > 0.9
    assert np.max(last.previous_token[:layer]) > 0.4
    assert (last.copy_loss < 0.5, last.loss < 3) == (True, True)
    measured = copying_scores(run.snapshots.model(last.step), run.dataset.vocabulary.eot_id)
    assert np.allclose(measured.induction, last.induction, atol=1e-3)
