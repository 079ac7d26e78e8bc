"""A training run that writes its files to a folder and shows its progress on the terminal.

vocab.tiktoken   the vocabulary (characters.json for a vocabulary of characters)
last.pt          the state to resume from: weights, optimizers, step, recipe, and the options of the command
log.csv          one row per evaluation
samples.txt      sample texts from each evaluation
best/            the model with the lowest held-back loss, in our own layout
snapshots/       small copies of the weights on a log scale of steps; see `gpt.training.snapshots`
"""

from __future__ import annotations

import argparse
import csv
import os
import pickle
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from gpt.errors import GPTError
from gpt.models.checkpoints.vocabularies import find_vocabulary, write_vocabulary
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import LoadedModel
from gpt.models.sources import load_model
from gpt.training.data import StoryDataset, TextDataset, read_text, shakespeare_text
from gpt.training.evaluation import sample
from gpt.training.recipe import RECIPE_PRESETS, Recipe
from gpt.training.snapshots import save_snapshot, snapshot_steps
from gpt.training.trainer import Process, Trainer

SAMPLE_TOKENS = 100
LINE_STEPS = 20  # steps between updates of the progress bar, which shows their mean loss
STATE = ("model", "optimizers", "step", "best", "losses", "seconds", "recipe", "text", "options")  # saved in last.pt


class LogRow(NamedTuple):
    """One evaluation. Losses are in nats per token.

    train_loss: mean since the last row. rate: learning-rate factor."""

    step: int
    tokens: int
    train_loss: float
    val_loss: float
    bits_per_byte: float
    rate: float
    seconds: float


def load_state(folder: Path) -> dict[str, Any]:
    """Load the latest saved state of a run. Raises ValueError if there is none or its file cannot be read."""
    path = folder / "last.pt"
    if not path.is_file():
        raise GPTError("training.nothing_to_resume", path=folder, file=path.name)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        return {name: state[name] for name in STATE}
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, LookupError, TypeError):
        raise GPTError("training.damaged_checkpoint", path=path) from None


