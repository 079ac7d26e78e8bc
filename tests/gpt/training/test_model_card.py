from __future__ import annotations

import shlex
import shutil
from dataclasses import asdict, fields
from pathlib import Path

import pytest
import torch
import yaml

from gpt.models.sources import ASSETS, BUNDLED, LLAMA_MODEL, POEMS_MODEL, load_model
from gpt.training.command_line import __doc__ as usage
from gpt.training.command_line import chosen_recipe, parse_options, repeat_command
from gpt.training.data import read_stories, split_stories
from gpt.training.evaluation import score_stories
from gpt.training.recipe import Recipe
from gpt.training.trainer import Trainer
from tests.gpt.training.tiny_run import CARD, contents
from tools.model_card import main as write_card
from tools.model_card import recipe_section


@pytest.mark.thorough
def test_the_card_has_the_score_of_the_saved_weights_and_the_command(whole_run: Path) -> None:
    card = (whole_run / "best" / "README.md").read_text(encoding="utf-8")
    _, front, body = card.split("---\n", 2)
    front = yaml.safe_load(front)
    assert (front["license"], front["language"], front["datasets"]) == ("mit", "en", ["a/b"])
    assert "Made up, [nobody's](https://example.org)." in body
    assert "on a desk" in body

    training, held_back = split_stories(read_stories(whole_run.parent.parent / "stories.txt"), 0.1, 1337)
    saved_model = load_model(whole_run / "best", device="cpu")
    score = score_stories(saved_model.model, saved_model.tokenizer, held_back)
    assert f"| **{score.bits_per_byte:.4f}** | {score.loss:.4f} |" in body
    assert f"on the {len(held_back)}\nstories held back" in body
    assert f"trained on {len(training)} stories" in body

    command = next(line for line in body.splitlines() if line.startswith("python -m gpt.training"))
    options = parse_options(shlex.split(command)[3:])
    saved = torch.load(whole_run / "last.pt", weights_only=True)["recipe"]
    assert asdict(chosen_recipe(options)) == saved
    assert (options.text.name, options.out.name, options.every) == ("stories.txt", "tiny-stories", 5)
    assert str(whole_run.parent) not in card
    for field in fields(Recipe):
        if field.name == "n_kv_head":  # belongs to another architecture
            continue
        assert f"| {field.name} | {saved[field.name]} |" in body
    assert [line for line in body.splitlines() if line.startswith("Seed ")] == [f"Seed {seed}:" for seed in range(10)]
    assert "![" in body
    assert (whole_run / "best" / "curve.png").read_bytes().startswith(b"\x89PNG")


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


def test_the_bundled_model_of_llamas_shape_is_of_its_cards_recipe_and_reads_the_same_tokens() -> None:
    folder = ASSETS / LLAMA_MODEL
    card = (folder / "README.md").read_text(encoding="utf-8")
    (command,) = [line for line in card.splitlines() if line.startswith("python -m gpt.training ")]
    recipe = chosen_recipe(parse_options(shlex.split(command)[3:]))
    assert recipe_section(recipe, command) in card
    loaded = load_model(folder, device="cpu")
    assert loaded.model.config == recipe.model_config(recipe.vocab_size)
    assert f"{sum(p.numel() for p in loaded.model.parameters()):,} parameters" in card
    assert (folder / "vocab.tiktoken").read_bytes() == (BUNDLED / "vocab.tiktoken").read_bytes()
    assert f"{recipe.steps * recipe.batch_size * recipe.block_size:,} tokens" in card


def test_the_model_of_poems_is_of_its_cards_recipe_and_every_file_is_small() -> None:
    folder = ASSETS / POEMS_MODEL
    card = (folder / "README.md").read_text(encoding="utf-8")
    (command,) = [line for line in card.splitlines() if line.startswith("python -m gpt.training ")]
    recipe = chosen_recipe(parse_options(shlex.split(command)[3:]))
    assert recipe_section(recipe, command) in card
    loaded = load_model(folder, device="cpu")
    assert loaded.model.config == recipe.model_config(loaded.tokenizer.n_vocab)
    assert f"{sum(p.numel() for p in loaded.model.parameters()):,} parameters" in card
    assert max(file.stat().st_size for file in folder.iterdir()) < 10_000_000


def test_a_card_can_be_written_again_without_training(
    tmp_path: Path, whole_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "tiny-stories"
    shutil.copytree(whole_run, out)
    card = out / "best" / "README.md"
    before, text = contents(out), card.read_text(encoding="utf-8")
    card.unlink()
    monkeypatch.setattr(Trainer, "update", lambda *_: pytest.fail("a card needs no training"))
    assert write_card([str(out), *CARD, "--hardware", "on a table"]) == 0
    assert card.read_text(encoding="utf-8") == text.replace("on a desk", "on a table")
    after = contents(out)
    assert {name for name in after if after[name] != before[name]} == {"best/README.md"}
