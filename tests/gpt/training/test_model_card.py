"""Model cards and snapshots of a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from gpt import GPT, GPTConfig
from gpt.analysis.heads import copying_scores
from gpt.models.sources import ASSETS, BUNDLED, LLAMA_MODEL, POEMS_MODEL, load_model
from gpt.training.command_line import __doc__ as usage
from gpt.training.command_line import chosen_recipe, parse_options
from gpt.training.data import read_stories, split_stories
from gpt.training.evaluation import score_stories
from gpt.training.recipe import Recipe
from gpt.training.snapshots import ASSETS as RECORDED
from gpt.training.snapshots import RecordedRun, pack_weights, snapshot_steps, unpack_model
from tests.gpt.training.tiny_run import weights
from tools.model_card import main as write_card
from tools.model_card import recipe_section, repeat_command


@pytest.mark.thorough
def test_the_card_has_the_score_of_the_saved_weights_and_the_command(run_with_card: Path) -> None:
    card = (run_with_card / "best" / "README.md").read_text(encoding="utf-8")
    _, front, body = card.split("---\n", 2)
    front = yaml.safe_load(front)
    assert (front["license"], front["language"], front["datasets"]) == ("mit", "en", ["a/b"])
    assert "Made up, [nobody's](https://example.org)." in body
    assert "on a desk" in body

    training, held_back = split_stories(read_stories(run_with_card.parent.parent / "stories.txt"), 0.1, 1337)
    saved_model = load_model(run_with_card / "best", device="cpu")
    score = score_stories(saved_model.model, saved_model.tokenizer, held_back)
    assert f"| **{score.bits_per_byte:.4f}** | {score.loss:.4f} |" in body
    assert f"on the {len(held_back)}\nstories held back" in body
    assert f"trained on {len(training)} stories" in body

    command = next(line for line in body.splitlines() if line.startswith("python -m gpt.training"))
    options = parse_options(shlex.split(command)[3:])
    saved = torch.load(run_with_card / "last.pt", weights_only=True)["recipe"]
    assert asdict(chosen_recipe(options)) == saved
    assert (options.text.name, options.out.name, options.every) == ("stories.txt", "tiny-stories", 5)
    assert str(run_with_card.parent) not in card
    for field in fields(Recipe):
        if field.name == "n_kv_head":  # belongs to another architecture
            continue
        assert f"| {field.name} | {saved[field.name]} |" in body
    assert [line for line in body.splitlines() if line.startswith("Seed ")] == [f"Seed {seed}:" for seed in range(10)]


def test_the_bundled_card_the_docstrings_and_the_defaults_state_one_recipe() -> None:
    card = (BUNDLED / "README.md").read_text(encoding="utf-8")
    command = "python -m gpt.training tinystories.txt --out first --compile --every 200"
    options = parse_options(shlex.split(command)[3:])
    assert repeat_command(options, world_size=1) == command
    assert chosen_recipe(options) == Recipe()
    assert command in card
    recipe = Recipe()
    assert load_model(BUNDLED, device="cpu").model.config == recipe.model_config(recipe.vocab_size)
    (second,) = [line for line in card.splitlines() if line.startswith("python -m gpt.training ")]
    recipe = chosen_recipe(parse_options(shlex.split(second)[3:]))
    assert recipe_section(recipe, second) in card
    n_tokens = recipe.steps * recipe.batch_size * recipe.block_size
    assert f"step {recipe.steps:,} of {recipe.steps:,} and {n_tokens:,} tokens" in card
    assert f"shuffled with seed {recipe.seed}, with a share of {recipe.held_back} held" in card
    assert "The defaults are those of the bundled model" in str(Recipe.__doc__)
    assert "trained on stories with the defaults and --compile --every 200. Its model card describes" in str(usage)


@pytest.mark.parametrize("name", [LLAMA_MODEL, POEMS_MODEL])
def test_another_bundled_model_is_of_its_cards_recipe_and_every_file_is_small(name: str) -> None:
    folder = ASSETS / name
    card = (folder / "README.md").read_text(encoding="utf-8")
    (command,) = [line for line in card.splitlines() if line.startswith("python -m gpt.training ")]
    recipe = chosen_recipe(parse_options(shlex.split(command)[3:]))
    assert recipe_section(recipe, command) in card
    loaded = load_model(folder, device="cpu")
    assert loaded.model.config == recipe.model_config(loaded.tokenizer.n_vocab)
    assert f"{sum(p.numel() for p in loaded.model.parameters()):,} parameters" in card
    assert max(file.stat().st_size for file in folder.iterdir()) < 10_000_000
    if name == LLAMA_MODEL:
        assert (folder / "vocab.tiktoken").read_bytes() == (BUNDLED / "vocab.tiktoken").read_bytes()
        assert f"{recipe.steps * recipe.batch_size * recipe.block_size:,} tokens" in card


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
    snapshots = RecordedRun(out / "snapshots")
    assert snapshots.steps == (0, 1, 2, 5)
    last = snapshots.model(5)
    for name, weight in weights(out).items():
        assert torch.allclose(last.state_dict()[name], weight, atol=0.01), name
    assert [*snapshots.figures] == [0, 1, 2, 5]
    figures = [*snapshots.figures.values()]
    assert figures[-1].tokens == 5 * 4 * 16
    assert figures[-1].loss < figures[0].loss
    scores = copying_scores(last, snapshots.vocabulary.eot_id)
    assert np.allclose(figures[-1].induction, scores.induction, atol=1e-4)
    assert np.allclose(figures[-1].previous_token, scores.previous_token, atol=1e-4)
    assert figures[-1].copy_loss == pytest.approx(scores.loss, abs=1e-4)
    assert all(each.prompt == "Once upon a time" and each.sample for each in figures)
    card = (out / "snapshots" / "README.md").read_text(encoding="utf-8")
    assert f"| 5 | 320 | {figures[-1].loss:.3f} |" in card
    assert "--snapshots 4" in card
    assert str(tmp_path) not in card


def test_the_snapshots_inside_are_small_and_those_of_their_cards_command() -> None:
    sizes = [path.stat().st_size for path in RECORDED.iterdir()]
    assert max(sizes) < 10_000_000
    assert sum(sizes) < 20_000_000
    card = (RECORDED / "README.md").read_text(encoding="utf-8")
    (command,) = [line for line in card.splitlines() if line.startswith("python -m gpt.training ")]
    options = parse_options(shlex.split(command)[3:])
    recipe = chosen_recipe(options)
    assert recipe_section(recipe, command) in card
    snapshots = RecordedRun(RECORDED)
    assert snapshots.steps == snapshot_steps(recipe.steps, options.snapshots)
    assert snapshots.config == recipe.model_config(snapshots.vocabulary.n_vocab)


def test_induction_appears_in_the_snapshots_inside_as_measured() -> None:
    run = RecordedRun(RECORDED)
    first, last = (run.figures[step] for step in (0, run.progress.steps))
    layer, head = np.unravel_index(np.argmax(last.induction), np.shape(last.induction))
    assert layer > 0
    assert first.induction[layer][head] < 0.05
    assert last.induction[layer][head] > 0.9
    assert np.max(last.previous_token[:layer]) > 0.4
    assert (last.copy_loss < 0.5, last.loss < 3) == (True, True)
    measured = copying_scores(run.model(last.step), run.dataset.vocabulary.eot_id)
    assert np.allclose(measured.induction, last.induction, atol=1e-3)