def read_log(folder: Path) -> list[LogRow]:
    """Return the evaluations of a run so far."""
    if not (folder / "log.csv").is_file():
        return []
    with (folder / "log.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [LogRow(int(step), int(tokens), *map(float, numbers)) for step, tokens, *numbers in rows]


@lru_cache(maxsize=1)
def begin_with(model: str | None) -> LoadedModel | None:
    """Load the model whose weights the run starts from. Raises ValueError if it cannot be loaded."""
    return load_model(model, trainable=True) if model else None


def chosen_recipe(options: argparse.Namespace) -> Recipe:
    """Return the preset after applying the given options and the dimensions of the initial model."""
    values = {f.name: getattr(options, f.name) for f in fields(Recipe)}
    recipe = replace(RECIPE_PRESETS[options.preset], **{name: x for name, x in values.items() if x is not None})
    begun = begin_with(options.init_from)
    if begun is None:
        return recipe
    return recipe.shaped_like(begun.model.config, characters=begun.tokenizer.eot_id is None)


class FolderRun:
    """One process of a training run in a folder. options: see `gpt.training.command_line`.

    Raises ValueError, without writing anything, for an invalid text, folder, recipe or vocabulary. Stories need a
    vocabulary with an end-of-text token; runs on characters need one without.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.recipe, self.folder = options, chosen_recipe(options), options.out
        self.saved = load_state(self.folder) if options.resume else None
        if self.saved is not None:
            for name, old in self.saved["recipe"].items():
                if old != (new := getattr(self.recipe, name)):
                    raise GPTError("training.other_recipe", name=name, old=old, new=new)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise GPTError("training.out_not_empty", path=self.folder)
        self.data = self._data()
        if self.saved is not None and self.saved["text"] != self.data.fingerprint:
            text = options.text or options.characters or "Shakespeare"
            raise GPTError("training.other_text", text=text, folder=self.folder)

    def _data(self) -> TextDataset | StoryDataset:
        options, recipe, begun = self.options, self.recipe, begin_with(self.options.init_from)
        vocabulary = None if begun is None else begun.tokenizer
        if vocabulary is not None and vocabulary.eot_id is None and options.text:
            raise GPTError("training.begun_with_characters")
        if vocabulary is not None and vocabulary.eot_id is not None and not options.text:
            raise GPTError("training.begun_with_stories")
        if self.saved is not None:
            vocabulary = find_vocabulary(self.folder, len(self.saved["model"]["wte.weight"]))
        if options.text:
            return StoryDataset(options.text, recipe, vocabulary)
        return TextDataset(
            read_text(options.characters) if options.characters else shakespeare_text(),
            block_size=recipe.block_size,
            seed=recipe.seed,
            held_back=recipe.held_back,
            name="characters",
            vocabulary=vocabulary,
        )

    def train(self, process: Process, *, stop: Callable[[], bool] = lambda: False) -> bool:
        """Run the remaining updates. Returns True after the last one, or False if `stop()` returned True before that.

        Raises ValueError if the loss becomes infinite; the last save is kept.
        """
        recipe = self.recipe
        model = recipe.new_model(self.data.vocabulary.n_vocab)
        if (begun := begin_with(self.options.init_from)) is not None:
            model.load_state_dict(begun.model.state_dict())
        trainer = Trainer(model, recipe, process, compiled=self.options.compile)
        if self.saved is not None:
            trainer.load(self.saved)
        process.all_reduce(0.0)  # wait until every process has checked the folder
        if process.rank == 0 and self.saved is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_vocabulary(self.data.vocabulary, self.folder)
            self.save(self.state(trainer))
        steps = snapshot_steps(recipe.steps, self.options.snapshots) if process.rank == 0 else ()
        batches = self.data.batches(recipe.batch_size, trainer.step)
        is_silent = None if process.rank == 0 else True  # None: where there is no terminal
        row_tokens = recipe.batch_size * recipe.block_size
        with tqdm(
            total=recipe.steps, initial=trainer.step, unit=" tokens", unit_scale=row_tokens, disable=is_silent
        ) as bar:
            while True:
                if trainer.step in steps:
                    save_snapshot(self.folder / "snapshots", trainer.step, model, self.data.vocabulary)
                if trainer.step == recipe.steps or process.all_reduce(stop())[0]:
                    break
                trainer.update(next(batches))
                loss = fmean(trainer.losses[-LINE_STEPS:])
                bar.set_postfix_str(f"step {trainer.step:,}, loss {loss:.4f}", refresh=False)
                bar.update()
                if trainer.step % self.options.every == 0 or trainer.step == recipe.steps:
                    line = self.evaluate(trainer)
                    bar.write(line) if process.rank == 0 else None
        if trainer.step < recipe.steps and process.rank == 0:
            self.save(self.state(trainer))
        return trainer.step == recipe.steps

    def evaluate(self, trainer: Trainer) -> str:
        """Score, log, save and sample the current weights, and return a line with the losses."""
        score = trainer.score(self.data.vocabulary, self.data.held_back)
        row = LogRow(
            trainer.step,
            trainer.n_tokens,
            fmean(trainer.losses),
            score.loss,
            score.bits_per_byte,
            self.recipe.lr_factor(trainer.step - 1),
            trainer.seconds,
        )
        is_best = score.loss < trainer.best
        trainer.best, trainer.losses = min(score.loss, trainer.best), []
        state, model, tokenizer = self.state(trainer), trainer.model, self.data.vocabulary
        if trainer.process.rank == 0:
            self.add_to_log(row)
            if is_best:
                save_model(self.folder / "best", model, tokenizer, dtype=torch.float16, overwrite=True)
            self.save(state)
            loaded = LoadedModel("in training", model, tokenizer, trainer.process.device, "fp32")
            texts = [sample(loaded, prompt, seed=0, max_new_tokens=SAMPLE_TOKENS) for prompt in self.data.prompts]
            with (self.folder / "samples.txt").open("a", encoding="utf-8") as file:
                file.write(f"===== step {row.step} =====\n\n" + "".join(text + "\n\n" for text in texts))
        return (
            f"step {row.step}: loss {row.train_loss:.4f}, held back {row.val_loss:.4f} nats per token, "
            f"{row.bits_per_byte:.4f} bits per byte{' (best)' if is_best else ''}"
        )

    def add_to_log(self, row: LogRow) -> None:
        """Add an evaluation. Drops rows for later steps, which were written before the run was resumed."""
        rows, part = [old for old in read_log(self.folder) if old.step < row.step], self.folder / "log.csv.part"
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(LogRow._fields)
            writer.writerows([round(number, 6) for number in each] for each in (*rows, row))
        os.replace(part, self.folder / "log.csv")

    def save(self, state: dict[str, Any]) -> None:
        part = self.folder / "last.pt.part"
        with part.open("wb") as file:  # given a path, torch would hide a disk-full error
            torch.save(state, file)
        os.replace(part, self.folder / "last.pt")

    def state(self, trainer: Trainer) -> dict[str, Any]:
        options = {name: str(x.resolve()) if isinstance(x, Path) else x for name, x in vars(self.options).items()}
        recipe = asdict(self.recipe)
        return {**trainer.state(), "recipe": recipe, "text": self.data.fingerprint, "options": options}
